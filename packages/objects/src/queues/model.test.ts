/**
 * A queue against a model of it, on virtual time: any script of operations, waits and clocks set back. What fails shrinks to a short script
 * that reads as one.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { TestTable } from "../testing/table.ts";
import type { Message, QueueName, QueueOperationKind, QueueResultKind } from "./operation.ts";
import { messagesPrefix, stateKey } from "./queue-keys.ts";
import { decodeState } from "./queue-rows.ts";

const queue: QueueName = { account: "acct", queue: "jobs", incarnation: 7 };

class Real {
  readonly table = new TestTable();

  run(kind: QueueOperationKind): QueueResultKind | string {
    const result = this.table.run({ case: "queue", value: { kind } });
    if (result.case === "error") return result.value.code;
    return result.case === "queue" ? result.value.kind : result.case;
  }

  /** Taking and peeking go on over bounded pieces, as a front-end does. */
  messages(kind: QueueOperationKind): readonly Message[] {
    for (let pieces = 0; pieces < 1_000; pieces++) {
      const result = this.run(kind);
      assert.ok(typeof result !== "string" && result.case === "messages");
      if (result.value.messages.length > 0 || !result.value.more) return result.value.messages;
    }
    throw new Error("it never ends");
  }

  /** The time that the next operation acts at. */
  get nowMs(): number {
    const row = this.table.row(stateKey(messagesPrefix(this.table.rules, queue)));
    return Math.max(this.table.wallMs, row ? decodeState(row).clockMs : 0);
  }
}

interface Held {
  readonly id: string;
  text: string;
  readonly expiresMs: number;
  visibleMs: number;
  /** Among messages that are visible at one time. */
  place: number;
  receipt: string;
  dequeueCount: number;
}

class Model {
  messages: Held[] = [];
  /** Everything that was ever told: a message and a receipt. */
  readonly told: { readonly id: string; readonly receipt: string }[] = [];
  places = 0;
  lastToldMs = 0;

  alive(nowMs: number): Held[] {
    return this.messages.filter(({ expiresMs }) => expiresMs > nowMs);
  }

  visible(nowMs: number, count: number): Held[] {
    const ordered = this.alive(nowMs)
      .filter(({ visibleMs }) => visibleMs <= nowMs)
      .sort((a, b) => a.visibleMs - b.visibleMs || a.place - b.place);
    return ordered.slice(0, count);
  }

  tell(message: Held, receipt: string, visibleMs: number): void {
    assert.ok(!this.told.some((told) => told.receipt === receipt), "a receipt is never given twice");
    message.receipt = receipt;
    message.visibleMs = visibleMs;
    message.place = ++this.places;
    this.told.push({ id: message.id, receipt });
  }

  /** Remembers the latest time of a write: the clock of a queue never goes back. */
  acted(nowMs: number): void {
    assert.ok(nowMs >= this.lastToldMs, `${nowMs} after ${this.lastToldMs}`);
    this.lastToldMs = nowMs;
  }
}

type Step = fc.Command<Model, Real>;

/** A command with its words. */
const step = (words: string, run: (model: Model, real: Real) => void): Step => ({ check: () => true, run, toString: () => words });

const put = (text: string, delay: number, live: number): Step =>
  step(`put ${text} hidden ${delay} s, lives ${live} s`, (model, real) => {
    const nowMs = real.nowMs;
    const value = { queue, text, visibilityTimeoutSeconds: delay, timeToLiveSeconds: live };
    const result = real.run({ case: "putMessage", value });
    assert.ok(typeof result !== "string" && result.case === "message");
    const { messageId, popReceipt, insertedMs, expiresMs, visibleMs } = result.value;
    assert.ok(!model.messages.some(({ id }) => id === messageId), "a name is never given twice");
    assert.deepEqual([insertedMs, visibleMs], [nowMs, nowMs + delay * 1000]);
    assert.equal(expiresMs, live < 0 ? undefined : nowMs + live * 1000);
    model.acted(nowMs);
    const expires = expiresMs ?? Number.POSITIVE_INFINITY;
    const held: Held = { id: messageId, text, expiresMs: expires, visibleMs, place: 0, receipt: "", dequeueCount: 0 };
    model.messages.push(held);
    model.tell(held, popReceipt, visibleMs);
  });

const take = (count: number, hidden: number): Step =>
  step(`take ${count} for ${hidden} s`, (model, real) => {
    const nowMs = real.nowMs;
    const taken = real.messages({ case: "getMessages", value: { queue, count, visibilityTimeoutSeconds: hidden } });
    const due = model.visible(nowMs, count);
    assert.deepEqual(
      taken.map(({ messageId, text, dequeueCount }) => [messageId, text, dequeueCount]),
      due.map(({ id, text, dequeueCount }) => [id, text, dequeueCount + 1]),
    );
    if (taken.length > 0) model.acted(nowMs);
    for (const [index, held] of due.entries()) {
      held.dequeueCount++;
      const { popReceipt, visibleMs } = taken[index] as Message;
      assert.equal(visibleMs, nowMs + hidden * 1000);
      model.tell(held, popReceipt, visibleMs);
    }
  });

const peek = (count: number): Step =>
  step(`peek ${count}`, (model, real) => {
    const due = model.visible(real.nowMs, count);
    const seen = real.messages({ case: "peekMessages", value: { queue, count } });
    assert.deepEqual(
      seen.map(({ messageId, dequeueCount, popReceipt }) => [messageId, dequeueCount, popReceipt]),
      due.map(({ id, dequeueCount }) => [id, dequeueCount, ""]),
    );
  });

/** Returns the expected result of an operation with a receipt that was told this many receipts ago. */
function fenced(model: Model, real: Real, ago: number) {
  const told = model.told.at(-1 - (ago % Math.max(1, model.told.length)));
  if (!told) return undefined;
  const held = model.alive(real.nowMs).find(({ id }) => id === told.id);
  const refusal = held?.receipt === told.receipt ? undefined : "MessageNotFound";
  return { told, held, refusal, which: { queue, messageId: told.id, popReceipt: told.receipt } };
}

const remove = (ago: number): Step =>
  step(`delete with the receipt ${ago} ago`, (model, real) => {
    const found = fenced(model, real, ago);
    if (!found) return;
    const nowMs = real.nowMs;
    assert.equal(real.run({ case: "deleteMessage", value: found.which }), found.refusal ?? "done");
    if (found.refusal !== undefined) return;
    model.acted(nowMs);
    model.messages = model.messages.filter((message) => message !== found.held);
  });

const update = (ago: number, hidden: number, text: string | undefined): Step =>
  step(`update with the receipt ${ago} ago: hidden ${hidden} s, ${text === undefined ? "same text" : text}`, (model, real) => {
    const found = fenced(model, real, ago);
    if (!found) return;
    const nowMs = real.nowMs;
    const result = real.run({ case: "updateMessage", value: { ...found.which, visibilityTimeoutSeconds: hidden, text } });
    if (found.refusal !== undefined || !found.held) return assert.equal(result, found.refusal);
    assert.ok(typeof result !== "string" && result.case === "message");
    model.acted(nowMs);
    if (text !== undefined) found.held.text = text;
    model.tell(found.held, result.value.popReceipt, nowMs + hidden * 1000);
  });

const many = (number: number, live: number): Step =>
  step(`put ${number} that live ${live} s`, (model, real) => {
    for (let i = 0; i < number; i++) put(`m${i}`, 0, live).run(model, real);
  });

/** The name of one message with the receipt of another one. */
const mixUp = (ago: number): Step =>
  step(`delete with the receipt ${ago} ago and another name`, (model, real) => {
    const found = fenced(model, real, ago);
    const other = model.messages.find(({ id }) => id !== found?.told.id);
    if (!found || !other) return;
    assert.equal(real.run({ case: "deleteMessage", value: { ...found.which, messageId: other.id } }), "MessageNotFound");
  });

const clear: Step = step("clear", (model, real) => {
  assert.equal(real.run({ case: "clearMessages", value: { queue } }), "done");
  model.messages = [];
});

const count: Step = step("count", (model, real) => {
  const due = model.alive(real.nowMs).length;
  for (;;) {
    const result = real.run({ case: "countMessages", value: { queue } });
    assert.ok(typeof result !== "string" && result.case === "count");
    if (result.value.more) continue;
    return assert.equal(result.value.count, due);
  }
});

const wait = (ms: number): Step =>
  step(`wait ${ms} ms`, (_, real) => {
    real.table.wallMs += ms;
  });

const clockBack = (ms: number): Step =>
  step(`the clock is set back ${ms} ms`, (_, real) => {
    real.table.wallMs -= ms;
  });

const text = fc.constantFrom("a", "b", "c", "d");
const ago = fc.nat(6);
const hidden = fc.constantFrom(0, 1, 2, 5);
const scripts = fc.commands(
  [
    fc.tuple(text, hidden, fc.constantFrom(-1, 1, 3, 6, 3600)).map(([t, delay, live]) => put(t, delay, live)),
    fc.tuple(fc.integer({ min: 1, max: 5 }), fc.constantFrom(1, 2, 5)).map(([n, s]) => take(n, s)),
    fc.integer({ min: 1, max: 5 }).map(peek),
    ago.map(remove),
    fc.tuple(ago, hidden, fc.option(text, { nil: undefined })).map(([a, s, t]) => update(a, s, t)),
    fc.tuple(fc.integer({ min: 5, max: 20 }), fc.constantFrom(1, 3)).map(([n, s]) => many(n, s)),
    ago.map(mixUp),
    fc.constant(clear),
    fc.constant(count),
    fc.constantFrom(1, 500, 1_000, 2_000, 10_000).map(wait),
    fc.constantFrom(1, 1_500, 60_000).map(clockBack),
  ],
  { maxCommands: 80, size: "max" },
);

test("a queue does what its model does, whatever the script", () => {
  fc.assert(
    fc.property(scripts, (script) => {
      fc.modelRun(() => ({ model: new Model(), real: new Real() }), script);
    }),
    { numRuns: 400 },
  );
});
