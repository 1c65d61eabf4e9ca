/**
 * What a poll costs: the rows that its scans give and those that they step over because they are deleted, over a memory table as a range
 * partition has it, where deleted rows stay until a checkpoint of everything.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Message, type PlanContext, planOf, type QueueOperationKind, type QueueResultKind, type Read } from "@stamp/objects";
import { MemoryTable } from "@stamp/lsm";
import { TestTable } from "../../../packages/objects/src/table-in-test.ts";

const queue = { account: "acct", queue: "jobs", incarnation: 7 };

class Bench {
  readonly #table = new MemoryTable();
  readonly #context: PlanContext = new TestTable().context();
  #sequence = 0;
  wallMs = 1_700_000_000_000;
  /** Of the last operation. */
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
    assert.ok(read.kind !== "walk");
    if (read.kind === "get") return { kind: "get", value: this.#table.get(read.key, Number.MAX_SAFE_INTEGER)?.value } as const;
    const rows: { key: Uint8Array; value: Uint8Array }[] = [];
    let deleted = 0;
    for (const { key, value } of this.#table.iterate({ gte: read.low, lt: read.high }, Number.MAX_SAFE_INTEGER)) {
      this.cost++;
      if (value === undefined) {
        if (deleted >= (read.deletedMax ?? Number.POSITIVE_INFINITY)) return { kind: "scan", rows, more: true, deleted, stoppedAt: key } as const;
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

  /** What a poll costs now. */
  poll(count: number): number {
    this.take(count);
    return this.cost;
  }
}

test("a poll after 100,000 deleted messages costs what the first one does", () => {
  const bench = new Bench();
  bench.put();
  const first = bench.poll(1);
  for (let round = 0; round < 50; round++) {
    for (let i = 0; i < 2_000; i++) bench.put();
    for (let taken = bench.take(32); taken.length > 0; taken = bench.take(32)) for (const message of taken) bench.remove(message);
    bench.wallMs += 1_500;
  }
  assert.ok(bench.poll(32) <= 64, "an empty one");
  bench.put();
  const last = bench.poll(1);
  assert.ok(last <= first + 64, `${last} rows, ${first} at first`);
  assert.ok(bench.poll(32) <= 64, "and again");
});

test("10,000 hidden messages cost a poll nothing, and it takes them in order when they are visible", () => {
  const bench = new Bench();
  for (let i = 0; i < 10_000; i++) bench.put(1_000);
  assert.equal(bench.poll(32), 0);
  bench.wallMs += 1_000_000;
  assert.ok(bench.poll(32) <= 33);
});

test("messages deleted after they were visible again are stepped over once, a bounded piece at a time", () => {
  const bench = new Bench();
  for (let i = 0; i < 10_000; i++) bench.put();
  const held: Message[] = [];
  for (let taken = bench.take(32, 1); taken.length > 0; taken = bench.take(32, 1)) held.push(...taken);
  assert.equal(held.length, 10_000);
  bench.wallMs += 2_000;
  // Slow workers, whose receipts still fit: 10,000 rows vanish behind the head.
  for (const message of held) bench.remove(message);
  const costs: number[] = [];
  do costs.push(bench.poll(1));
  while ((costs.at(-1) ?? 0) > 64);
  assert.ok(Math.max(...costs) <= 2_100, "a piece");
  assert.ok(costs.reduce((sum, cost) => sum + cost, 0) <= 11_000, "each row once");
});
