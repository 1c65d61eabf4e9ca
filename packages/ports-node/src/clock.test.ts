import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { NodeClock } from "./clock.ts";

test("clock: a timer that came too early and waits once more is not overtaken by one that is due later, and may be cancelled", () => {
  let nowMs = 0;
  const armed: { fire: () => void; cancelled: boolean }[] = [];
  const stubs = [
    mock.method(performance, "now", () => nowMs),
    mock.method(globalThis, "setTimeout", (fire: () => void) => {
      const timer = { fire, cancelled: false, unref: () => {} };
      armed.push(timer);
      return timer;
    }),
    mock.method(globalThis, "clearTimeout", (timer: { cancelled: boolean } | undefined) => {
      if (timer) timer.cancelled = true;
    }),
  ];
  try {
    const order: string[] = [];
    const clock = new NodeClock();
    const make = (atMs: number, name: string) => {
      nowMs = atMs;
      return clock.after(4, () => order.push(name));
    };
    make(0.9, "first");
    const cancelled = make(0.95, "cancelled");
    make(1, "second");
    make(1.1, "third");
    clock.after(6, () => order.push("much later"));
    // setTimeout counts whole milliseconds: what was made before 1 comes at 4, and once more at 5, perhaps behind the others.
    nowMs = 4.5;
    armed[0]?.fire();
    armed[1]?.fire();
    armed[4]?.fire();
    cancelled.cancel();
    nowMs = 5.2;
    armed[2]?.fire();
    armed[3]?.fire();
    assert.deepEqual(order, ["first", "second", "third"], "the one that is due later waits");
    nowMs = 7.5;
    for (const { fire, cancelled } of armed.slice(5)) if (!cancelled) fire();
    assert.deepEqual(order, ["first", "second", "third", "much later"]);
    assert.equal(armed.length, 8, "nothing waits once more for what has run");
  } finally {
    for (const stub of stubs) stub.mock.restore();
  }
});

test("clock: of two timers, the one that is set and due first is not armed for longer than the other", (t) => {
  let nowMs = 0;
  const delays: number[] = [];
  t.mock.method(performance, "now", () => nowMs);
  t.mock.method(globalThis, "setTimeout", (_: () => void, delayMs: number) => {
    delays.push(delayMs);
    return { unref: () => {} };
  });
  const clock = new NodeClock();
  for (const delayMs of [4, 20, 200]) {
    clock.after(delayMs, () => {});
    nowMs += 0.5;
    clock.after(delayMs - 0.2, () => {});
    const [first = 0, second = 0] = delays.splice(0);
    assert.ok(first <= second, `${first} ms, then ${second} ms`);
  }
});
