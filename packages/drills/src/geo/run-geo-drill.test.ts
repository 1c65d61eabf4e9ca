import assert from "node:assert/strict";
import { test } from "node:test";
import { geoDrillNames } from "../explain.ts";
import { geoDrills, listedGeoDrills } from "./geo-drills.ts";
import { holdUpOf } from "./run-geo-drill.ts";

test("geo drills: those that are told to people are those that there are", () => {
  assert.deepEqual(
    geoDrills.map(({ name }) => name),
    geoDrillNames,
  );
});

test("geo drills: a write that was under way at the fault counts as one after it, and without any the hold-up has no end", () => {
  const acked = [
    { startMs: 0, endMs: 40 },
    { startMs: 90, endMs: 1_090.4 },
    { startMs: 1_000, endMs: 1_010 },
  ];
  assert.deepEqual(holdUpOf(acked, 100, 5_000), { longestHoldUpMs: 1_000, holdUpAimMs: 5_000, slowestBeforeMs: 40 });
  assert.equal(holdUpOf(acked.slice(0, 1), 100, 5_000).longestHoldUpMs, Number.POSITIVE_INFINITY);
});

test("geo drills: of many names the first are told, and how many there are", () => {
  assert.equal(listedGeoDrills(["a", "b"]), "a, b");
  assert.equal(listedGeoDrills(["a", "b", "c", "d"]), "a, b, c, … (4)");
});
