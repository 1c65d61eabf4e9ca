import assert from "node:assert/strict";
import { test } from "node:test";
import { atMost, sleep, Turns } from "@stamp/ports";
import { NodeClock } from "./clock.ts";

test("clock: periodic work that begins at different times comes in the same turn, and another timer when it is due", async (t) => {
  let nowMs = 0;
  let fire = (): void => {};
  t.mock.method(performance, "now", () => nowMs);
  t.mock.method(globalThis, "setTimeout", (run: () => void) => {
    fire = run;
    return { unref: () => {}, ref: () => {} };
  });
  t.mock.method(globalThis, "clearTimeout", () => {});
  const clock = new NodeClock();
  const ran: string[] = [];
  for (const [atMs, name] of [
    [10_000, "a"],
    [10_010, "b"],
    [10_020, "c"],
  ] as const) {
    nowMs = atMs;
    atMost(clock, 2_000, () => ran.push(`${name} within ${Math.max(nowMs - atMs, 2_000)}`));
  }
  clock.after(3_500, () => ran.push("later"));
  // Rounds are multiples of a second by the machine's clock, which counts from another start: one of them is the last one for most of these.
  const turns: number[] = [];
  for (; nowMs < 12_100; nowMs += 5) {
    const before = ran.length;
    fire();
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (ran.length > before) turns.push(ran.length - before);
  }
  assert.deepEqual([...ran].sort(), ["a within 2000", "b within 2000", "c within 2000"]);
  assert.ok(turns.length <= 2, `${turns.length} turns for three timers: at most one round is between them`);
  nowMs = 13_521;
  fire();
  await new Promise<void>((resolve) => setImmediate(resolve));
  assert.equal(ran.at(-1), "later");
});

test("clock: a loop that gives way by timers without a delay lets immediates run, and with them sockets and files", async () => {
  const clock = new NodeClock();
  let immediates = 0;
  let over = false;
  const again = (): void => {
    immediates += 1;
    if (!over) setImmediate(again);
  };
  setImmediate(again);
  // The event loop of a process begins with timers.
  await new Promise<void>((resolve) => setImmediate(resolve));
  const turns = new Turns(clock);
  try {
    for (let i = 0; i < 20; i++) {
      for (const giveWay of [() => sleep(clock, 0), () => turns.next()]) {
        const before = immediates;
        await giveWay();
        assert.ok(immediates > before, "an immediate ran meanwhile");
      }
    }
  } finally {
    over = true;
  }
});
