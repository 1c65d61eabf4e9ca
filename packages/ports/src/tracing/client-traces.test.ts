import assert from "node:assert/strict";
import { test } from "node:test";
import { ClientTraces } from "./client-traces.ts";

const traced = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const untraced = traced.replace(/01$/, "00");

test("client traces: a flood of traced requests is followed up to a bound, and again as time goes on", () => {
  let nowMs = 5;
  const traces = new ClientTraces({ monotonicMs: () => nowMs });
  const followed = (requests: number): number =>
    Array.from({ length: requests }, () => traces.parentOf({ headers: { traceparent: traced } })).filter((parent) => parent === traced)
      .length;
  assert.equal(followed(1_000), 100);
  assert.equal(followed(10), 0);
  nowMs += 1_000;
  assert.equal(followed(1_000), 20);
  nowMs += 3_600_000;
  assert.equal(followed(1_000), 100, "a pause gives no more than the bound");
  assert.equal(traces.parentOf({ headers: { traceparent: untraced } }), untraced, "a client's word that it does not trace costs nothing");
  assert.equal(traces.parentOf({ headers: { traceparent: "x" } }), undefined);
  assert.equal(traces.parentOf({ headers: {} }), undefined);
});
