/**
 * Adoption of replicas in quarantine: which ones the record of an extent proves, and how one becomes a replica again.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extentId, extentVersion, ownerEpoch } from "@stamp/base";
import { type FoundReplica, planAdopt, refuseAdoption, versionsAheadMax } from "./adoption.ts";
import type { ExtentRecord, ReplicaRecord } from "./records.ts";
import type { StreamState } from "./state.ts";

const id = extentId(7);
const on = (nodeId: string, diskId = `${nodeId}-disk`): ReplicaRecord => ({ nodeId, diskId, complete: true });
const place = ({ nodeId, diskId }: ReplicaRecord) => ({ nodeId, diskId });

const extent: ExtentRecord = {
  id,
  phase: "sealed",
  version: extentVersion(3),
  ownerEpoch: ownerEpoch(1),
  stream: "/s",
  replicas: [on("a"), on("b"), on("c")],
  sealedLengthBytes: 500,
  checksum: 99,
  removed: [],
};
const found: FoundReplica = { sealed: true, creation: 0, version: 3, sealedLengthBytes: 500, checksum: 99, problems: [] };

const plan = (record: ExtentRecord, replaced: ReplicaRecord | undefined, like: FoundReplica = found, target = on("d")) =>
  planAdopt({ extent: () => record } as unknown as StreamState, id, place(target), { found: like, replaced: replaced && place(replaced) });

const recordOf = (planned: ReturnType<typeof plan>): ExtentRecord => {
  assert.ok(planned.ok);
  const [change] = planned.value.changes;
  assert.ok(change?.kind === "extent");
  return change.record;
};

test("adoption: what the record proves is taken, each thing that it does not prove is refused with its reason", () => {
  assert.equal(refuseAdoption(id, extent, found), undefined);
  assert.equal(
    refuseAdoption(id, extent, { ...found, version: 3 + versionsAheadMax }),
    undefined,
    "the records were restored from an older copy",
  );
  const cases: readonly (readonly [ExtentRecord | undefined, Partial<FoundReplica>, RegExp])[] = [
    [undefined, {}, /know no extent 7/],
    [{ ...extent, phase: "dropped" }, {}, /know no extent 7/],
    [{ ...extent, creation: 5 }, { creation: 6 }, /of another extent that had the number 7/],
    [extent, { creation: 6 }, /of another extent that had the number 7/],
    [{ ...extent, creation: 5 }, {}, /of another extent that had the number 7/],
    [{ ...extent, phase: "open" }, {}, /not sealed for good/],
    [{ ...extent, untold: ["a"] }, {}, /not sealed for good/],
    [{ ...extent, replicas: [], coded: { profile: "lrc", fragments: [] } }, {}, /stored as fragments, and the replica is not newer/],
    [{ ...extent, attempt: { version: extentVersion(3), kind: "code", profile: "lrc", targets: [] } }, { version: 4 }, /under way: code/],
    [(({ checksum: _, ...rest }) => rest)(extent), {}, /no checksum of extent 7/],
    [extent, { problems: ["its file is gone"] }, /not intact: its file is gone/],
    [extent, { sealed: false }, /is not sealed/],
    [extent, { version: 2 }, /stale: it has version 2, .* to version 3/],
    [extent, { version: 4 + versionsAheadMax }, /far beyond version 3/],
    [extent, { sealedLengthBytes: 499 }, /shorter than the extent: sealed at 499, recorded is 500/],
    [extent, { sealedLengthBytes: 501 }, /longer than the extent/],
    [extent, { checksum: 98 }, /checksum 98, recorded is 99/],
    [extent, { checksum: undefined }, /checksum undefined, recorded is 99/],
  ];
  for (const [record, change, why] of cases) {
    assert.match(refuseAdoption(id, record, { ...found, ...change }) ?? "", why);
    assert.equal(plan(record as ExtentRecord, on("c"), { ...found, ...change }).ok, false, String(why));
  }
});

test("adoption: it takes the place of the lost replica, whose place becomes garbage; the version goes above both", () => {
  const record = recordOf(plan(extent, on("c"), { ...found, version: 9 }));
  assert.deepEqual(record.replicas, [on("a"), on("b"), on("d")]);
  assert.deepEqual(record.removed, [place(on("c"))]);
  assert.equal(record.version, 10);
  const more = recordOf(plan({ ...extent, replicas: [on("a")] }, undefined));
  assert.deepEqual([more.replicas, more.removed, more.version], [[on("a"), on("d")], [], 4]);
});

test("adoption: the old disk of a node replaces its new one; a copy that was begun is given up; one of its replicas is refused", () => {
  const swapped = recordOf(plan({ ...extent, replicas: [on("a"), on("d", "new")] }, undefined));
  assert.deepEqual([swapped.replicas, swapped.removed], [[on("a"), on("d")], [place(on("d", "new"))]]);
  const begun = recordOf(plan({ ...extent, repair: place(on("e")), removed: [place(on("f"))] }, on("c")));
  assert.deepEqual([begun.repair, begun.removed], [undefined, [on("f"), on("e"), on("c")].map(place)]);
  const itself = recordOf(plan({ ...extent, repair: place(on("d")) }, on("c")));
  assert.deepEqual([itself.repair, itself.removed], [undefined, [place(on("c"))]]);
  assert.equal(plan(extent, undefined, found, on("a")).ok, false);
});

test("adoption: a replica that is newer than a record of fragments takes their place, and they are garbage; an equally old one does not", () => {
  const fragment = (nodeId: string, version: number) => ({ ...place(on(nodeId)), version: extentVersion(version) });
  const coded: ExtentRecord = {
    ...{ ...extent, replicas: [], removed: [place(on("d")), place(on("e"))] },
    ...{ coded: { profile: "rs-4-2", fragments: [fragment("a", 2), fragment("b", 2)] }, removedFragments: [fragment("c", 1)] },
  };
  const record = recordOf(plan(coded, undefined, { ...found, version: 6 }));
  assert.deepEqual([record.coded, record.replicas, record.removed, record.version], [undefined, [on("d")], [place(on("e"))], 7]);
  assert.deepEqual(record.removedFragments, [fragment("c", 1), fragment("a", 2), fragment("b", 2)]);
  assert.equal(plan(coded, undefined, found).ok, false);
});
