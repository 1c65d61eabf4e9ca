import assert from "node:assert/strict";
import { test } from "node:test";
import { WakeUp } from "./bell.ts";

test("bell: a ring wakes all who wait, in their order, and nobody who comes later", async () => {
  const bell = new WakeUp();
  const woken: string[] = [];
  bell.notify();
  const first = bell.next.then(() => woken.push("first"));
  const second = bell.next.then(() => woken.push("second"));
  bell.notify();
  const later = bell.next.then(() => woken.push("later"));
  await Promise.all([first, second]);
  assert.deepEqual(woken, ["first", "second"]);
  bell.notify();
  await later;
  assert.deepEqual(woken, ["first", "second", "later"]);
});
