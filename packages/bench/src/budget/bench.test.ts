/** A budget is exceeded by what costs much more, and by what has none. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { overBudget, tableOf, tolerance } from "./bench.ts";

const measured = (name: string, multiple: number) => ({ name, clusterMicros: multiple * 100, yardstickMicros: 100, multiple });

test("budget: what costs up to the tolerance passes, more is named, and so is what has no budget or could not be measured", () => {
  const budget = { put: 5, get: 2, list: 10, gone: 1 };
  const all = [
    measured("put", 5 * tolerance - 0.01),
    measured("get", 2 * tolerance + 0.01),
    measured("new", 0.1),
    measured("list", Number.NaN),
  ];
  assert.deepEqual(overBudget(all, budget), ["get", "new", "list"]);
  assert.match(tableOf(all, budget), /^put .* 140% of 5\.00$/m);
  assert.match(tableOf(all, budget), /^new .* no budget$/m);
});
