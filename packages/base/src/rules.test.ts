import assert from "node:assert/strict";
import { test } from "node:test";
import { AssertionError, allRules, FailureError, assert as must, ok, ownerEpoch, refused, rulesWithout, unwrap } from "./index.ts";

test("rules: only the named one is off", () => {
  const rules = rulesWithout("ackNeedsAllReplicas");
  assert.equal(rules.on("ackNeedsAllReplicas"), false);
  assert.equal(rules.on("ackOnlyDurable"), true);
  assert.equal(allRules.on("ackNeedsAllReplicas"), true);
});

test("failure: unwrap gives the value or throws the failure itself", () => {
  assert.equal(unwrap(ok(3)), 3);
  assert.throws(
    () => unwrap(refused("aborted", "offsetGap", "expected 5", { endBytes: "3" })),
    (error) => error instanceof FailureError && error.failure.applied === "no" && error.failure.details?.endBytes === "3",
  );
});

test("brand: what is not a safe non-negative integer is a bug", () => {
  for (const bad of [-1, 1.5, Number.NaN, 2 ** 53]) assert.throws(() => ownerEpoch(bad), AssertionError);
  assert.throws(() => must(false, "no"), AssertionError);
});
