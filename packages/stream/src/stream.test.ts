/** Streams as state and transactions: lists over segments, ownership, the seal machine, and the stored format. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import type { Rules } from "@stamp/base";
import { allRules, extentId, extentVersion, ownerEpoch, rulesWithout, unwrap } from "@stamp/base";
import fc from "fast-check";
import type { StoredRecord } from "./codec.ts";
import { decodeStored, encodeStored, keyOf, streamKey } from "./codec.ts";
import {
  planAbandonRepair,
  planAllocate,
  planBeginRepair,
  planBeginSeal,
  planDropAllocating,
  planFinishRepair,
  planForgetExtent,
  planMarkReplicas,
  planOpenExtent,
  planRecordSealed,
  planReserveIds,
  successorOf,
} from "./plan-extents.ts";
import { isDoubtful, planNode, unvouchedIncarnationsMax, unvouchedReportsMax } from "./plan-nodes.ts";
import { planCreateStream, planDeleteStream, planOpenStream, planTruncate } from "./plan-streams.ts";
import { segmentExtentsMax } from "./records.ts";
import { assess, RepairQueue } from "./repair.ts";
import type { SealAnswer } from "./seal-machine.ts";
import { SealMachine } from "./seal-machine.ts";
import { checksum, refusal, replicas, Store } from "./testing/harness.ts";

test("streams: a list over several segments is the same for its leader and for the next one, also truncated", () => {
  const store = new Store();
  store.do(planCreateStream(store.state, "/s", ownerEpoch(1)));
  const ids: number[] = [];
  for (let i = 0; i < 2 * segmentExtentsMax + 5; i++) ids.push(store.extend("/s", 1));
  const check = (expected: number[]): void => {
    assert.deepEqual([...store.state.extentsOf("/s")], expected);
    const loaded = store.reload();
    assert.deepEqual([...loaded.extentsOf("/s")], expected);
    for (const id of ids) assert.equal(loaded.references(extentId(id)), expected.includes(id) ? 1 : 0);
  };
  check(ids);
  assert.equal(store.state.stream("/s")?.segments.length, 2);
  for (const from of [1, 3, 999, 1_000, 1_001, 2_003]) {
    const before = extentId(ids[from] as number);
    store.do(planTruncate(store.state, "/s", ownerEpoch(1), before, allRules));
    check(ids.slice(from));
    assert.deepEqual([...store.reload().unreferenced()], [...store.state.unreferenced()]);
    store.sweep();
    assert.deepEqual(
      ids.filter((id) => store.state.extent(extentId(id))?.phase === "dropped"),
      ids.slice(0, from),
    );
  }
  const tail = store.extend("/s", 1);
  check([...ids.slice(2_003), tail]);
  store.do(planDeleteStream(store.state, "/s", ownerEpoch(1), allRules));
  assert.equal(store.state.stream("/s"), undefined);
  store.sweep();
  assert.equal([...store.keys.keys()].filter((key) => key.startsWith("sm/segment/") || key === streamKey("/s")).length, 0);
  for (const id of store.state.garbage()) store.do(planForgetExtent(store.state, id));
  assert.equal(store.reload().extentCount, 0);
});

test("streams: every change of a lower or unknown owner is refused, opening always writes", () => {
  const store = new Store();
  store.do(planOpenStream(store.state, "/s", ownerEpoch(5), true, allRules));
  const id = extentId(store.extend("/s", 5));
  const again = unwrap(planOpenStream(store.state, "/s", ownerEpoch(5), false, allRules));
  assert.deepEqual(
    again.changes.map((change) => change.kind),
    ["stream", "extent"],
    "a conditional write also at an equal epoch, and the last extent in the same transaction",
  );
  store.do(planOpenStream(store.state, "/s", ownerEpoch(6), false, allRules));
  assert.equal(store.state.extent(id)?.phase, "sealing");
  const by = (epoch: number, rules = allRules): string[] => {
    const owner = { stream: "/s", ownerEpoch: ownerEpoch(epoch), predecessor: id, id: extentId(1), replicas };
    return [
      refusal(planTruncate(store.state, "/s", ownerEpoch(epoch), id, rules)),
      refusal(planDeleteStream(store.state, "/s", ownerEpoch(epoch), rules)),
      refusal(planOpenExtent(store.state, owner, undefined, rules)),
      refusal(planOpenStream(store.state, "/s", ownerEpoch(epoch), false, rules)),
    ];
  };
  assert.deepEqual(by(5), ["staleOwnerEpoch", "staleOwnerEpoch", "staleOwnerEpoch", "staleOwnerEpoch"]);
  assert.deepEqual(by(7), ["staleOwnerEpoch", "staleOwnerEpoch", "staleOwnerEpoch", "ok"]);
  assert.deepEqual(by(5, rulesWithout("ownerEpochAtManager"))[3], "ok");
  assert.equal(refusal(planCreateStream(store.state, "/s", ownerEpoch(5))), "streamExists");
  assert.equal(refusal(planOpenStream(store.state, "/t", ownerEpoch(1), false, allRules)), "streamNotFound");
});

test("streams: of two successors of one extent only the first is opened, the other is dropped", () => {
  const store = new Store();
  store.do(planCreateStream(store.state, "/s", ownerEpoch(1)));
  const first = extentId(store.extend("/s", 1));
  store.do(planReserveIds(store.state, 2));
  const [a, b] = [extentId(store.state.nextId - 2), extentId(store.state.nextId - 1)];
  const request = { stream: "/s", ownerEpoch: ownerEpoch(1), predecessor: first };
  store.do(planAllocate(store.state, { ...request, id: a, replicas }, allRules));
  store.do(planAllocate(store.state, { ...request, id: b, replicas }, allRules));
  assert.equal(
    refusal(planOpenExtent(store.state, { ...request, id: a }, undefined, allRules)),
    "conflict",
    "its predecessor is not sealed",
  );
  store.do(planBeginSeal(store.state, first));
  store.do(planRecordSealed(store.state, first, 100));
  store.do(planOpenExtent(store.state, { ...request, id: a }, undefined, allRules));
  assert.equal(refusal(planOpenExtent(store.state, { ...request, id: b }, undefined, allRules)), "conflict");
  assert.deepEqual(unwrap(successorOf(store.state, "/s", first)), { kind: "found", id: a });
  store.do(planDropAllocating(store.state, [a, b]));
  assert.deepEqual([store.state.extent(a)?.phase, store.state.extent(b)?.phase], ["open", "dropped"]);
  store.do(planRecordSealed(store.state, first, 50));
  assert.equal(store.state.extent(first)?.sealedLengthBytes, 100, "the first recorded length wins");
});

test("extents: repair raises the version, records its target first, then replaces; an abandoned copy is garbage", () => {
  const store = new Store();
  store.do(planCreateStream(store.state, "/s", ownerEpoch(1)));
  const id = extentId(store.extend("/s", 1));
  store.extend("/s", 1);
  store.do(planMarkReplicas(store.state, id, new Set(["n1", "n2"]), true));
  const target = { nodeId: "n4", diskId: "d4" };
  store.do(planBeginRepair(store.state, id, target));
  assert.equal(refusal(planBeginRepair(store.state, id, { nodeId: "n5", diskId: "d5" })), "conflict");
  store.do(planAbandonRepair(store.state, id));
  assert.deepEqual(store.state.extent(id)?.removed, [target]);
  store.do(planBeginRepair(store.state, id, target));
  const third = store.state.extent(id)?.replicas[2];
  store.do(planFinishRepair(store.state, id, third));
  const extent = store.reload().extent(id);
  assert.equal(extent?.version, 4);
  assert.deepEqual(
    extent?.replicas.map((replica) => [replica.nodeId, replica.complete]),
    [
      ["n1", true],
      ["n2", true],
      ["n4", true],
    ],
  );
  assert.deepEqual(extent?.removed, [{ nodeId: "n3", diskId: "disk of n3" }]);
  assert.equal(extent?.repair, undefined);
});

test("nodes: an older incarnation of a disk is refused, a new disk begins again", () => {
  const store = new Store();
  const node = { nodeId: "n1", address: "a", diskId: "d1", faultDomain: "f", incarnation: 5 };
  store.do(planNode(store.state, node));
  assert.deepEqual(unwrap(planNode(store.state, node)).changes, [], "nothing to write");
  assert.equal(refusal(planNode(store.state, { ...node, incarnation: 4 })), "conflict");
  store.do(planNode(store.state, { ...node, diskId: "d2", incarnation: 1 }));
  assert.equal(store.reload().node("n1")?.diskId, "d2");
});

test("nodes: a lower incarnation is recorded if the node itself answers with it and no other was recorded meanwhile", () => {
  const store = new Store();
  const node = { nodeId: "n1", address: "a", diskId: "d1", faultDomain: "f", incarnation: Number.MAX_SAFE_INTEGER };
  store.do(planNode(store.state, node));
  assert.equal(refusal(planNode(store.state, { ...node, incarnation: 4 }, 9)), "conflict");
  store.do(planNode(store.state, { ...node, incarnation: 4 }, Number.MAX_SAFE_INTEGER));
  assert.equal(store.reload().node("n1")?.incarnation, 4);
});

test("nodes: a report is doubtful below the known numbers, and from a named distance above them", () => {
  const recorded = { diskId: "d1", incarnation: 5 };
  const heard = { diskId: "d1", incarnation: 5, reportNumber: 70 };
  const doubtful = (diskId: string, incarnation: number, reportNumber: number, rules = allRules): boolean =>
    isDoubtful(recorded, heard, { diskId, incarnation, reportNumber }, rules);
  assert.equal(doubtful("d1", 5, 71), false);
  assert.equal(doubtful("d1", 5, 70 + unvouchedReportsMax), false);
  assert.equal(doubtful("d1", 5, 71 + unvouchedReportsMax), true);
  assert.equal(doubtful("d1", 5, 70), true);
  assert.equal(doubtful("d1", 5 + unvouchedIncarnationsMax, 1), false, "reports of each start count from 1");
  assert.equal(doubtful("d1", 6 + unvouchedIncarnationsMax, 1), true);
  assert.equal(doubtful("d1", 6, unvouchedReportsMax + 1), true);
  assert.equal(doubtful("d1", 4, 71), true);
  assert.equal(doubtful("d2", 1, 1), false, "a new disk counts its starts anew");
  assert.equal(doubtful("d2", unvouchedIncarnationsMax + 1, 1), true);
  assert.equal(isDoubtful(undefined, undefined, { diskId: "d1", incarnation: 17, reportNumber: 1 }, allRules), true);
  assert.equal(doubtful("d1", Number.MAX_SAFE_INTEGER, 1, rulesWithout("reportsVouched")), false);
});

const length = (durableBytes: number, committedBytes = 0): SealAnswer => ({
  kind: "length",
  durableBytes,
  committedBytes,
  restarted: false,
});

test("seal: a dialogue of three replicas", () => {
  const machine = new SealMachine(["a", "b", "c"], allRules);
  assert.deepEqual(machine.decide(5_000), { kind: "wait" });
  machine.answered("a", length(300));
  assert.deepEqual(machine.decide(1), { kind: "wait", untilMs: 2_000 });
  machine.answered("b", length(200));
  assert.deepEqual(machine.decide(9), { kind: "wait", untilMs: 10 });
  assert.deepEqual(machine.unanswered, ["c"]);
  const decision = machine.decide(10);
  assert.deepEqual(decision, { kind: "seal", lengthBytes: 200, counted: ["a", "b"], suspect: [], lossAccepted: false });
  machine.answered("c", length(100));
  assert.deepEqual(machine.decide(11), decision, "late answers are ignored");
});

test("seal: who is known to be unreachable is not waited for when two answers count", () => {
  const machine = new SealMachine(["a", "b", "c"], allRules);
  machine.unreachable("c");
  machine.answered("a", length(300));
  assert.deepEqual(machine.decide(1), { kind: "wait", untilMs: 2_000 }, "b may answer");
  machine.answered("b", length(200));
  assert.deepEqual(machine.decide(1), { kind: "seal", lengthBytes: 200, counted: ["a", "b"], suspect: [], lossAccepted: false });
});

test("seal: one answer is enough after 200 ms when everybody else is known to be unreachable", () => {
  const machine = new SealMachine(["a", "b", "c"], allRules);
  machine.answered("a", length(300));
  machine.unreachable("b");
  assert.deepEqual(machine.decide(500), { kind: "wait", untilMs: 2_000 }, "c may answer");
  machine.unreachable("c");
  assert.deepEqual(machine.decide(199), { kind: "wait", untilMs: 200 }, "a node that starts again refuses connections for a moment");
  assert.deepEqual(machine.decide(200), { kind: "seal", lengthBytes: 300, counted: ["a"], suspect: [], lossAccepted: false });
  const lost = new SealMachine(["a", "b"], allRules);
  lost.clientKnows(301);
  lost.answered("a", length(300));
  lost.unreachable("b");
  assert.deepEqual(lost.decide(60_000), { kind: "wait" }, "an answer that does not count is never enough");
});

test("seal: all answers at once need no patience, one intact answer needs 2 s unless all have answered", () => {
  const all = new SealMachine(["a", "b", "c"], allRules);
  for (const node of ["a", "b", "c"]) all.answered(node, length(7));
  assert.equal(all.decide(0).kind, "seal");
  const one = new SealMachine(["a", "b", "c"], allRules);
  one.answered("a", length(7));
  assert.equal(one.decide(1_999).kind, "wait");
  assert.equal(one.decide(2_000).kind, "seal");
  const broken = new SealMachine(["a", "b", "c"], allRules);
  broken.answered("a", { kind: "unknownExtent" });
  broken.answered("b", { kind: "damaged" });
  assert.equal(broken.decide(60_000).kind, "wait");
  broken.answered("c", length(9));
  assert.deepEqual(broken.decide(60_000), { kind: "seal", lengthBytes: 9, counted: ["c"], suspect: [], lossAccepted: false });
});

test("seal: a replica below a committed length known to another or to the client does not count", () => {
  const heard = new SealMachine(["a", "b", "c"], allRules);
  heard.answered("a", length(100));
  heard.answered("b", length(300, 250));
  heard.answered("c", length(280, 200));
  assert.deepEqual(heard.decide(0), { kind: "seal", lengthBytes: 280, counted: ["b", "c"], suspect: ["a"], lossAccepted: false });
  const client = new SealMachine(["a", "b"], allRules);
  client.clientKnows(150);
  client.answered("a", length(100));
  assert.deepEqual(client.decide(60_000), { kind: "wait" }, "the only answer lost data: it is not sealed");
  client.answered("b", length(150));
  assert.deepEqual(client.decide(60_000), { kind: "seal", lengthBytes: 150, counted: ["b"], suspect: ["a"], lossAccepted: false });
});

test("seal: accepted loss takes the longest length that is left, and only when none counts", () => {
  const lost = new SealMachine(["a", "b", "c"], allRules);
  lost.clientKnows(150);
  lost.answered("a", length(100));
  lost.answered("b", { kind: "damaged" });
  assert.deepEqual(lost.decide(60_000), { kind: "wait" });
  lost.acceptLoss(60_000);
  assert.deepEqual(lost.decide(60_001), { kind: "wait", untilMs: 62_000 }, "the third one may still answer");
  assert.deepEqual(lost.decide(62_000), { kind: "seal", lengthBytes: 100, counted: ["a"], suspect: ["b", "c"], lossAccepted: true });
  const intact = new SealMachine(["a", "b"], allRules);
  intact.acceptLoss(0);
  intact.answered("a", length(5));
  intact.answered("b", length(7));
  assert.deepEqual(intact.decide(1), { kind: "seal", lengthBytes: 5, counted: ["b", "a"], suspect: [], lossAccepted: false });
  const nothing = new SealMachine(["a"], allRules);
  nothing.acceptLoss(0);
  nothing.answered("a", { kind: "unknownExtent" });
  assert.deepEqual(nothing.decide(1), { kind: "seal", lengthBytes: 0, counted: [], suspect: ["a"], lossAccepted: true });
});

test("seal: without its rules lost data and unknown extents become the length", () => {
  const known = new SealMachine(["a", "b"], rulesWithout("knownCommittedLength"));
  known.clientKnows(150);
  known.answered("a", length(100));
  known.answered("b", length(150));
  assert.deepEqual(known.decide(0), { kind: "seal", lengthBytes: 100, counted: ["b", "a"], suspect: [], lossAccepted: false });
  const unknown = new SealMachine(["a", "b"], rulesWithout("unknownIsNotLength"));
  unknown.answered("a", { kind: "unknownExtent" });
  unknown.answered("b", length(150));
  assert.deepEqual(unknown.decide(0), { kind: "seal", lengthBytes: 0, counted: ["b", "a"], suspect: [], lossAccepted: false });
});

test("seal: whatever answers when, nothing that every replica holds is cut off, and nothing known to be committed", () => {
  const nodes = ["a", "b", "c"];
  const answer = fc.record({
    node: fc.nat(2),
    kind: fc.constantFrom("length", "length", "length", "unknownExtent", "damaged"),
    atMs: fc.nat(3_000),
  });
  const run = (rules: Rules) =>
    // Every replica holds at least `committed` but those that lie; those answer less.
    fc.property(
      fc.nat(100),
      fc.array(fc.nat(50), { minLength: 3, maxLength: 3 }),
      fc.nat(3),
      fc.array(answer, { maxLength: 12 }),
      (committed, extra, liar, answers) => {
        const machine = new SealMachine(nodes, rules);
        machine.clientKnows(committed);
        for (const one of answers.toSorted((x, y) => x.atMs - y.atMs)) {
          const lies = one.node === liar && committed > 0;
          const durable = lies ? committed - 1 : committed + (extra[one.node] as number);
          machine.answered(nodes[one.node] as string, one.kind === "length" ? length(durable) : { kind: one.kind as "damaged" });
          const decision = machine.decide(one.atMs);
          if (decision.kind !== "seal") continue;
          assert.ok(decision.lengthBytes >= committed);
        }
      },
    );
  fc.assert(run(allRules));
  assert.ok(fc.check(run(rulesWithout("knownCommittedLength")), { numRuns: 2_000, seed: 3 }).failed);
});

test("repair: the fewest intact copies first, each extent once; a lost replica before one of a node that is to be emptied", () => {
  const queue = new RepairQueue();
  queue.offer(extentId(1), 3, 10);
  queue.offer(extentId(2), 1, 20);
  queue.offer(extentId(3), 2, 30);
  queue.offer(extentId(1), 2, 10);
  queue.offer(extentId(4), 0, 0);
  assert.deepEqual([queue.size, queue.bytes, queue.endangered], [4, 60, 2]);
  queue.drop(extentId(4));
  assert.deepEqual([queue.take(), queue.take(), queue.take(), queue.take()], [2, 3, 1, undefined]);
  assert.deepEqual([queue.size, queue.bytes], [0, 0]);

  const extent = {
    id: extentId(1),
    phase: "sealed" as const,
    version: extentVersion(2),
    ownerEpoch: ownerEpoch(1),
    stream: "/s",
    replicas: replicas.map((replica) => ({ ...replica, complete: true })),
    sealedLengthBytes: 10,
    removed: [],
  };
  const judge = (states: string, one = extent) =>
    assess(one, 3, (replica) => {
      const state = states[one.replicas.indexOf(replica)];
      return { live: state === "l" || state === "d", lost: state === "x", leaving: state === "d" };
    });
  assert.deepEqual(judge("lll"), { kind: "fine" });
  assert.deepEqual(judge("lla"), { kind: "grace" });
  assert.deepEqual(judge("dlx"), { kind: "repair", replaced: extent.replicas[2], copiesLeft: 2 });
  assert.deepEqual(judge("dll"), { kind: "repair", replaced: extent.replicas[0], copiesLeft: 3 });
  assert.deepEqual(judge("xxa"), { kind: "unreachable" });
  assert.equal(judge("xxx", { ...extent, sealedLengthBytes: 0 }).kind, "repair", "an empty extent needs no source");
  assert.deepEqual(judge("dl", { ...extent, replicas: extent.replicas.slice(0, 2) }), {
    kind: "repair",
    replaced: undefined,
    copiesLeft: 2,
  });
});

const goldenFolder = new URL("../../../tests/golden/metadata/", import.meta.url);
const golden: Record<string, StoredRecord> = {
  "v1/ids": { kind: "ids", next: 257 },
  "v1/stream": {
    kind: "stream",
    record: {
      name: "/pm/map/metadata",
      ownerEpoch: ownerEpoch(3),
      segments: [{ id: 9, count: 1_000 }],
      skipCount: 12,
      tail: [extentId(1_009)],
    },
  },
  "v1/segment": { kind: "segment", id: 9, extents: [extentId(1), extentId(2)] },
  "v1/extent-open": {
    kind: "extent",
    record: {
      id: extentId(1_009),
      phase: "open",
      version: extentVersion(1),
      ownerEpoch: ownerEpoch(3),
      stream: "/pm/map/metadata",
      replicas: replicas.map((one) => ({ ...one, complete: false })),
      removed: [],
    },
  },
  "v1/extent-repaired": {
    kind: "extent",
    record: {
      id: extentId(7),
      phase: "sealed",
      version: extentVersion(4),
      ownerEpoch: ownerEpoch(1),
      stream: "/a b/é",
      replicas: replicas.map((one) => ({ ...one, complete: true })),
      sealedLengthBytes: 67_108_864,
      repair: { nodeId: "n5", diskId: "d5" },
      removed: [{ nodeId: "n4", diskId: "d4" }],
    },
  },
  "v1/node": {
    kind: "node",
    record: { nodeId: "extent-node-1", address: "127.0.0.1:7301", diskId: "d", faultDomain: "rack 1", incarnation: 12 },
  },
  "v2/extent-checksum": {
    kind: "extent",
    record: {
      id: extentId(8),
      phase: "sealed",
      version: extentVersion(2),
      ownerEpoch: ownerEpoch(1),
      stream: "/a",
      replicas: replicas.map((one) => ({ ...one, complete: true })),
      sealedLengthBytes: 1_000,
      removed: [],
      checksum: 4_000_000_000,
    },
  },
  "v2/extent-untold": {
    kind: "extent",
    record: {
      id: extentId(10),
      phase: "sealed",
      version: extentVersion(2),
      ownerEpoch: ownerEpoch(1),
      stream: "/a",
      replicas: replicas.map((one) => ({ ...one, complete: false })),
      sealedLengthBytes: 500,
      removed: [],
      untold: ["n2"],
    },
  },
  "v2/extent-loss": {
    kind: "extent",
    record: {
      id: extentId(9),
      phase: "sealed",
      version: extentVersion(2),
      ownerEpoch: ownerEpoch(1),
      stream: "/a",
      replicas: replicas.map((one) => ({ ...one, complete: false })),
      sealedLengthBytes: 500,
      removed: [],
      loss: { knownCommittedBytes: 700, wallMs: 1_790_000_000_000, note: "two disks burnt" },
    },
  },
  "v3/extent-dropped": {
    kind: "extent",
    record: {
      id: extentId(11),
      phase: "dropped",
      version: extentVersion(2),
      ownerEpoch: ownerEpoch(1),
      stream: "/a",
      replicas: replicas.map((one) => ({ ...one, complete: true })),
      sealedLengthBytes: 500,
      removed: [],
      checksum: 7,
      droppedAtMs: 1_790_000_000_000,
    },
  },
  "v4/extent-coding": {
    kind: "extent",
    record: {
      id: extentId(12),
      phase: "sealed",
      version: extentVersion(5),
      ownerEpoch: ownerEpoch(1),
      stream: "/a",
      replicas: replicas.map((one) => ({ ...one, complete: true })),
      sealedLengthBytes: 500,
      removed: [],
      checksum: 7,
      attempt: {
        kind: "code",
        version: extentVersion(5),
        profile: "rs-4-2",
        targets: ["n1", "n2", "n3", "n4", "n5", "n6"].map((nodeId) => ({ nodeId, diskId: `disk of ${nodeId}` })),
      },
      removedFragments: [{ nodeId: "n7", diskId: "d7", version: extentVersion(3) }],
    },
  },
  "v4/extent-coded": {
    kind: "extent",
    record: {
      id: extentId(13),
      phase: "sealed",
      version: extentVersion(8),
      ownerEpoch: ownerEpoch(1),
      stream: "/a",
      replicas: [],
      sealedLengthBytes: 500,
      removed: replicas,
      checksum: 7,
      coded: {
        profile: "rs-4-2",
        fragments: ["n1", "n2", "n3", "n4", "n5", "n6"].map((nodeId) => ({ nodeId, diskId: "d", version: extentVersion(5) })),
      },
      attempt: { kind: "repair", version: extentVersion(8), index: 3, target: { nodeId: "n7", diskId: "d7" } },
    },
  },
  "v4/extent-decoding": {
    kind: "extent",
    record: {
      id: extentId(14),
      phase: "sealed",
      version: extentVersion(9),
      ownerEpoch: ownerEpoch(1),
      stream: "/a",
      replicas: [],
      sealedLengthBytes: 500,
      removed: [],
      checksum: 7,
      coded: { profile: "rs-4-2", fragments: [{ nodeId: "n1", diskId: "d", version: extentVersion(5) }] },
      attempt: { kind: "decode", version: extentVersion(9), targets: replicas },
    },
  },
  "v2/node-draining": {
    kind: "node",
    record: { nodeId: "n1", address: "127.0.0.1:7301", diskId: "d", faultDomain: "n1", incarnation: 3, duty: "draining" },
  },
};

test("metadata format: every record is written and read as it always was; any flipped or missing byte is damage", () => {
  for (const [name, stored] of Object.entries(golden)) {
    const url = new URL(`${name}.bin`, goldenFolder);
    if (process.env.STAMP_WRITE_GOLDEN && !existsSync(url)) writeFileSync(url, encodeStored(stored, checksum));
    const bytes = new Uint8Array(readFileSync(url));
    assert.deepEqual(encodeStored(stored, checksum), bytes, name);
    assert.deepEqual(unwrap(decodeStored(keyOf(stored), bytes, checksum)), stored, name);
    for (let i = 0; i < bytes.length; i++) {
      const flipped = new Uint8Array(bytes);
      flipped[i] = (flipped[i] as number) ^ 0x04;
      const outcome = decodeStored(keyOf(stored), flipped, checksum);
      assert.ok(!outcome.ok && outcome.failure.reason === "damaged", `${name}, byte ${i}`);
      assert.ok(!decodeStored(keyOf(stored), bytes.subarray(0, i), checksum).ok, `${name}, first ${i} bytes`);
    }
  }
  assert.equal(keyOf(golden["v1/extent-open"] as StoredRecord), "sm/extent/0000000000001009");
  assert.ok(!decodeStored("sm/other", new Uint8Array(10), checksum).ok);
});

test("metadata format: a list whose segment or extent is missing does not load", () => {
  const store = new Store();
  store.do(planCreateStream(store.state, "/s", ownerEpoch(1)));
  const id = store.extend("/s", 1);
  store.keys.delete(keyOf({ kind: "extent", record: store.state.extent(extentId(id)) as never }));
  assert.throws(() => store.reload(), /no record/);
});
