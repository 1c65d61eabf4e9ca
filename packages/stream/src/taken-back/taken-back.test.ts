/** Proofs of extents that the restored metadata do not know, which of them come back, and where. Model: docs/design/model/taken-back.pml. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { allRules, extentId, extentVersion, ownerEpoch, type RuleName, rulesWithout, unwrap } from "@stamp/base";
import { planReserveIds } from "../plan-extents.ts";
import { planCreateStream } from "../plan-streams.ts";
import { segmentExtentsMax } from "../records.ts";
import { checksum, Store } from "../testing/harness.ts";
import { chooseTakenBack, historyApart, wentOnSince } from "./choose-taken-back.ts";
import { judgeRestored } from "./judge-restored.ts";
import { goneInside, needsSegment, planTakeBack, takenAtOnceMax } from "./plan-take-back.ts";
import { type ProvenExtent, proveExtent, type UnknownReplica } from "./prove-extent.ts";
import { decodeTakenBack, encodeTakenBack, takenBackKey } from "./taken-back-record.ts";

const replica = (nodeId: string, more: Partial<UnknownReplica> = {}): UnknownReplica => ({
  place: { nodeId, diskId: `disk of ${nodeId}` },
  id: extentId(7),
  creation: 70,
  stream: "/s",
  predecessor: 6,
  ownerEpoch: 1,
  version: 2,
  durableBytes: 100,
  sealedLengthBytes: 100,
  checksum: 9,
  problems: [],
  ...more,
});
const open = { version: 1, sealedLengthBytes: undefined, checksum: undefined };
const why = (...replicas: UnknownReplica[]): string => {
  const proven = proveExtent(extentId(7), replicas);
  assert.ok(!proven.ok);
  return proven.failure.message;
};

test("taken back: replicas that agree prove an extent; the seal of the highest version counts, and damaged ones are made anew", () => {
  const { sealed, version, places, predecessor } = unwrap(
    proveExtent(extentId(7), [
      replica("a", { predecessor: undefined, stream: "" }),
      replica("b"),
      replica("c", { ...open, durableBytes: 120 }),
      replica("d", { problems: ["its file is gone"], creation: 0 }),
    ]),
  );
  assert.deepEqual([sealed, version, predecessor], [{ lengthBytes: 100, checksum: 9 }, 2, 6]);
  assert.equal(places.length, 4);
  const given = unwrap(proveExtent(extentId(7), [replica("a", { version: 3, sealedLengthBytes: 80, checksum: 8 }), replica("b")]));
  assert.deepEqual(given.sealed, { lengthBytes: 80, checksum: 8 });
  assert.equal(unwrap(proveExtent(extentId(7), [replica("a", open)])).sealed, undefined);
});

test("taken back: what replicas do not prove is refused with the reason", () => {
  assert.match(why(replica("a", { problems: ["its file is gone"] })), /no replica is intact: its file is gone/);
  assert.match(why(replica("a", { creation: 0 })), /no creation number/);
  assert.match(why(replica("a"), replica("b", { creation: 71 })), /two extents had this number/);
  assert.match(why(replica("a", { stream: "" })), /which stream/);
  assert.match(why(replica("a"), replica("b", { stream: "/other" })), /different streams: \/s, \/other/);
  assert.match(why(replica("a"), replica("b", { predecessor: 5 })), /different predecessors/);
  assert.match(why(replica("a"), replica("b", { checksum: 8 })), /different lengths or contents/);
  assert.match(why(replica("a"), replica("b", { sealedLengthBytes: 99 })), /different lengths or contents/);
});

const extent = (id: number, predecessor: number | undefined, more: Partial<ProvenExtent> = {}): ProvenExtent => ({
  id: extentId(id),
  creation: id * 10,
  stream: "/s",
  predecessor,
  ownerEpoch: ownerEpoch(3),
  version: extentVersion(2),
  hasContent: true,
  sealed: { lengthBytes: 10, checksum: 1 },
  places: [{ nodeId: "a", diskId: "disk of a" }],
  ...more,
});

/** A store with stream `/s` of so many extents, of owner epoch 3. */
function storeOf(count: number): { readonly store: Store; readonly last: number } {
  const store = new Store();
  store.do(planCreateStream(store.state, "/s", ownerEpoch(3)));
  let last = 0;
  for (let i = 0; i < count; i++) last = store.extend("/s", 3);
  return { store, last };
}

const chosen = (count: number, extents: (last: number) => readonly ProvenExtent[], { floor = 0, without = [] as RuleName[] } = {}) => {
  const { store, last } = storeOf(count);
  const { taken, left, missing } = chooseTakenBack(store.state, extents(last), floor, rulesWithout(...without));
  return {
    ids: (taken.get("/s") ?? []).map(({ id }) => id - last),
    why: left.map((each) => each.why).join("; "),
    missing: missing.map(({ id }) => id - last),
    isLost: left.some(({ isLost }) => isLost),
  };
};

test("taken back: the predecessors of the newest extent with content say what comes back; empty ends and side branches do not", () => {
  const chain = (last: number) => [
    extent(last + 5, last + 2),
    extent(last + 1, last, { hasContent: false }),
    extent(last + 2, last),
    extent(last + 3, last),
    extent(last + 8, last + 5, { hasContent: false }),
  ];
  const { ids, why: reasons, isLost } = chosen(2, chain);
  assert.deepEqual(ids, [2, 5]);
  assert.match(reasons, /the stream went on without it/);
  assert.equal(isLost, false);
  assert.deepEqual(chosen(0, () => [extent(5, 0), extent(9, 5)]).ids, [5, 9], "of a stream that was empty");
  assert.deepEqual(chosen(2, chain, { without: ["oneHistoryComesBack"] }).ids, [2, 3, 5], "without the rule");
});

test("taken back: behind a missing predecessor comes what has a near number; the missing one is told", () => {
  const { ids, missing } = chosen(2, (last) => [extent(last + 6, last + 5), extent(last + 2, last)]);
  assert.deepEqual([ids, missing], [[2, 6], [5]]);
  const far = chosen(2, (last) => [extent(last + historyApart + 6, last + historyApart + 5), extent(last + 2, last)]);
  assert.deepEqual(far.ids, []);
  assert.match(far.why, /is missing, and a restore may be between/);
  assert.equal(far.isLost, true);
});

test("taken back: what was deleted before the copy stays deleted (rule deletedStaysDeleted)", () => {
  const older = (last: number) => [extent(last - 1, last)];
  assert.deepEqual(chosen(2, older), {
    ids: [],
    why: "it is older than extent 3, with which its stream ends: it was deleted",
    missing: [],
    isLost: false,
  });
  assert.deepEqual(chosen(2, older, { without: ["deletedStaysDeleted"] }).ids, [-1]);
  const ofBefore = () => [extent(5, 0, { ownerEpoch: ownerEpoch(2) })];
  assert.match(chosen(0, ofBefore).why, /made for owner epoch 2, before the stream had epoch 3/);
  assert.deepEqual(chosen(0, ofBefore, { without: ["deletedStaysDeleted"] }).ids, [5]);
});

test("taken back: an extent of another history stays away (rule oneHistoryComesBack)", () => {
  for (const predecessor of [0, 1]) {
    const elsewhere = chosen(2, (last) => [extent(last + 9, predecessor), extent(last + 4, last)]);
    assert.deepEqual(elsewhere.ids, []);
    assert.match(elsewhere.why, /was made behind extent \d, and the stream ends with extent 3/);
  }
  const left = (last: number) => [extent(last + 4, last)];
  assert.match(chosen(2, left, { floor: 100 }).why, /an earlier restore did not take it back/);
  assert.deepEqual(chosen(2, left, { floor: 100, without: ["oneHistoryComesBack"] }).ids, [4]);
});

test("taken back: a stream that began after the copy is made anew of its own extents (rule newStreamsComeBack)", () => {
  const { store, last } = storeOf(2);
  const of = (id: number, predecessor: number, more: Partial<ProvenExtent> = {}) => extent(id, predecessor, { stream: "/child", ...more });
  const parents = extent(last + 1, last, { hasContent: false });
  // The first one was made behind an empty extent of its parent, as the list was that it began with.
  const born = [
    of(last + 3, last + 1, { ownerEpoch: ownerEpoch(7) }),
    of(last + 5, last + 4),
    of(last + 8, last + 5, { hasContent: false }),
  ];
  const { taken, missing } = chooseTakenBack(store.state, [parents, ...born], 0, allRules);
  assert.deepEqual([...taken.keys()], ["/child"]);
  const extents = taken.get("/child") ?? [];
  assert.deepEqual([extents.map(({ id }) => id - last), missing.map(({ id }) => id - last)], [[3, 5], [4]]);
  store.do(planTakeBack(store.state, "/child", extents, undefined));
  const state = store.reload();
  assert.deepEqual([state.extentsOf("/child").map((id) => id - last), state.stream("/child")?.ownerEpoch], [[3, 5], 7]);
  const without = chooseTakenBack(store.state, [of(last + 3, last, { stream: "/other" })], 0, rulesWithout("newStreamsComeBack"));
  assert.equal(without.taken.size, 0);
  assert.match(without.left.map(({ why: reason }) => reason).join(), /do not know the stream \/other/);
  assert.equal(without.left[0]?.isLost, true);
});

test("taken back: a stream that was deleted long before the copy stays away, also if a disk that still has an extent of it comes back", () => {
  const store = new Store();
  store.do(planCreateStream(store.state, "/s", ownerEpoch(3)));
  store.do(planReserveIds(store.state, 5_000));
  store.extend("/s", 3);
  const { taken, left } = chooseTakenBack(store.state, [extent(100, 0, { stream: "/deleted" })], 0, allRules);
  assert.equal(taken.size, 0);
  assert.match(left.map(({ why: reason }) => reason).join(), /older than the copy, which does not know its stream: it was deleted/);
  assert.equal(left[0]?.isLost, false);
});

test("taken back: the list's last takes no appends any more, extents go behind it over a full segment, and a second time changes nothing", () => {
  const { store, last } = storeOf(segmentExtentsMax - 10);
  const extents = Array.from({ length: takenAtOnceMax }, (_, i) =>
    extent(last + 2 + i, last + 1 + i, i % 2 === 0 ? {} : { sealed: undefined }),
  );
  assert.ok(needsSegment(store.state, "/s", extents.length));
  store.do(planTakeBack(store.state, "/s", extents, 1_000_000));
  assert.deepEqual(
    store.reload().extentsOf("/s").slice(-extents.length),
    extents.map(({ id }) => id),
  );
  assert.equal(store.state.extent(extentId(last))?.phase, "sealing");
  const [one, two] = extents.map(({ id }) => store.state.extent(id));
  assert.deepEqual([one?.phase, one?.sealedLengthBytes, one?.version, one?.creation], ["sealed", 10, 3, (last + 2) * 10]);
  assert.equal(two?.phase, "sealing");
  assert.deepEqual(unwrap(planTakeBack(store.state, "/s", extents, undefined)).changes, []);
  store.sweep();
  assert.equal(chooseTakenBack(store.state, extents, 0, allRules).taken.size, 0);
});

test("taken back: the bytes of its record are frozen; one that is cut or changed is damaged", () => {
  const lost = [{ stream: "/ps/table-1/row-data", id: 30_000_001, bytes: 4_096, why: "no replica is intact" }];
  const record = { lineage: 5, floor: 30_000_000, wallMs: 1_795_824_000_000, extents: 3, lostCount: 1, lost, absent: ["extent-node-2"] };
  const bytes = encodeTakenBack(record, checksum);
  assert.equal(takenBackKey, "taken-back");
  const golden = new URL("../../../../tests/golden/metadata/v1/taken-back.bin", import.meta.url);
  if (process.env.STAMP_WRITE_GOLDEN && !existsSync(golden)) writeFileSync(golden, bytes);
  assert.deepEqual(new Uint8Array(readFileSync(golden)), bytes);
  assert.deepEqual(unwrap(decodeTakenBack(bytes, checksum)), record);
  for (let i = 0; i < bytes.length; i += 7) {
    assert.ok(!decodeTakenBack(bytes.subarray(0, i), checksum).ok);
    assert.ok(
      !decodeTakenBack(
        bytes.map((byte, at) => (at === i ? byte ^ 1 : byte)),
        checksum,
      ).ok,
    );
  }
  assert.ok(!decodeTakenBack(encodeTakenBack({ ...record, floor: -1 }, checksum), checksum).ok);
  assert.ok(!decodeTakenBack(encodeTakenBack({ ...record, lost: [{}] as never }, checksum), checksum).ok);
});

test("taken back: a restore is judged by all replicas: what comes back, what is lost, what had been left before", () => {
  const { store, last } = storeOf(2);
  const at = (id: number, predecessor: number, more: Partial<UnknownReplica> = {}): UnknownReplica =>
    replica("a", { id: extentId(id), predecessor, ownerEpoch: 3, ...more });
  const held = [
    at(last + 2, last),
    at(last + 6, last + 5),
    at(last + 7, last + 6, { problems: ["its file is gone"] }),
    at(last + 8, 0, { problems: ["its file is gone"], durableBytes: 0 }),
    at(last - 1, 0),
    at(last - 2, 0, { problems: ["its file is gone"] }),
  ];
  const { taken, lost, left, missing } = judgeRestored(store.state, held, 0, allRules);
  assert.deepEqual(
    taken.get("/s")?.map(({ id }) => id - last),
    [2, 6],
  );
  assert.deepEqual(
    lost.map(({ id, bytes }) => [id - last, bytes]),
    [[7, 100]],
  );
  assert.deepEqual(
    missing.map(({ id }) => id - last),
    [5],
    "told apart: it may have been truncated away",
  );
  assert.deepEqual(
    left.map(({ extent: { id } }) => id - last),
    [-1],
  );
});

test("taken back: what nothing proves is not told as lost if an earlier restore left it", () => {
  const { store, last } = storeOf(2);
  const damaged = [replica("a", { id: extentId(last + 7), stream: "", problems: ["its file is gone"] })];
  assert.equal(judgeRestored(store.state, damaged, last + 7, allRules).lost.length, 1);
  assert.equal(judgeRestored(store.state, damaged, last + 8, allRules).lost.length, 0);
});

test("taken back: streams went on only if an extent has a number from after the raise, which one that was taken back has not", () => {
  const { store, last } = storeOf(1);
  store.do(planReserveIds(store.state, 1_000_000));
  store.do(planTakeBack(store.state, "/s", [extent(last + 2, last)], undefined));
  assert.equal(wentOnSince(store.state), false);
  store.extend("/s", 3);
  assert.equal(wentOnSince(store.state), true);
});

test("taken back: an extent inside a list is gone if the disk of every replica was listed, and none has it", () => {
  const { store, last } = storeOf(1);
  const places = store.state.extent(extentId(last))?.replicas ?? [];
  const disks = new Map(places.map(({ diskId, nodeId }) => [nodeId, diskId]));
  assert.deepEqual(goneInside(store.state, disks, new Set()), [], "it is the last of its list");
  store.do(planTakeBack(store.state, "/s", [extent(last + 2, last)], undefined));
  assert.deepEqual(goneInside(store.state, disks, new Set()), [last]);
  assert.deepEqual(goneInside(store.state, disks, new Set([extentId(last)])), [], "a node has it");
  const [{ nodeId = "" } = {}] = places;
  assert.deepEqual(goneInside(store.state, new Map([...disks, [nodeId, "another disk"]]), new Set()), [], "its disk is away");
  assert.deepEqual(goneInside(store.state, new Map([...disks].slice(1)), new Set()), [], "a node has not listed");
});
