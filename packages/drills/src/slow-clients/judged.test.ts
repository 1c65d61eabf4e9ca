/** The verdict of the drill with slow clients: a busy machine is no broken promise. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { judged, type SlowPhase } from "./slow-clients-drill.ts";

const phase = (change: Partial<SlowPhase>): SlowPhase => ({
  name: "beside",
  operations: 100,
  failed: 0,
  firstFailure: "",
  p50Ms: 1,
  p99Ms: 10,
  kindsMs: {},
  ratio: 1,
  frontEndMebibytes: 100,
  tcpMebibytes: 1,
  slow: undefined,
  ...change,
});
const verdictOf = (change: Partial<SlowPhase>): string => judged([phase({ name: "alone" }), phase(change)]).verdict;

test("slow clients: late answers beside them are SLOW; failed operations and what the front-end holds are BROKEN", () => {
  assert.equal(verdictOf({}), "kept");
  assert.equal(verdictOf({ ratio: 30 }), "slow");
  assert.match(judged([phase({}), phase({ ratio: 30 })]).slow[0] ?? "", /p99 is 30\.0 times that alone/);
  assert.equal(verdictOf({ ratio: 30, failed: 1 }), "broken");
  assert.equal(verdictOf({ frontEndMebibytes: 100_000 }), "broken");
});
