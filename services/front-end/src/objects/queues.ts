/** Operations on queues and messages for both doors: the queue's row is read first, lists go on over ranges. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Parsed, parsed, restError } from "@stamp/azure-rest";
import { refused } from "@stamp/base";
import type { World } from "@stamp/ports";
import type { Queue, QueueMessage, QueueOperationSchema, QueueResult } from "@stamp/wire";
import { overRanges } from "../routing/over-ranges.ts";
import type { CallLimits, OperationKind, Router } from "../routing/router.ts";
import { answeredCase } from "./answered.ts";
import { restErrorOf } from "./failures.ts";
import { ParentRows } from "./parent-rows.ts";

type QueueKind = Exclude<NonNullable<MessageInitShape<typeof QueueOperationSchema>["kind"]>, { case: undefined }>;
type KindOf<C extends QueueKind["case"]> = Extract<QueueKind, { case: C }>;
type ResultKind = Exclude<QueueResult["kind"], { case: undefined }>;
type ResultValues = { readonly [K in ResultKind as K["case"]]: K["value"] };

export interface QueueAddress {
  readonly account: string;
  readonly queue: string;
}

/** Queue with its incarnation, from a read that was sent after the request arrived. */
export interface LocatedQueue extends QueueAddress {
  readonly incarnation: bigint;
}

const operationOf = (kind: QueueKind): OperationKind => ({ case: "queue", value: { kind } });

export class Queues {
  readonly rows: ParentRows;
  readonly #router: Router;

  constructor(world: World, router: Router, options: { readonly requestTimeoutMs: number }) {
    this.#router = router;
    const readRow = (account: string, queue: string, limits: CallLimits) =>
      router.execute(operationOf({ case: "getQueue", value: { account, queue } }), limits);
    this.rows = new ParentRows(world, readRow, { readTimeoutMs: options.requestTimeoutMs });
  }

  /** Executes an operation. Returns the result of the case that its success has. */
  async execute<C extends keyof ResultValues>(kind: QueueKind, expected: C, limits: CallLimits): Promise<Parsed<ResultValues[C]>> {
    return resultOf(answeredCase(await this.#router.execute(operationOf(kind), limits), "queue"), expected);
  }

  /** Runs an operation that answers nothing. */
  async run(kind: QueueKind, limits: CallLimits): Promise<Parsed<void>> {
    const done = answeredCase(await this.#router.execute(operationOf(kind), limits), "done");
    return done.ok ? parsed(undefined) : done;
  }

  async row({ account, queue }: QueueAddress, limits: CallLimits): Promise<Parsed<Queue>> {
    const row = await this.rows.read(account, queue, limits);
    return row ? resultOf(answeredCase(row, "queue"), "queue") : { ok: false, error: restErrorOf(late.failure) };
  }

  async locate({ account, queue }: QueueAddress, limits: CallLimits): Promise<Parsed<LocatedQueue>> {
    const row = await this.row({ account, queue }, limits);
    return row.ok ? parsed({ account, queue, incarnation: row.value.incarnation }) : row;
  }

  async list(
    question: { readonly account: string; readonly prefix: string; readonly marker: string; readonly maxResults: number },
    limits: CallLimits,
  ): Promise<Parsed<{ queues: Queue[]; nextMarker: string }>> {
    const queues: Queue[] = [];
    const kind = (maxResults: number): OperationKind => operationOf({ case: "listQueues", value: { ...question, maxResults } });
    const nextMarker = await overRanges(this.#router, kind, question.maxResults, limits, {
      read: (outcome) => resultOf(answeredCase(outcome, "queue"), "queues"),
      take: (page) => {
        queues.push(...page.queues);
        return page.queues.length;
      },
      first: (page) => page.queues[0]?.name,
    });
    return nextMarker.ok ? parsed({ queues, nextMarker: nextMarker.value }) : nextMarker;
  }

  /** Returns messages. Asks again while a bounded piece of the queue has expired messages only. */
  async messages(kind: KindOf<"getMessages" | "peekMessages">, limits: CallLimits): Promise<Parsed<readonly QueueMessage[]>> {
    for (;;) {
      const page = await this.execute(kind, "messages", limits);
      if (!page.ok) return page;
      if (page.value.messages.length > 0 || !page.value.more) return parsed(page.value.messages);
    }
  }

  /** Counts all messages that have not expired, visible or not. */
  async count(asked: { readonly queue: LocatedQueue; readonly ofCopy: boolean }, limits: CallLimits): Promise<Parsed<bigint>> {
    for (;;) {
      const count = await this.execute({ case: "countMessages", value: asked }, "count", limits);
      if (!count.ok) return count;
      if (!count.value.more) return parsed(count.value.count);
    }
  }
}

const late = refused("deadlineExceeded", "timeout", "the queue's row was not read in time");

function resultOf<C extends keyof ResultValues>(answer: Parsed<QueueResult>, expected: C): Parsed<ResultValues[C]> {
  if (!answer.ok) return answer;
  const { kind } = answer.value;
  if (kind.case === expected) return parsed(kind.value as ResultValues[C]);
  return { ok: false, error: restError("InternalError", {}, { message: `A partition server answered ${kind.case}, not ${expected}.` }) };
}
