/** An account is complete, and has nothing pending, only if every range of it says so. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { accountProgress, type RangeProgress } from "./shipping-progress.ts";

const range = (rangeId: string, progress: Partial<RangeProgress> = {}): [string, RangeProgress] => [
  rangeId,
  {
    rangeId,
    table: "Entity",
    state: "shipping",
    complete: true,
    pendingCommits: 0,
    pendingBytes: 0,
    lastSyncMs: 1_000,
    seededBytes: 0,
    seedBytes: 0,
    seedBytesPerSecond: 0,
    failure: "",
    ...progress,
  },
];

const shown = (...ranges: [string, RangeProgress | undefined][]) => {
  const { complete, pendingCommits, lastSyncMs, trouble } = accountProgress(new Map(ranges));
  return [complete, pendingCommits, lastSyncMs, trouble];
};

test("progress of an account: it is complete with the earliest sync time if every range is", () => {
  assert.deepEqual(shown(range("1"), range("2", { pendingCommits: 3, lastSyncMs: 700 })), [true, 3, 700, ""]);
});

test("progress of an account: one range that is not finished, or says nothing, makes it unfinished and unknown", () => {
  assert.deepEqual(shown(range("1"), range("2", { complete: false, lastSyncMs: undefined })), [false, 0, undefined, ""]);
  assert.deepEqual(shown(range("1"), range("2", { state: "seeding", complete: false })), [false, undefined, undefined, ""]);
  const silent = "range 2: its owner does not say how far it is";
  assert.deepEqual(shown(range("1"), ["2", undefined]), [false, undefined, undefined, silent]);
  assert.deepEqual(shown(), [false, undefined, undefined, ""]);
  const unshipped = "range 2: rows of table Blob are not sent to the second stamp";
  assert.deepEqual(shown(range("1"), range("2", { table: "Blob", state: "unshipped" })), [false, undefined, undefined, unshipped]);
  assert.deepEqual(shown(range("1", { failure: "the link is cut" })), [true, 0, 1_000, "range 1: the link is cut"]);
});
