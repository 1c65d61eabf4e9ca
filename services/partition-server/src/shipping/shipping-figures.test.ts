/** Figures of shipping, as `/metrics` and `stamp health` tell them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ShippingFacts } from "./range-work.ts";
import { rowBytesOf, ShippingTotals, shippingFigures } from "./shipping-figures.ts";

const range: ShippingFacts = {
  account: "acme",
  rangeId: "entity-1",
  table: "Entity",
  epoch: 3,
  state: "shipping",
  complete: true,
  pending: 0,
  pendingBytes: 0,
  backlogBytes: 0,
  lastSyncMs: undefined,
  passedMonotonicMs: undefined,
  seededBytes: 0,
  seedBytes: 0,
  seedBytesPerSecond: 0,
  sentWhole: 0,
  failure: "",
};

test("shipping figures: the oldest Last Sync Time is the lag, backlogs are added, and only ranges that are seeded count for seeding", () => {
  const totals = new ShippingTotals();
  totals.shippedCommits = 7;
  const all: ShippingFacts[] = [
    { ...range, lastSyncMs: 9_000, pending: 2, pendingBytes: 20, backlogBytes: 30, seededBytes: 1_000, seedBytes: 1_000 },
    { ...range, lastSyncMs: 4_000, pending: 1, pendingBytes: 10, failure: "no connection" },
    { ...range, state: "seeding", seededBytes: 25.4, seedBytes: 100 },
    { ...range, state: "reporting" },
    range,
  ];
  const { seeding, shipping, reporting, failing, unsynced, lagMs, pendingCommits, ...rest } = shippingFigures(all, totals, 10_000);
  assert.deepEqual([seeding, shipping, reporting, failing, unsynced, lagMs, pendingCommits], [1, 3, 1, 1, 1, 6_000, 3]);
  assert.deepEqual([rest.pendingBytes, rest.backlogBytes, rest.seededBytes, rest.seedBytes, rest.shippedCommits], [30, 30, 25, 100, 7]);
  assert.equal(shippingFigures([], totals, 10_000).lagMs, 0);
});

test("shipping figures: a deleted row has the size of its key", () => {
  assert.equal(rowBytesOf([{ key: new Uint8Array(3), value: new Uint8Array(4) }, { key: new Uint8Array(5) }]), 12);
});
