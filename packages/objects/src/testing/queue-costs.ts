/**
 * For tests of what a poll costs: the rows that its scans give and those that they step over because they are deleted, over a memory table as a range
 * partition has it, where deleted rows stay until a checkpoint of everything.
 */
import assert from "node:assert/strict";
import { MemoryTable } from "@stamp/lsm";
import { planOf } from "../operations/planning.ts";
import type { PlanContext, Read } from "../plan.ts";
import type { Message, QueueOperationKind, QueueResultKind } from "../queues/operation.ts";
import { TestTable } from "./table.ts";

const queue = { account: "acct", queue: "jobs", incarnation: 7 };

export class Bench {
  readonly #table = new MemoryTable();
  readonly #context: PlanContext = new TestTable().context();
  #sequence = 0;
  wallMs = 1_700_000_000_000;
  /** Cost of the last operation. */
  cost = 0;

  run(kind: QueueOperationKind): QueueResultKind | string {
    this.cost = 0;
    const sequence = ++this.#sequence;
    const plan = planOf({ case: "queue", value: { kind } }, { ...this.#context, sequence, wallMs: this.wallMs });
    let step = plan.next();
    while (!step.done) step = plan.next(this.#read(step.value));
    for (const write of step.value.writes) this.#table.put(write.key, sequence, write.kind === "put" ? write.value : undefined);
    const { result } = step.value;
    if (result.case === "error") return result.value.code;
    return result.case === "queue" ? result.value.kind : result.case;
  }

  #read(read: Read) {
    assert.ok(read.kind !== "walk", "no listing");
    if (read.kind === "pause") return { kind: "pause" } as const;
    if (read.kind === "get") return { kind: "get", value: this.#table.get(read.key, Number.MAX_SAFE_INTEGER)?.value } as const;
    const rows: { key: Uint8Array; value: Uint8Array }[] = [];
    let deleted = 0;
    for (const { key, value } of this.#table.iterate({ gte: read.low, lt: read.high }, Number.MAX_SAFE_INTEGER)) {
      this.cost++;
      if (value === undefined) {
        if (deleted >= (read.deletedMax ?? Number.POSITIVE_INFINITY))
          return { kind: "scan", rows, more: true, deleted, stoppedAt: key } as const;
        deleted++;
      } else if (rows.length >= read.rowsMax) return { kind: "scan", rows, more: true, deleted } as const;
      else rows.push({ key, value });
    }
    return { kind: "scan", rows, more: false, deleted } as const;
  }

  put(visibilityTimeoutSeconds = 0): void {
    this.run({ case: "putMessage", value: { queue, text: "x", visibilityTimeoutSeconds, timeToLiveSeconds: 7 * 24 * 3600 } });
  }

  take(count: number, visibilityTimeoutSeconds = 30): readonly Message[] {
    const result = this.run({ case: "getMessages", value: { queue, count, visibilityTimeoutSeconds } });
    assert.ok(typeof result !== "string" && result.case === "messages");
    return result.value.messages;
  }

  remove({ messageId, popReceipt }: Message): void {
    assert.equal(this.run({ case: "deleteMessage", value: { queue, messageId, popReceipt } }), "done");
  }

  /** Returns the cost of a poll now. */
  poll(count: number): number {
    this.take(count);
    return this.cost;
  }
}

/**
 * Puts, takes and deletes so many messages, and looks at what the polls cost: every row that was deleted is stepped over once (a message
 * leaves two behind, where it was put and where it was hidden), a bounded piece at a time; after that a poll is as cheap as the first one.
 */
export function pollsAfter(messages: number): void {
  const bench = new Bench();
  bench.put();
  const first = bench.poll(1);
  const everySecond: number[] = [];
  let sum = 0;
  for (let done = 0; done < messages; done += 2_000) {
    for (let i = 0; i < 2_000; i++) bench.put();
    for (;;) {
      const taken = bench.take(32);
      sum += bench.cost;
      assert.ok(bench.cost <= 2_100, "a piece");
      for (const message of taken) bench.remove(message);
      if (taken.length === 0 && bench.cost <= 64) break;
    }
    bench.put();
    everySecond.push(bench.poll(1));
    bench.wallMs += 1_500;
  }
  assert.ok(Math.max(...everySecond) <= first + 64, `${Math.max(...everySecond)} rows, ${first} at first`);
  assert.ok(sum <= 4 * messages, `${sum} rows for ${messages} messages`);
}
