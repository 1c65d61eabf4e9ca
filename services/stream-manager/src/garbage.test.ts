/** The grace of replaced replicas belongs to one removal, also when their places leave the record and come back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, extentId, extentVersion, type Outcome, ok, ownerEpoch, type RuleName, unwrap } from "@stamp/base";
import type { ExtentRecord, ReplicaPlace, StreamState, TransactionPlan } from "@stamp/stream";
import { Garbage } from "./garbage.ts";
import type { Cluster } from "./testing/cluster.ts";
import { clusterOf, code, contentOf, filesOf, infoOf, isCoded, type Sealed, sealed } from "./testing/coding-harness.ts";
import { newestCopy, restore } from "./testing/restored-store.ts";

const graceMs = 12_000;
const replicaFiles = (cluster: Cluster): string[] =>
  filesOf(cluster)
    .filter((file) => file.endsWith(".extent"))
    .toSorted();

async function coded(cluster: Cluster, { id }: Sealed): Promise<void> {
  unwrap(await code(cluster, id));
  await cluster.until("coded", () => isCoded(cluster, id));
}

async function replicated(cluster: Cluster, { id }: Sealed): Promise<void> {
  unwrap(await cluster.sm((sm, left) => sm.replicateExtent({ extentId: id }, { timeoutMs: left })));
  await cluster.until("replicated", async () => {
    const info = await infoOf(cluster, id);
    return info?.coded === undefined && info?.attempt === "";
  });
}

/** Codes and decodes until every node was seen with a removed replica, each decoding within the grace; then the grace passes. */
async function takenBack(cluster: Cluster): Promise<Sealed> {
  const extent = await sealed(cluster);
  for (let i = 0; i < 4; i++) {
    await coded(cluster, extent);
    await cluster.sim.sleep(1_000);
    await replicated(cluster, extent);
  }
  await cluster.sim.sleep(graceMs + 3_000);
  return extent;
}

test("garbage, rule graceOfItsRemoval: replicas of an extent that is coded again stay for the whole grace; without it they go at once", async () => {
  for (const off of [[], ["graceOfItsRemoval"]] as RuleName[][]) {
    const cluster = clusterOf(301, ["sm1"], off, { deletionGraceMs: graceMs });
    const { sim } = cluster;
    await sim.run(async () => {
      const extent = await takenBack(cluster);
      const before = replicaFiles(cluster);
      assert.equal(before.length, 3);
      await coded(cluster, extent);
      const codedMs = sim.nowMs;
      await sim.sleep(graceMs - 4_000);
      const kept = replicaFiles(cluster);
      if (off.length > 0) {
        assert.ok(kept.length < 3, "some were deleted without a grace");
        return;
      }
      assert.deepEqual(kept, before);
      await cluster.until("the replicas are gone", async () => replicaFiles(cluster).length === 0, 30_000);
      assert.ok(sim.nowMs - codedMs >= graceMs);
      assert.deepEqual(await contentOf(cluster, extent), extent.content);
    });
  }
});

test("garbage: metadata of a copy that is younger than the grace find every replica of an extent that was coded since", async () => {
  const cluster = clusterOf(302, ["sm1"], [], { deletionGraceMs: graceMs });
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await takenBack(cluster);
    await sim.sleep(60_000);
    const copy = await newestCopy(cluster);
    await coded(cluster, extent);
    await sim.sleep(5_000);
    await restore(cluster, copy);
    await cluster.until("it leads again", async () => sim.role("sm1")?.status.state === "leader", 120_000);
    await cluster.until("three intact replicas", async () => (await infoOf(cluster, extent.id))?.intactCopies === 3, 30_000);
  });
});

test("garbage: a deletion that is answered late ends no later removal of the same place", async () => {
  const place = { nodeId: "en1", diskId: "d1" };
  const record = (removed: readonly ReplicaPlace[]): ExtentRecord => ({
    ...{ id: extentId(7), phase: "sealed", version: extentVersion(3), ownerEpoch: ownerEpoch(1), stream: "/s", sealedLengthBytes: 5 },
    ...{ replicas: [], removed },
  });
  const state = { current: record([place]) };
  const sent = Promise.withResolvers<void>();
  const late = Promise.withResolvers<void>();
  let commits = 0;
  let nowMs = 0;
  const term = {
    config: { deletionGraceMs: 1_000 },
    number: 1,
    ended: new AbortController().signal,
    nodes: { up: () => true, reachable: () => true, address: () => "en1" },
    state: {
      garbage: () => new Set([extentId(7)]),
      extent: () => state.current,
      node: () => undefined,
      unreferenced: () => new Set(),
      looseSegments: () => new Set(),
    },
    ledger: {
      commit: async (plan: (state: StreamState) => Outcome<TransactionPlan>) => {
        const planned = unwrap(plan(term.state as never));
        for (const change of planned.changes) if (change.kind === "extent") state.current = change.record;
        commits += 1;
        return ok();
      },
    },
    world: {
      rules: allRules,
      clock: { monotonicMs: () => nowMs, wallMs: () => 0 },
      transport: {
        client: () => ({
          deleteExtent: async () => {
            sent.resolve();
            await late.promise;
            return ok({});
          },
        }),
      },
    },
  };
  const garbage = new Garbage(term as never);
  await garbage.tick();
  nowMs = 1_000;
  const deleting = garbage.tick();
  await sent.promise;
  // A decoding makes a replica in this place, and a coding removes it again, before the node's answer is here.
  state.current = record([{ ...place }]);
  late.resolve();
  await deleting;
  assert.equal(commits, 1);
  assert.deepEqual(state.current.removed, [place], "the later removal waits for its own grace");
  await garbage.tick();
  nowMs = 1_999;
  await garbage.tick();
  assert.equal(state.current.removed.length, 1);
  nowMs = 2_000;
  await garbage.tick();
  assert.equal(state.current.removed.length, 0);
});
