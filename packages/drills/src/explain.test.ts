import assert from "node:assert/strict";
import { test } from "node:test";
import { drills } from "./drills.ts";
import { explain, ownDrills } from "./explain.ts";

test("drill explain, every drill of the list, has steps and the terms that they use", () => {
  for (const { name } of [...drills, ...ownDrills]) {
    const text = explain(name) ?? "";
    assert.match(text, /What happens\n {2}1\. /, name);
    assert.doesNotMatch(text, /undefined|\n\n\n/, name);
  }
  assert.match(explain("power-loss") ?? "", /\n {2}journal +File/);
  assert.match(explain("reshape") ?? "", /held up 250 ms at most, or 2 times/);
});

test("drill explain, a name that no drill has, is nothing", () => {
  assert.equal(explain("kill-everybody"), undefined);
  assert.equal(explain("toString"), undefined);
});
