import assert from "node:assert/strict";
import { test } from "node:test";
import { againMoved, newSteps, type Step } from "./judge.ts";

const move = (rangeId: string, atMs: number, failure = ""): Step => ({ kind: "move", rangeId, to: "a", why: "", failure, atMs });

test("bench balance: a step that is told at every look counts once", () => {
  const known = [move("foo", 10_000)];
  const told = [move("bar", 21_000), move("foo", 10_800), move("foo", 20_000)];
  assert.deepEqual(
    newSteps(known, told).map(({ rangeId, atMs }) => [rangeId, atMs]),
    [
      ["foo", 20_000],
      ["bar", 21_000],
    ],
  );
});

test("bench balance: a range that is moved twice within the time is found, a move that failed is none", () => {
  const steps = [move("foo", 0), move("bar", 1_000, "not served"), move("bar", 2_000), move("foo", 70_000), move("foo", 700_000)];
  assert.deepEqual(
    againMoved(steps, 600_000).map(({ step, afterMs }) => [step.rangeId, afterMs]),
    [["foo", 70_000]],
  );
});
