import assert from "node:assert/strict";
import { test } from "node:test";
import { conclusionOf, verdictOf } from "./verdict.ts";

const heldUp = (longestHoldUpMs: number, slowestBeforeMs = 40) => ({ longestHoldUpMs, holdUpAimMs: 250, slowestBeforeMs });

test("drill, hold-up up to the aim, or up to twice the slowest write before the fault, is kept; beyond both it is slow", () => {
  assert.equal(verdictOf([], heldUp(250)), "kept");
  assert.equal(verdictOf([], heldUp(251)), "slow");
  assert.equal(verdictOf([], heldUp(800, 400)), "kept");
  assert.equal(verdictOf([], heldUp(801, 400)), "slow");
  assert.equal(verdictOf([], heldUp(Number.POSITIVE_INFINITY)), "slow");
  assert.equal(verdictOf(["a blob is absent"], heldUp(10)), "broken");
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

test("drill of coding, reads of coded blobs are judged as writes are, and the worse of the two decides", () => {
  const withReads = (longestMs: number, slowestBeforeMs = 40) => ({
    ...heldUp(120),
    codedReads: { longestMs, aimMs: 1_000, slowestBeforeMs },
  });
  assert.equal(verdictOf([], withReads(1_000)), "kept");
  assert.equal(verdictOf([], withReads(1_001)), "slow");
  assert.equal(verdictOf([], withReads(1_200, 600)), "kept");
  assert.equal(verdictOf([], { ...withReads(10), longestHoldUpMs: 251 }), "slow");
  assert.equal(
    conclusionOf("slow-fragment", [], withReads(300)),
    "slow-fragment: KEPT. Every promise was kept; writes were held up 120 ms at most, within the aim of 250 ms; reads of coded blobs took 300 ms at most, within the aim of 1,000 ms.",
  );
  assert.match(
    conclusionOf("slow-fragment", [], withReads(2_000)),
    /SLOW.*2,000 ms at most: over the aim of 1,000 ms, and over 2 times the slowest read/,
  );
});
