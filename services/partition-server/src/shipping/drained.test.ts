import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, rulesWithout } from "@stamp/base";
import { ofDrained } from "./drained.ts";
import type { Facts } from "./range-work.ts";

const nowMs = 100_000;
/** `lastSyncMs` is of a wall clock that was set back by an hour: it is far ahead. */
const factsOf = (pending: number, passedMonotonicMs?: number) => ({ pending, passedMonotonicMs, lastSyncMs: nowMs + 3_600_000 }) as Facts;

test("drained: a range has something pending until what began before the drain is shipped, whether committed or not", () => {
  const pendingOf = (facts: Facts, drainedMsAgo?: number): number => ofDrained(facts, drainedMsAgo, nowMs, allRules).pending;
  assert.equal(pendingOf(factsOf(0, 99_000), 500), 1, "a transaction that began 1,000 ms ago is on its way");
  assert.equal(pendingOf(factsOf(0), 500), 1, "not known");
  assert.equal(pendingOf(factsOf(7, 99_000), 500), 7);
  assert.equal(pendingOf(factsOf(0, 99_999), 0), 1, "front-ends may still let in writes");
  assert.equal(pendingOf(factsOf(0, 99_600), 500), 0);
  assert.equal(pendingOf(factsOf(0, 10_000)), 0, "not drained");
});

test("drained: without the rule geoDrainedIsQuiet only what is committed counts", () => {
  assert.equal(ofDrained(factsOf(0, 99_000), 500, nowMs, rulesWithout("geoDrainedIsQuiet")).pending, 0);
});
