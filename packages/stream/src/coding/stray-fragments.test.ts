/** Fragments that a person may delete: what a record names, an attempt makes, or a later record made, stays. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, extentId, extentVersion, ownerEpoch, rulesWithout } from "@stamp/base";
import type { AttemptRecord, ExtentRecord, FragmentPlace } from "../records.ts";
import { whyFragmentStays } from "./stray-fragments.ts";

const at = (nodeId: string, version: number): FragmentPlace => ({ nodeId, diskId: `disk of ${nodeId}`, version: extentVersion(version) });
const extent: ExtentRecord = {
  id: extentId(7),
  phase: "sealed",
  version: extentVersion(9),
  ownerEpoch: ownerEpoch(1),
  stream: "/s",
  replicas: [],
  removed: [],
  coded: { profile: "rs-4-2", fragments: [at("n1", 5), at("n2", 7)] },
  removedFragments: [at("n3", 5)],
};
const repair: AttemptRecord = { kind: "repair", version: extentVersion(9), index: 1, target: at("n4", 9) };

test("stray fragments: what a record names stays; an older version, another disk and an unknown extent may be deleted", () => {
  assert.match(whyFragmentStays(extent, at("n1", 5), allRules) ?? "", /stored in it/);
  assert.match(whyFragmentStays(extent, at("n3", 5), allRules) ?? "", /by itself/);
  assert.equal(whyFragmentStays(extent, at("n2", 5), allRules), undefined);
  assert.equal(whyFragmentStays(extent, { ...at("n1", 5), diskId: "another" }, allRules), undefined);
  assert.equal(whyFragmentStays(undefined, at("n1", 5), allRules), undefined);
});

test("stray fragments, rule attemptFragmentsStay: files of the attempt under way stay, wherever they are", () => {
  const made = [at("n4", 9), at("n5", 9)];
  for (const place of made) {
    assert.match(whyFragmentStays({ ...extent, attempt: repair }, place, allRules) ?? "", /makes it: repair/);
    assert.equal(whyFragmentStays({ ...extent, attempt: repair }, place, rulesWithout("attemptFragmentsStay")), undefined);
    assert.equal(whyFragmentStays(extent, place, allRules), undefined, "the attempt is over");
  }
});

test("stray fragments, rule newerFragmentsStay: fragments of a later record stay", () => {
  assert.match(whyFragmentStays(extent, at("n5", 10), allRules) ?? "", /version 10, and the record has 9/);
  assert.equal(whyFragmentStays(extent, at("n5", 10), rulesWithout("newerFragmentsStay")), undefined);
});
