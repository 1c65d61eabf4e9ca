import assert from "node:assert/strict";
import { test } from "node:test";
import { rulesWithout, toHex } from "@stamp/base";
import { TestTable } from "../testing/table.ts";
import type { Message, QueueName, QueueOperationKind, QueueResultKind } from "./operation.ts";
import { messagesPrefix, seedMarkOf, textKey } from "./queue-keys.ts";
import { ticketOfMessageId } from "./receipts.ts";

const queue: QueueName = { account: "acct", queue: "jobs", incarnation: 7 };
const week = 7 * 24 * 3600;

class Bench {
  readonly table = new TestTable();

  /** The result, or the code of the error. */
  run(kind: QueueOperationKind): QueueResultKind | string {
    const result = this.table.run({ case: "queue", value: { kind } });
    if (result.case === "error") return result.value.code;
    return result.case === "queue" ? result.value.kind : result.case;
  }

  put(text: string, visibilityTimeoutSeconds = 0, timeToLiveSeconds = week): Message {
    const result = this.run({ case: "putMessage", value: { queue, text, visibilityTimeoutSeconds, timeToLiveSeconds } });
    assert.ok(typeof result !== "string" && result.case === "message");
    return result.value;
  }

  get(count = 1, visibilityTimeoutSeconds = 30): readonly Message[] {
    const result = this.run({ case: "getMessages", value: { queue, count, visibilityTimeoutSeconds } });
    assert.ok(typeof result !== "string" && result.case === "messages");
    return result.value.messages;
  }

  peek(count = 32): string[] {
    const result = this.run({ case: "peekMessages", value: { queue, count } });
    assert.ok(typeof result !== "string" && result.case === "messages");
    return result.value.messages.map(({ text }) => text);
  }

  delete({ messageId, popReceipt }: Message): string {
    const result = this.run({ case: "deleteMessage", value: { queue, messageId, popReceipt } });
    return typeof result === "string" ? result : result.case;
  }

  update({ messageId, popReceipt }: Message, visibilityTimeoutSeconds: number, text?: string): Message | string {
    const result = this.run({ case: "updateMessage", value: { queue, messageId, popReceipt, visibilityTimeoutSeconds, text } });
    if (typeof result === "string") return result;
    assert.ok(result.case === "message");
    return result.value;
  }

  clear(): void {
    assert.equal(this.run({ case: "clearMessages", value: { queue } }), "done");
  }

  count(): number {
    const result = this.run({ case: "countMessages", value: { queue } });
    assert.ok(typeof result !== "string" && result.case === "count");
    return result.value.count;
  }

  wait(seconds: number): void {
    this.table.wallMs += seconds * 1000;
  }
}

const texts = (messages: readonly Message[]): string[] => messages.map(({ text }) => text);
const only = <T>(list: readonly T[]): T => {
  assert.equal(list.length, 1);
  return list[0] as T;
};

test("messages come in the order in which they became visible; taking one hides it for its time and counts", () => {
  const bench = new Bench();
  for (const text of ["a", "b", "c"]) bench.put(text);
  bench.put("late", 10);
  assert.deepEqual(bench.peek(), ["a", "b", "c"]);
  assert.deepEqual(texts(bench.get(2, 5)), ["a", "b"]);
  assert.deepEqual(bench.peek(), ["c"]);
  assert.equal(bench.count(), 4);
  bench.wait(5);
  assert.deepEqual(bench.peek(), ["c", "a", "b"]);
  bench.wait(5);
  const all = bench.get(32);
  assert.deepEqual(texts(all), ["c", "a", "b", "late"]);
  assert.deepEqual(
    all.map(({ dequeueCount }) => dequeueCount),
    [1, 2, 2, 1],
  );
  assert.deepEqual(bench.get(32), []);
});

test("the receipt is the fence: the last one deletes and updates, older ones and a deleted message are not found", () => {
  const bench = new Bench();
  const put = bench.put("a");
  const first = only(bench.get(1, 5));
  assert.equal(bench.delete(put), "MessageNotFound");
  bench.wait(5);
  const second = only(bench.get(1, 5));
  assert.equal(bench.delete(first), "MessageNotFound");
  assert.equal(bench.update(first, 10), "MessageNotFound");
  const updated = bench.update(second, 20, "b");
  assert.ok(typeof updated !== "string");
  assert.equal(updated.visibleMs, bench.table.wallMs + 20_000);
  assert.equal(bench.delete(second), "MessageNotFound");
  bench.wait(20);
  // Visible again and taken by nobody: the receipt still fits.
  assert.deepEqual(bench.peek(), ["b"]);
  assert.equal(bench.delete(updated), "done");
  assert.equal(bench.delete(updated), "MessageNotFound");
  assert.equal(bench.count(), 0);
  assert.equal(bench.delete({ ...put, popReceipt: "no receipt" }), "InvalidQueryParameterValue");
  assert.equal(bench.delete({ ...put, messageId: "11111111-2222-3333-4444-555555555555" }), "MessageNotFound");
});

test("a delayed message can be deleted and updated by the receipt of its put, and made visible at once", () => {
  const bench = new Bench();
  const a = bench.put("a", 100);
  const b = bench.put("b", 100);
  assert.equal(bench.delete(a), "done");
  assert.ok(typeof bench.update(b, 0) !== "string");
  assert.deepEqual(texts(bench.get()), ["b"]);
});

test("an expired message is never seen again and not counted, whoever comes first", () => {
  for (const comes of ["peek", "get", "count", "put", "delete"] as const) {
    const bench = new Bench();
    const short = bench.put("short", 0, 1);
    bench.put("never", 0, -1);
    const hidden = bench.put("hidden", 1, 2);
    bench.wait(2);
    if (comes === "peek") assert.deepEqual(bench.peek(), ["never"]);
    if (comes === "get") assert.deepEqual(texts(bench.get(32)), ["never"]);
    if (comes === "put") bench.put("more");
    if (comes === "delete") assert.equal(bench.delete(short), "MessageNotFound");
    assert.equal(bench.delete(hidden), "MessageNotFound");
    assert.equal(bench.count(), comes === "put" ? 2 : 1);
    bench.wait(week);
    assert.deepEqual(texts(bench.get(32)), comes === "put" ? ["never"] : ["never"]);
    assert.equal(bench.count(), 1);
  }
});

test("clearing takes everything at once, also what is hidden, and its rows are collected by what comes after", () => {
  const bench = new Bench();
  bench.table.scanRowsMax = 1_000;
  for (let i = 0; i < 300; i++) bench.put(`${i}`, i % 2);
  const taken = only(bench.get());
  bench.clear();
  assert.equal(bench.count(), 0);
  assert.deepEqual(bench.peek(), []);
  assert.equal(bench.delete(taken), "MessageNotFound");
  bench.put("new");
  bench.clear();
  const kept = bench.put("newer");
  bench.wait(10);
  assert.deepEqual(bench.peek(), ["newer"]);
  for (let i = 0; i < 20; i++) bench.peek();
  assert.equal(bench.delete(only(bench.get(1, 0))), "done");
  assert.equal(bench.delete(kept), "MessageNotFound");
  assert.equal(bench.table.rows.size, 1, "only the state row is left");
});

test("a queue made again under its name is empty, and receipts of the old one fit nothing", () => {
  const bench = new Bench();
  const old = bench.put("a");
  const again: QueueName = { ...queue, incarnation: 8 };
  const { messageId, popReceipt } = old;
  assert.equal(bench.run({ case: "deleteMessage", value: { queue: again, messageId, popReceipt } }), "MessageNotFound");
  const page = bench.run({ case: "peekMessages", value: { queue: again, count: 32 } });
  assert.ok(typeof page !== "string" && page.case === "messages" && page.value.messages.length === 0);
});

test("the clock of a queue never goes back: what was put after it was set back is not lost behind the head", () => {
  const lost = (bench: Bench): boolean => {
    bench.put("a");
    bench.delete(only(bench.get()));
    bench.get();
    bench.put("x");
    bench.get(32, 1);
    bench.wait(-3600);
    bench.put("b");
    return !bench.peek().includes("b");
  };
  assert.equal(lost(new Bench()), false);
  const without = new Bench();
  without.table.rules = rulesWithout("queueClockNeverBack");
  assert.equal(lost(without), true);
});

test("one operation removes a bounded number of expired messages, says that there are more, and goes on from there", () => {
  const bench = new Bench();
  bench.table.scanRowsMax = 1_000;
  for (let i = 0; i < 1_200; i++) bench.put("x", 0, 1);
  bench.put("alive", 0, -1);
  bench.wait(1);
  const results: (readonly [number, boolean])[] = [];
  for (let i = 0; i < 4; i++) {
    const result = bench.run({ case: "getMessages", value: { queue, count: 1, visibilityTimeoutSeconds: 1 } });
    assert.ok(typeof result !== "string" && result.case === "messages");
    results.push([result.value.messages.length, result.value.more]);
    if (result.value.messages.length > 0) break;
  }
  assert.deepEqual(results.at(-1), [1, false]);
  assert.ok(results.length >= 2 && results.slice(0, -1).every(([found, more]) => found === 0 && more));
  assert.equal(bench.count(), 1);
});

test("a pop receipt can't be worked out from what a reader sees, nor from another receipt of the same message", () => {
  const bench = new Bench();
  const sent = bench.put("a");
  const taken = only(bench.get());
  const place = taken.popReceipt.slice(0, 28);
  // A reader knows the place, or finds it by trying: milliseconds, tickets and indexes near those of the name.
  const forged = [place, `${place}${"0".repeat(32)}`, place + sent.popReceipt.slice(28), `${taken.popReceipt.slice(0, -1)}g`];
  forged.push(taken.popReceipt.slice(0, -1) + (taken.popReceipt.endsWith("0") ? "1" : "0"));
  for (const popReceipt of forged) {
    assert.match(bench.delete({ ...taken, popReceipt }), /^(MessageNotFound|InvalidQueryParameterValue)$/, popReceipt);
    assert.equal(typeof bench.update({ ...taken, popReceipt }, 0), "string", popReceipt);
  }
  const updated = bench.update(taken, 30);
  assert.ok(typeof updated !== "string");
  assert.notEqual(updated.popReceipt.slice(28), taken.popReceipt.slice(28));
  assert.equal(bench.delete({ ...taken, popReceipt: updated.popReceipt.slice(0, 28) + taken.popReceipt.slice(28) }), "MessageNotFound");
  assert.equal(bench.delete(updated), "done");
});

test("receipts of before there were secrets fit their message until it is taken again, and never one that has a secret", () => {
  const bench = new Bench();
  const { receiptSecret } = bench.table;
  bench.table.receiptSecret = () => new Uint8Array(0);
  for (const text of ["a", "b", "c"]) bench.put(text);
  const [a, b, c] = bench.get(3) as [Message, Message, Message];
  assert.equal(a.popReceipt.length, 28);
  bench.table.receiptSecret = receiptSecret;
  assert.equal(bench.delete({ ...a, popReceipt: `${a.popReceipt}${"0".repeat(32)}` }), "MessageNotFound");
  assert.equal(bench.delete(a), "done");
  const updated = bench.update(b, 30);
  assert.ok(typeof updated !== "string");
  assert.equal(updated.popReceipt.length, 60);
  assert.equal(bench.delete({ ...b, popReceipt: updated.popReceipt.slice(0, 28) }), "MessageNotFound");
  bench.wait(31);
  const again = bench.get(3).find(({ messageId }) => messageId === c.messageId);
  assert.equal(again?.popReceipt.length, 60);
  assert.equal(bench.delete(c), "MessageNotFound");
});

test("a look at a copy writes nothing: what expired is not shown and not counted, and stays for the primary to remove", () => {
  const bench = new Bench();
  bench.put("brief", 0, 5);
  bench.put("stays");
  bench.put("hidden", 60);
  const taken = only(bench.get(1, 1));
  bench.wait(10);
  const before = new Map(bench.table.rows);
  const peeked = bench.run({ case: "peekMessages", value: { queue, count: 32, ofCopy: true } });
  assert.ok(typeof peeked !== "string" && peeked.case === "messages");
  assert.deepEqual(texts(peeked.value.messages), ["stays"]);
  assert.deepEqual(
    peeked.value.messages.map(({ popReceipt }) => popReceipt),
    [""],
  );
  const counted = bench.run({ case: "countMessages", value: { queue, ofCopy: true } });
  assert.deepEqual(typeof counted === "string" ? counted : counted.value, { count: 2, more: false });
  assert.deepEqual(bench.table.rows, before);
  assert.equal(taken.text, "brief");
  // The primary removes it.
  assert.deepEqual([bench.count(), bench.table.rows.size < before.size], [2, true]);
});

test("messages whose texts a seeding never brought are stepped over and removed; without the mark of a seeding a lost text is told", () => {
  const bench = new Bench();
  const { table } = bench;
  const [first, , third] = ["a", "b", "c"].map((text) => bench.put(text));
  const messages = messagesPrefix(table.rules, queue);
  for (const { messageId } of [first, third] as Message[]) {
    const key = textKey(messages, 0, ticketOfMessageId(messageId, queue.incarnation) ?? 0);
    assert.ok(table.rows.delete(toHex(key)), "the text is there");
  }
  assert.throws(() => bench.get(32), /has no text/);
  assert.throws(() => bench.peek(), /has no text/);
  const mark = seedMarkOf(messages);
  table.rows.set(toHex(mark), { key: mark, value: Uint8Array.of(1) });
  const atCopy = bench.run({ case: "peekMessages", value: { queue, count: 32, ofCopy: true } });
  assert.ok(typeof atCopy !== "string" && atCopy.case === "messages");
  assert.deepEqual(
    atCopy.value.messages.map(({ text }) => text),
    ["b"],
  );
  assert.equal(bench.count(), 3, "a peek at a copy writes nothing");
  const one = bench.run({ case: "getMessages", value: { queue, count: 1, visibilityTimeoutSeconds: 30 } });
  assert.ok(typeof one !== "string" && one.case === "messages");
  assert.deepEqual([one.value.messages, one.value.more, bench.count()], [[], true, 2], "the caller asks again");
  assert.deepEqual(bench.peek(), ["b"]);
  assert.equal(bench.count(), 1);
  const [taken] = bench.get(32);
  assert.deepEqual([taken?.text, bench.delete(taken as Message), bench.count(), bench.get(32)], ["b", "done", 0, []]);
});
