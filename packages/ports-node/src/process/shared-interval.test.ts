import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedInterval } from "./shared-interval.ts";

test("intervals: those of one length run in one turn of one timer, and each ends by itself", (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const ran: string[] = [];
  const run = (): void => void ran.push("a");
  const ends = [sharedInterval(1_000, run), sharedInterval(1_000, run)];
  t.mock.timers.tick(600);
  let endSelf = (): void => {};
  endSelf = sharedInterval(1_000, () => {
    ran.push("b");
    endSelf();
  });
  const endOther = sharedInterval(700, () => ran.push("c"));
  t.mock.timers.tick(400);
  assert.deepEqual(ran.splice(0), ["a", "a", "b"], "the later one is not alone 600 ms later");
  ends[0]?.();
  ends[0]?.();
  t.mock.timers.tick(1_000);
  assert.deepEqual(ran.splice(0), ["c", "a", "c"]);
  ends[1]?.();
  endOther();
  t.mock.timers.tick(10_000);
  assert.deepEqual(ran, []);
  const again = sharedInterval(1_000, run);
  t.mock.timers.tick(1_000);
  assert.deepEqual(ran, ["a"]);
  again();
});

test("intervals: one that ends another in the same turn keeps it from running", (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const ran: string[] = [];
  let endSecond = (): void => {};
  const endFirst = sharedInterval(50, () => {
    ran.push("first");
    endSecond();
  });
  endSecond = sharedInterval(50, () => ran.push("second"));
  t.mock.timers.tick(50);
  assert.deepEqual(ran, ["first"]);
  endFirst();
});
