import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { TimerQueue } from "./timer-queue.ts";

/** Node's timers, which may be early, under a time that the test tells. */
function bench(t: TestContext) {
  let nowMs = 0;
  const armed = new Set<{ fire: () => void; delayMs: number }>();
  let made = 0;
  t.mock.method(performance, "now", () => nowMs);
  t.mock.method(globalThis, "setTimeout", (fire: () => void, delayMs: number) => {
    made += 1;
    const timer = { fire, delayMs, unref: () => {}, ref: () => {} };
    armed.add(timer);
    return timer;
  });
  t.mock.method(globalThis, "clearTimeout", (timer: { fire: () => void; delayMs: number } | undefined) => {
    if (timer) armed.delete(timer);
  });
  return {
    get made() {
      return made;
    },
    get delays() {
      return [...armed].map(({ delayMs }) => delayMs);
    },
    at(ms: number) {
      nowMs = ms;
    },
    /** Node's timer comes at `ms`. */
    async fire(ms: number) {
      nowMs = ms;
      const [timer] = armed;
      assert.ok(timer && armed.size === 1, "there is one timer of Node");
      armed.delete(timer);
      timer.fire();
      await new Promise<void>((resolve) => setImmediate(resolve));
    },
  };
}

test("timers: they run in the order of their due times, those of one time as they were made, and never early", async (t) => {
  const node = bench(t);
  const timers = new TimerQueue();
  const ran: string[] = [];
  let seed = 7;
  const dues = Array.from({ length: 300 }, () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return 5 + (seed % 50) / 2;
  });
  const made = dues.map((dueMs, i) => timers.add(dueMs, () => ran.push(`${dueMs}/${i}`)));
  const cancelled = new Set<number>();
  for (let i = 0; i < dues.length; i += 3) {
    made[i]?.cancel();
    made[i]?.cancel();
    cancelled.add(i);
  }
  const expected = dues
    .map((dueMs, i) => ({ dueMs, i }))
    .filter(({ i }) => !cancelled.has(i))
    .sort((a, b) => a.dueMs - b.dueMs || a.i - b.i);
  await node.fire(4.9);
  assert.deepEqual(ran, [], "none is early");
  await node.fire(12.2);
  const due = expected.filter(({ dueMs }) => dueMs <= 12.2).map(({ dueMs, i }) => `${dueMs}/${i}`);
  assert.deepEqual(ran, due);
  await node.fire(40);
  assert.deepEqual(
    ran,
    expected.map(({ dueMs, i }) => `${dueMs}/${i}`),
  );
  assert.deepEqual(node.delays, [], "nothing is armed for nobody");
});

test("timers: a long wait wakes the process once, though Node's timers come early; a short one is not held up", (t) => {
  const node = bench(t);
  const timers = new TimerQueue();
  node.at(0.4);
  timers.add(500.4, () => {});
  assert.deepEqual(node.delays, [501]);
  timers.add(505, () => {});
  assert.deepEqual([node.made, node.delays], [1, [501]], "one that is due later arms nothing");
  timers.add(4.4, () => {});
  assert.deepEqual(node.delays, [4], "one that is due earlier takes Node's timer");
});

test("timers: what one settles is done before the next one runs, and may cancel it", async (t) => {
  const node = bench(t);
  const timers = new TimerQueue();
  const ran: string[] = [];
  timers.add(20, () => {
    ran.push("first");
    void Promise.resolve()
      .then(() => {})
      .then(() => {
        ran.push("settled");
        second.cancel();
        timers.add(19, () => ran.push("made by the first"));
      });
  });
  const second = timers.add(20, () => ran.push("second"));
  timers.add(20.5, () => ran.push("third"));
  await node.fire(21);
  assert.deepEqual(ran, ["first", "settled", "made by the first", "third"]);
});

test("timers: one that fails keeps none of the others from running", async (t) => {
  const node = bench(t);
  const timers = new TimerQueue();
  const ran: string[] = [];
  timers.add(20, () => {
    throw new Error("broken");
  });
  timers.add(20, () => ran.push("second"));
  await assert.rejects(node.fire(21), /broken/);
  await new Promise<void>((resolve) => setImmediate(resolve));
  assert.deepEqual(ran, ["second"]);
});
