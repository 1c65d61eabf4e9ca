import assert from "node:assert/strict";
import { test } from "node:test";
import { type Profile, profileNames, profileOf, repairPlan } from "@stamp/erasure";
import { repairSources } from "./repair-sources.ts";

test("repair sources: as many as the plan reads, for every fragment and up to two others lost, asked once and again", () => {
  for (const name of profileNames) {
    const profile = profileOf(name) as Profile;
    const all = Array.from({ length: profile.fragments }, (_, i) => i);
    const patterns = all.flatMap((index) =>
      all.flatMap((other) => all.filter((third) => third >= other).map((third) => ({ index, gone: [index, other, third] }))),
    );
    const asked = patterns.map(({ index, gone }) => ({ index, live: all.filter((each) => !gone.includes(each)) }));
    const expected = asked.map(({ index, live }) => repairPlan(profile, [index], live)?.sources.length);
    for (const time of ["once", "again"]) {
      const answers = asked.map(({ index, live }) => repairSources(profile, index, live));
      assert.deepEqual(answers, expected, `${name}, ${time}`);
    }
  }
});

test("repair sources: too few fragments do not determine one, also when it is asked again", () => {
  const profile = profileOf("rs-4-2") as Profile;
  for (let time = 0; time < 2; time++) assert.equal(repairSources(profile, 0, [1, 2, 3]), undefined);
  assert.equal(repairSources(profile, 0, [5, 1, 3, 2]), 4, "in any order");
});
