import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { untilMultipleMs } from "./rounds.ts";
import { sharedInterval } from "./shared-interval.ts";

/** Time that passes as the test tells, from 10 ms after a full second of the machine's clock on. Gives how often Node's timers came. */
function bench(t: TestContext): { pass(ms: number): Promise<number>; jump(ms: number): void } {
  let nowMs = performance.now() + untilMultipleMs(1_000) + 10;
  t.mock.method(performance, "now", () => nowMs);
  const timers = new Map<object, { readonly atMs: number; readonly fire: () => void }>();
  t.mock.method(globalThis, "setTimeout", (fire: () => void, delayMs: number) => {
    const handle = { unref: () => {}, ref: () => {} };
    timers.set(handle, { atMs: nowMs + delayMs, fire });
    return handle;
  });
  t.mock.method(globalThis, "clearTimeout", (handle: object) => timers.delete(handle));
  return {
    async pass(ms) {
      let came = 0;
      const endMs = nowMs + ms;
      for (;;) {
        const [first] = [...timers].sort(([, a], [, b]) => a.atMs - b.atMs);
        if (first === undefined || first[1].atMs > endMs) break;
        timers.delete(first[0]);
        nowMs = Math.max(nowMs, first[1].atMs);
        came += 1;
        first[1].fire();
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
      nowMs = Math.max(nowMs, endMs);
      return came;
    },
    jump(ms) {
      nowMs += ms;
    },
  };
}

test("intervals: those of one length run in one turn of one timer, within their length, and each ends by itself", async (t) => {
  const time = bench(t);
  const ran: string[] = [];
  const run = (): void => void ran.push("a");
  const ends = [sharedInterval(1_000, run), sharedInterval(1_000, run)];
  await time.pass(1_002);
  assert.deepEqual(ran.splice(0), ["a", "a"]);
  let endSelf = (): void => {};
  endSelf = sharedInterval(1_000, () => {
    ran.push("b");
    endSelf();
  });
  assert.equal(await time.pass(1_000), 1, "the three share a timer");
  assert.deepEqual(ran.splice(0), ["a", "a", "b"]);
  ends[0]?.();
  ends[0]?.();
  await time.pass(1_000);
  assert.deepEqual(ran.splice(0), ["a"]);
  await time.pass(10_000);
  assert.equal(ran.splice(0).length, 10, "none is left out, and none comes twice");
  ends[1]?.();
  await time.pass(10_000);
  assert.deepEqual(ran, []);
  const again = sharedInterval(1_000, run);
  await time.pass(1_002);
  assert.deepEqual(ran, ["a"]);
  again();
});

test("intervals: one that ends another in the same turn keeps it from running", async (t) => {
  const time = bench(t);
  const ran: string[] = [];
  let endSecond = (): void => {};
  const endFirst = sharedInterval(50, () => {
    ran.push("first");
    endSecond();
  });
  endSecond = sharedInterval(50, () => ran.push("second"));
  await time.pass(52);
  assert.deepEqual(ran, ["first"]);
  endFirst();
});

test("intervals: after the process stood still they go on in their turns, and make up for nothing", async (t) => {
  const time = bench(t);
  let runs = 0;
  const end = sharedInterval(1_000, () => {
    runs += 1;
  });
  await time.pass(1_002);
  assert.equal(runs, 1);
  time.jump(5_000);
  await time.pass(0);
  assert.equal(runs, 2, "one for all that were missed");
  assert.equal(await time.pass(3_000), 3);
  assert.equal(runs, 5);
  end();
});
