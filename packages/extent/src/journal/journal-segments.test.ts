import assert from "node:assert/strict";
import { test } from "node:test";
import { type FoundSegment, planSegments } from "./journal-segments.ts";

const segment = (generation: number, firstLsn: number, more: Partial<FoundSegment["header"]> & { name?: string } = {}): FoundSegment => {
  const { name = `${generation}.segment`, ...rest } = more;
  return {
    name,
    header: { salt: generation * 7, generation, firstLsn, smTerm: 1, termLowerings: 0, segmentBytes: 4096, checkpointLsn: 0, ...rest },
  };
};
const names = (groups: readonly (readonly FoundSegment[])[]): string[] => groups.map((group) => group.map((each) => each.name).join("+"));

test("journal segments: in order of generation, from the checkpoint on, whatever order they are found in", () => {
  const plan = planSegments([segment(7, 300, { checkpointLsn: 150 }), segment(5, 100), segment(6, 200), segment(4, 1)], 7);
  assert.ok(plan.kind === "replay");
  assert.deepEqual(names(plan.groups), ["5.segment", "6.segment", "7.segment"]);
  assert.equal(plan.lostOldest, undefined);
  assert.equal(plan.lostNewest, false);
});

test("journal segments: none is a new node or a lost journal; missing ones at either end are told", () => {
  assert.deepEqual(planSegments([], 0), { kind: "replay", groups: [], checkpointLsn: 0, lostOldest: undefined, lostNewest: false });
  assert.deepEqual(planSegments([], 3), { kind: "absent" });
  const oldest = planSegments([segment(7, 300, { checkpointLsn: 150 })], 7);
  assert.deepEqual(oldest.kind === "replay" && oldest.lostOldest, { fromLsn: 151, toLsn: 299 });
  const newest = planSegments([segment(6, 200, { checkpointLsn: 199 })], 7);
  assert.ok(newest.kind === "replay" && newest.lostNewest && newest.lostOldest === undefined);
  // A crash between the header and its record, or a record that is not known.
  for (const begun of [5, 6, 0]) {
    const plan = planSegments([segment(6, 200, { checkpointLsn: 199 })], begun);
    assert.ok(plan.kind === "replay" && !plan.lostNewest);
  }
});

test("journal segments: copies stand together, what only shares the generation is another journal", () => {
  const twice = planSegments([segment(2, 50), segment(2, 50, { name: "copy.segment" }), segment(1, 1)], 2);
  assert.ok(twice.kind === "replay");
  assert.deepEqual(names(twice.groups), ["1.segment", "2.segment+copy.segment"]);
  const mixed = planSegments([segment(2, 50), segment(2, 50, { name: "other.segment", salt: 99 })], 2);
  assert.deepEqual(mixed, { kind: "mixed", names: ["2.segment", "other.segment"], generation: 2 });
});
