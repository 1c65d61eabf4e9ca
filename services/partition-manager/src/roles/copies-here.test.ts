/** Reports about copies: what a wrong one leaves behind. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CopiesHere } from "./copies-here.ts";

const nowMs = 1_795_824_000_000;
const at = (afterMs: number) => ({ stampLineage: 0, nowMs: nowMs + afterMs });
const told = { epoch: 5, paired: 7, complete: true };

test("copies: a report of a lineage that no log has hides the reports behind it for a minute, and not for ever", () => {
  const copies = new CopiesHere();
  copies.told("acme", { ...told, lastSyncMs: nowMs, lineage: Number.MAX_SAFE_INTEGER }, at(0));
  copies.told("acme", { ...told, complete: false, lastSyncMs: nowMs + 1_000 }, at(2_000));
  assert.equal(copies.get("acme", at(2_000))?.complete, true, "it may be late");
  copies.told("acme", { ...told, complete: false, lastSyncMs: nowMs + 60_000 }, at(61_000));
  const { complete, lastSyncMs } = copies.get("acme", at(61_000)) ?? {};
  assert.deepEqual([complete, lastSyncMs], [false, nowMs + 60_000]);
});

test("copies: a Last Sync Time ahead of the clock is kept as the time when it was told", () => {
  const copies = new CopiesHere();
  for (const lastSyncMs of [nowMs + 3_600_000, Number.MAX_SAFE_INTEGER]) copies.told("acme", { ...told, lastSyncMs }, at(0));
  assert.equal(copies.get("acme", at(10_000))?.lastSyncMs, nowMs);
});
