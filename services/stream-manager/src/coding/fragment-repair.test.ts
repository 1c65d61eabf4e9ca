/** The order and the rate of repairs of fragments, what keeps a draining node's fragments, and a decoding onto old replicas. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, type RuleName, unwrap } from "@stamp/base";
import { NodeDuty } from "@stamp/wire";
import { Cluster } from "../testing/cluster.ts";
import {
  clusterOf,
  code,
  config,
  contentOf,
  filesOf,
  infoOf,
  isCoded,
  names,
  type Sealed,
  sealed,
  timeoutMs,
} from "../testing/coding-harness.ts";

/** Several coded extents, each of a stream of its own. */
async function coded(cluster: Cluster, count: number): Promise<Sealed[]> {
  const made: Sealed[] = [];
  for (let i = 0; i < count; i++) {
    const extent = await sealed(cluster, `/s${i}`);
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id));
    made.push(extent);
  }
  return made;
}

const repairOf = async (cluster: Cluster) => unwrap(await cluster.sm((sm, left) => sm.getRepairStatus({}, { timeoutMs: left })));

test("repair of fragments: the extent with the fewest losses left goes first", async () => {
  const cluster = clusterOf(171, ["sm1"], [], { repairBytesPerSecond: 400_000, repairAfterMs: 8_000 });
  const { sim } = cluster;
  await sim.run(async () => {
    await coded(cluster, 5);
    const holders = new Map((await cluster.extents()).map((one) => [one.location?.extentId ?? 0n, one.fragmentNodeIds]));
    const lossesOf = (id: bigint, pair: readonly string[]): number => holders.get(id)?.filter((name) => pair.includes(name)).length ?? 0;
    const ids = [...holders.keys()].filter((id) => (holders.get(id)?.length ?? 0) > 0);
    const pairs = names.flatMap((one) => names.filter((other) => other > one).map((other) => [one, other] as const));
    const pair = pairs.find((each) => {
      const losses = ids.map((id) => lossesOf(id, each));
      // The oldest extent, which a scan meets first, is not the one that is worst off.
      return losses[0] === 1 && losses.includes(2);
    });
    assert.ok(pair, "two nodes by whose loss some extents lose one fragment, and some two");
    const before = new Map((await cluster.extents()).map((one) => [one.location?.extentId ?? 0n, one.location?.version]));
    for (const name of pair) sim.crash(name, { stayDown: true });
    await cluster.until("the first is made anew", async () => (await repairOf(cluster)).fragmentsDone === 1n, 60_000);
    const changed = (await cluster.extents()).filter(({ location }) => location?.version !== before.get(location?.extentId ?? 0n));
    assert.deepEqual(
      changed.map(({ location }) => lossesOf(location?.extentId ?? 0n, pair)),
      [2],
    );
  });
});

test("repair of fragments: not faster than the rate of repairs, counted by the bytes that are read", async () => {
  const cluster = clusterOf(172, ["sm1"], [], { repairBytesPerSecond: 400_000 });
  const { sim } = cluster;
  await sim.run(async () => {
    const extents = await coded(cluster, 3);
    const infos = await Promise.all(extents.map(({ id }) => infoOf(cluster, id)));
    const lost = names.find((name) => infos.every((info) => info?.fragmentNodeIds.includes(name))) ?? "";
    assert.notEqual(lost, "", "a node with a fragment of each");
    sim.crash(lost, { stayDown: true });
    sim.disk(lost).wipe();
    sim.keyValue(lost).wipe();
    sim.restart(lost);
    await cluster.until("the first is made anew", async () => (await repairOf(cluster)).fragmentsDone >= 1n, 60_000);
    const fromMs = sim.nowMs;
    await cluster.until("all are", async () => (await repairOf(cluster)).fragmentsDone === 3n, 120_000);
    // Two more, each of which reads four fragments: as many bytes as the extent has, or a little more.
    const leastMs = (2 * (extents[0] as Sealed).content.length * 1_000) / 400_000;
    assert.ok(sim.nowMs - fromMs > leastMs - 500, `${sim.nowMs - fromMs} ms, at least ${leastMs}`);
  });
});

test("drain: the coder looks at all extents at once when a node's duty is set, not when its next look is due", async () => {
  for (const restMs of [1_000, 4_000, 7_000]) {
    const cluster = clusterOf(190);
    await cluster.sim.run(async () => {
      const [extent] = (await coded(cluster, 1)) as [Sealed];
      // Looks are 10 s apart while nothing is wrong.
      await cluster.sim.sleep(10_000 + restMs);
      const nodeId = (await infoOf(cluster, extent.id))?.fragmentNodeIds[0] ?? "";
      unwrap(await cluster.sm((sm, left) => sm.setNodeDuty({ nodeId, duty: NodeDuty.DRAINING }, { timeoutMs: left })));
      const moved = async (): Promise<boolean> => !(await infoOf(cluster, extent.id))?.fragmentNodeIds.includes(nodeId);
      await cluster.until("moved", moved, 2_000);
    });
  }
});

test("drain: a node whose fragments have no other place says so, and is emptied when a node is added", async () => {
  const cluster = new Cluster({ seed: 173, nodes: names.slice(0, 6), config });
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await sealed(cluster);
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id));
    const nodeId = (await infoOf(cluster, extent.id))?.fragmentNodeIds[3] ?? "";
    unwrap(await cluster.sm((sm, left) => sm.setNodeDuty({ nodeId, duty: NodeDuty.DRAINING }, { timeoutMs: left })));
    const nodeOf = async () => {
      const { nodes } = unwrap(await cluster.sm((sm, left) => sm.listNodes({}, { timeoutMs: left })));
      return nodes.find((node) => node.nodeId === nodeId);
    };
    await cluster.until(
      "the reason is told",
      async () => (await nodeOf())?.blocked.some((why) => /1 extents: no node can take a fragment/.test(why)) ?? false,
      60_000,
    );
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
    cluster.addNode("en7");
    await cluster.until("empty", async () => (await nodeOf())?.replicas === 0n, 90_000);
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
  });
});

const overOldReplicas = (seed: number, without: RuleName[] = []): Cluster =>
  new Cluster({ seed, nodes: names.slice(0, 6), config: { ...config, deletionGraceMs: 1_500 }, without });

/** Codes an extent and begins to decode it; the grace of the old replicas ends while some targets make no progress. */
async function decodeOverTheGrace(cluster: Cluster): Promise<{ readonly extent: Sealed; readonly old: readonly string[] }> {
  const { sim } = cluster;
  const extent = await sealed(cluster);
  const old = (await infoOf(cluster, extent.id))?.nodeIds ?? [];
  unwrap(await code(cluster, extent.id));
  await cluster.until("coded", () => isCoded(cluster, extent.id));
  unwrap(await cluster.sm((sm, left) => sm.replicateExtent({ extentId: extent.id }, { timeoutMs: left })));
  const others = names.slice(0, 6).filter((name) => !old.includes(name));
  for (const name of others) sim.pause(name);
  await sim.sleep(2_600);
  for (const name of others) sim.resume(name);
  return { extent, old };
}

test("decoding: a target that holds an old replica whose grace ends meanwhile keeps what the decoding makes", async () => {
  let onOld = 0;
  for (let seed = 180; seed < 186; seed++) {
    const cluster = overOldReplicas(seed);
    const { sim } = cluster;
    await sim.run(async () => {
      const { extent, old } = await decodeOverTheGrace(cluster);
      const isWhole = async (): Promise<boolean> => {
        const info = await infoOf(cluster, extent.id);
        return info?.coded === undefined && info?.attempt === "" && info.intactCopies === 3;
      };
      await cluster.until("replicated", isWhole, 120_000);
      await sim.sleep(10_000);
      const { nodeIds = [], location } = (await infoOf(cluster, extent.id)) ?? {};
      if (nodeIds.some((name) => old.includes(name))) onOld += 1;
      for (const address of location?.addresses ?? []) {
        const parts: Uint8Array[] = [];
        for (let at = 0; at < extent.content.length; at += parts.at(-1)?.length ?? 0) {
          const request = { extentId: extent.id, offsetBytes: BigInt(at), lengthBytes: 1 << 20 };
          parts.push(unwrap(await cluster.en(address).readRaw(request, { timeoutMs })).payload);
        }
        assert.deepEqual(concatBytes(parts), extent.content, `seed ${seed}, ${address}`);
      }
      await cluster.until("only replicas are left", async () => filesOf(cluster).every((file) => file.endsWith(".extent")), 60_000);
      assert.equal(filesOf(cluster).length, 3, `seed ${seed}`);
    });
  }
  assert.ok(onOld > 0, "some target had an old replica");
});

test("decoding, rule namedReplicasStay: without it what the decoding makes is deleted in the place of the old replica", async () => {
  let lost = 0;
  for (let seed = 180; seed < 186; seed++) {
    const cluster = overOldReplicas(seed, ["namedReplicasStay"]);
    await cluster.sim.run(async () => {
      const { extent } = await decodeOverTheGrace(cluster);
      await cluster.until("over", async () => (await infoOf(cluster, extent.id))?.attempt === "", 120_000);
      const { nodeIds = [], coded } = (await infoOf(cluster, extent.id)) ?? {};
      const held = new Set(filesOf(cluster));
      if (coded === undefined && nodeIds.some((name) => !held.has(`${name}: .extent`))) lost += 1;
    });
  }
  assert.ok(lost > 0, "a replica that the record names is gone");
});
