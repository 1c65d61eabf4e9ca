import assert from "node:assert/strict";
import { test } from "node:test";
import { conclusionOf, exitCodeOf, verdictOf } from "./verdict.ts";

const heldUp = (longestHoldUpMs: number, slowestBeforeMs = 40) => ({ longestHoldUpMs, holdUpAimMs: 250, slowestBeforeMs });

test("drill, hold-up up to the aim, or up to twice the slowest write before the fault, is kept; beyond both it is slow", () => {
  assert.equal(verdictOf([], heldUp(250)), "kept");
  assert.equal(verdictOf([], heldUp(251)), "slow");
  assert.equal(verdictOf([], heldUp(800, 400)), "kept");
  assert.equal(verdictOf([], heldUp(801, 400)), "slow");
  assert.equal(verdictOf([], heldUp(Number.POSITIVE_INFINITY)), "slow");
  assert.equal(verdictOf(["a blob is absent"], heldUp(10)), "broken");
});

test("drill, exit code, is that of the worst drill; --strict makes a missed aim an error", () => {
  assert.equal(exitCodeOf(["kept", "kept"], true), 0);
  assert.equal(exitCodeOf(["kept", "slow"], false), 8);
  assert.equal(exitCodeOf(["kept", "slow"], true), 5);
  assert.equal(exitCodeOf(["slow", "broken"], false), 5);
});

test("drill, conclusion, is one line that names the measure it was judged by", () => {
  assert.equal(
    conclusionOf("reshape", [], heldUp(120)),
    "reshape: KEPT. Every promise was kept; writes were held up 120 ms at most, within the aim of 250 ms.",
  );
  assert.match(conclusionOf("reshape", [], heldUp(700, 400)), /^reshape: KEPT\. .* over the aim of 250 ms, within 2 times .*\(400 ms\)/);
  assert.match(conclusionOf("reshape", [], heldUp(1_900, 400)), /^reshape: SLOW\. .*1,900 ms at most: over the aim of 250 ms, and over 2/);
  assert.match(conclusionOf("reshape", ["a", "b"], heldUp(1)), /^reshape: BROKEN\. 2 promises were broken: a$/);
  for (const broken of [[], ["a"], ["a", "b"], ["not ready:\n  front-end-1"]])
    assert.doesNotMatch(conclusionOf("reshape", broken, heldUp(9_000)), /\n/);
});
