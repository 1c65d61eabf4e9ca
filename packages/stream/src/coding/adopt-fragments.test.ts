/** Fragments that are newer than a restored record: which are taken, what the record becomes, and what is refused. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extentId, extentVersion, ownerEpoch, unwrap } from "@stamp/base";
import type { ExtentRecord } from "../records.ts";
import { StreamState } from "../state.ts";
import { chooseFragments, type FoundFragment, planAdoptFragments, refuseFragments } from "./adopt-fragments.ts";

const id = extentId(7);
const at = (nodeId: string) => ({ nodeId, diskId: `disk of ${nodeId}` });
const record: ExtentRecord = {
  ...{ id, phase: "sealed", version: extentVersion(2), ownerEpoch: ownerEpoch(1), stream: "/s", sealedLengthBytes: 900, checksum: 5 },
  replicas: ["n1", "n2", "n3"].map((nodeId) => ({ ...at(nodeId), complete: true })),
  removed: [],
};
const found = (index: number, change: Partial<FoundFragment> = {}, nodeId = `n${index + 1}`): FoundFragment => ({
  ...at(nodeId),
  ...{ version: extentVersion(3), index, profile: "rs-4-2", sealedLengthBytes: 900, checksum: 5, intact: true },
  ...change,
});
const six = [0, 1, 2, 3, 4, 5].map((index) => found(index));
const versions = (extent: ExtentRecord, given: readonly FoundFragment[]): (number | undefined)[] => {
  const chosen = chooseFragments(extent, given);
  assert.ok(typeof chosen !== "string", String(chosen));
  return chosen.fragments.map((place) => place?.version);
};

test("adopt fragments: the newest of each index is taken, one that the record names before it, and as few as the code needs", () => {
  assert.deepEqual(versions(record, six), [3, 3, 3, 3, 3, 3]);
  assert.deepEqual(versions(record, [...six, found(2, { version: extentVersion(9) }, "n9")]), [3, 3, 9, 3, 3, 3]);
  assert.deepEqual(versions(record, six.slice(2)), [undefined, undefined, 3, 3, 3, 3]);
  const coded = {
    ...record,
    replicas: [],
    coded: { profile: "rs-4-2", fragments: six.map(({ nodeId, diskId, version }) => ({ nodeId, diskId, version })) },
  };
  assert.deepEqual(versions(coded, [...six, found(2, { version: extentVersion(9) }, "n9")]), [3, 3, 3, 3, 3, 3]);
});

test("adopt fragments: too few, damaged ones, and ones of another content or code are told, and not taken", () => {
  const why = (given: readonly FoundFragment[]): string => {
    const chosen = chooseFragments(record, given);
    assert.ok(typeof chosen === "string");
    return chosen;
  };
  assert.equal(why([]), "no intact fragment was found");
  assert.equal(why(six.slice(3)), "too few different fragments were found: 3 of rs-4-2, which needs 4");
  assert.match(why([...six.slice(3), found(0, { intact: false })]), /3 of rs-4-2.*; 1 are damaged/);
  assert.match(why([...six.slice(3), found(0, { checksum: 6 })]), /; 1 have another length or checksum/);
  assert.match(why([...six.slice(3), found(0, { sealedLengthBytes: 901 })]), /; 1 have another length or checksum/);
  assert.match(why([...six.slice(3), found(0, { profile: "rs-6-3" })]), /3 of rs-4-2, which needs 4; 1 of rs-6-3, which needs 6/);
  assert.equal(why([found(0, { profile: "rs-1-1" })]), "no intact fragment was found");
  assert.match(why([found(0), found(0), found(0), found(0)]), /1 of rs-4-2/, "the same one four times");
});

test("adopt fragments: only a record of a sealed extent with a checksum, with nothing under way, proves anything", () => {
  const because = (change: Partial<ExtentRecord>): string => refuseFragments(id, { ...record, ...change }) ?? "";
  assert.equal(because({}), "");
  assert.match(refuseFragments(id, undefined) ?? "", /know no extent 7/);
  assert.match(because({ phase: "dropped" }), /know no extent 7/);
  assert.match(because({ phase: "open" }), /not settled/);
  assert.match(because({ untold: ["n1"] }), /not settled/);
  assert.match(because({ repair: at("n4") }), /being made anew/);
  assert.match(because({ attempt: { kind: "decode", version: extentVersion(2), targets: [at("n4")] } }), /under way: decode/);
  const { checksum: _checksum, ...unmeasured } = record;
  assert.match(refuseFragments(id, unmeasured) ?? "", /no checksum/);
});

test("adopt fragments: the record names them, its version goes above all, replicas are garbage, missing ones are recorded apart", () => {
  const state = new StreamState();
  const put = (changed: ExtentRecord): void => state.apply({ changes: [{ kind: "extent", record: changed }], reads: [] }, 1);
  put(record);
  const chosen = chooseFragments(record, six.slice(2));
  assert.ok(typeof chosen !== "string");
  const current = state.extent(id) as ExtentRecord;
  const [change] = unwrap(planAdoptFragments(state, current, chosen, 8)).changes;
  assert.ok(change?.kind === "extent");
  const { coded, replicas, removed, version } = change.record;
  assert.equal(version, 9);
  assert.deepEqual(replicas, []);
  assert.deepEqual(
    removed.map(({ nodeId }) => nodeId),
    ["n1", "n2", "n3"],
  );
  assert.equal(coded?.profile, "rs-4-2");
  assert.deepEqual(
    coded?.fragments.slice(2),
    six.slice(2).map(({ nodeId, diskId, version: own }) => ({ nodeId, diskId, version: own })),
  );
  const missing = coded?.fragments.slice(0, 2) ?? [];
  assert.deepEqual(new Set(missing.map((place) => place.version)), new Set([9]), "no file has this version");
  assert.equal(new Set(missing.map(({ nodeId }) => nodeId)).size, 2);
  put(change.record);
  const late = planAdoptFragments(state, current, chosen, 8);
  assert.ok(!late.ok && late.failure.reason === "conflict" && /changed meanwhile/.test(late.failure.message));
});
