/** Streams as state and transactions: lists over segments, ownership, extents, and reports of nodes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, extentId, ownerEpoch, rulesWithout, unwrap } from "@stamp/base";
import { streamKey } from "./codec.ts";
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
import { refusal, replicas, Store } from "./testing/harness.ts";

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
