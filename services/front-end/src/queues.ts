/** Operations on queues and messages for both doors, over `Objects`: the queue's row is read first, lists go on over ranges. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Parsed, parsed, restError } from "@stamp/azure-rest";
import type { MessagePage, Queue, QueueMessage, QueueOperationSchema, QueuePage, QueueResult } from "@stamp/wire";
import type { Objects } from "./objects.ts";
import type { CallLimits, OperationKind } from "./router.ts";

type QueueOperationInit = Exclude<NonNullable<MessageInitShape<typeof QueueOperationSchema>["kind"]>, { case: undefined }>;
type ResultKind = Exclude<QueueResult["kind"], { case: undefined }>;
type ResultValues = { readonly [K in ResultKind as K["case"]]: K["value"] };

const operationOf = (kind: QueueOperationInit): OperationKind => ({ case: "queue", value: { kind } });

export interface QueueAddress {
  readonly account: string;
  readonly queue: string;
}

/** With the incarnation of its row, as a read said that was sent after the request arrived. */
export interface LocatedQueue extends QueueAddress {
  readonly incarnation: bigint;
}

export async function executeOnQueue<C extends keyof ResultValues>(
  objects: Objects,
  kind: QueueOperationInit,
  expected: C,
  limits: CallLimits,
): Promise<Parsed<ResultValues[C]>> {
  return resultOf(await objects.execute(operationOf(kind), "queue", limits), expected);
}

function resultOf<C extends keyof ResultValues>(answer: Parsed<QueueResult>, expected: C): Parsed<ResultValues[C]> {
  if (!answer.ok) return answer;
  const { kind } = answer.value;
  if (kind.case === expected) return parsed(kind.value as ResultValues[C]);
  return { ok: false, error: restError("InternalError", {}, { message: `A partition server answered ${kind.case}, not ${expected}.` }) };
}

export async function queueRow(objects: Objects, address: QueueAddress, limits: CallLimits): Promise<Parsed<Queue>> {
  const name = `queue/${address.account}/${address.queue}`;
  return resultOf(await objects.row(name, operationOf({ case: "getQueue", value: address }), "queue", limits), "queue");
}

export async function locateQueue(objects: Objects, { account, queue }: QueueAddress, limits: CallLimits): Promise<Parsed<LocatedQueue>> {
  const row = await queueRow(objects, { account, queue }, limits);
  return row.ok ? parsed({ account, queue, incarnation: row.value.incarnation }) : row;
}

export function listQueues(
  objects: Objects,
  question: { readonly account: string; readonly prefix: string; readonly marker: string; readonly maxResults: number },
  limits: CallLimits,
): Promise<Parsed<{ queues: Queue[]; nextMarker: string }>> {
  const queues: Queue[] = [];
  const pageOf = (result: QueueResult): QueuePage | undefined => (result.kind.case === "queues" ? result.kind.value : undefined);
  const kind = (maxResults: number): OperationKind => operationOf({ case: "listQueues", value: { ...question, maxResults } });
  return objects
    .overRanges(kind, question.maxResults, "queue", limits, {
      take: (result) => {
        const page = pageOf(result)?.queues ?? [];
        queues.push(...page);
        return page.length;
      },
      first: (result) => pageOf(result)?.queues[0]?.name,
      ends: (result) => pageOf(result) ?? { nextMarker: "", rangeEnded: false },
    })
    .then((nextMarker) => (nextMarker.ok ? parsed({ queues, nextMarker: nextMarker.value }) : nextMarker));
}

/** Asked again while a bounded piece of the queue held nothing but what had expired. */
export async function messagesOf(
  objects: Objects,
  kind: QueueOperationInit & { readonly case: "getMessages" | "peekMessages" },
  limits: CallLimits,
): Promise<Parsed<readonly QueueMessage[]>> {
  for (;;) {
    const page: Parsed<MessagePage> = await executeOnQueue(objects, kind, "messages", limits);
    if (!page.ok) return page;
    if (page.value.messages.length > 0 || !page.value.more) return parsed(page.value.messages);
  }
}

/** Of all messages that have not expired, visible or not. */
export async function countMessages(objects: Objects, queue: LocatedQueue, limits: CallLimits): Promise<Parsed<bigint>> {
  for (;;) {
    const count = await executeOnQueue(objects, { case: "countMessages", value: { queue } }, "count", limits);
    if (!count.ok) return count;
    if (!count.value.more) return parsed(count.value.count);
  }
}
