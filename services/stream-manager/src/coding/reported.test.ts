/**
 * Reports of people who run other coded stores, of repair and encoding. Those of reads are tested in
 * packages/stream-client/src/coded-reads.test.ts.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import type { Cluster } from "../testing/cluster.ts";
import {
  clusterOf,
  code,
  contentOf,
  filesOf,
  fragments,
  infoOf,
  isCoded,
  names,
  type Sealed,
  sealed,
  timeoutMs,
} from "../testing/coding-harness.ts";

const repairOf = async (cluster: Cluster) => unwrap(await cluster.sm((sm, left) => sm.getRepairStatus({}, { timeoutMs: left })));

/** The node comes back with an empty disk. */
function emptyDisk({ sim }: Cluster, name: string): void {
  sim.crash(name, { stayDown: true });
  sim.disk(name).wipe();
  sim.keyValue(name).wipe();
  sim.restart(name);
}

async function coded(cluster: Cluster, stream: string): Promise<Sealed> {
  const extent = await sealed(cluster, stream);
  unwrap(await code(cluster, extent.id));
  await cluster.until("coded", () => isCoded(cluster, extent.id));
  return extent;
}

test("reported: reads go to a disk that is being repaired; here readers are told the new place when all of it is durable", async () => {
  const cluster = clusterOf(221);
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await coded(cluster, "/s");
    const before = (await infoOf(cluster, extent.id))?.coded?.fragments[0];
    emptyDisk(cluster, (await infoOf(cluster, extent.id))?.fragmentNodeIds[0] ?? "");
    for (const name of names) sim.disk(name).slowFactor = 500;
    let seen = 0;
    const isRepaired = async (): Promise<boolean> => {
      const info = await infoOf(cluster, extent.id);
      if (info?.attempt !== "repair") return info?.coded?.fragments[0]?.version !== before?.version;
      assert.equal(info.coded?.fragments[0]?.version, before?.version, "the old place until the commit");
      const version = info.location?.version ?? 0n;
      for (const name of names) {
        const request = { extentId: extent.id, version, index: 0, offsetBytes: 0n, lengthBytes: 65_536 };
        const answer = await fragments(cluster, name).readFragment(request, { timeoutMs });
        const isMaking = sim
          .disk(name)
          .paths()
          .some((path) => path.endsWith(".making"));
        if (!isMaking) continue;
        assert.ok(!answer.ok && answer.failure.reason === "unknownExtent", `${name} gives no byte of what it makes`);
        seen += 1;
      }
      return false;
    };
    await cluster.until("repaired", isRepaired, 120_000);
    assert.ok(seen > 0, "the repair was seen under way");
    for (const name of names) sim.disk(name).slowFactor = 1;
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
  });
});

test("reported: repair slows down over time, and nobody can tell how far it is; here each fragment takes as long, and all are counted", async () => {
  const cluster = clusterOf(222, ["sm1"], [], { repairBytesPerSecond: 400_000 });
  const { sim } = cluster;
  await sim.run(async () => {
    for (let i = 0; i < 6; i++) await coded(cluster, `/s${i}`);
    const holders = (await cluster.extents()).flatMap(({ fragmentNodeIds }) => fragmentNodeIds);
    const countOf = (name: string): number => holders.filter((each) => each === name).length;
    const lost = names.toSorted((a, b) => countOf(b) - countOf(a))[0] ?? "";
    const total = countOf(lost);
    assert.ok(total >= 4, `${total} fragments on one node`);
    emptyDisk(cluster, lost);
    const doneMs: number[] = [];
    const told: number[] = [];
    const isOver = async (): Promise<boolean> => {
      const { fragmentsDone, fragmentsWaiting } = await repairOf(cluster);
      while (doneMs.length < Number(fragmentsDone)) doneMs.push(sim.nowMs);
      if (doneMs.length > 0) told.push(Number(fragmentsDone + fragmentsWaiting));
      return doneMs.length === total;
    };
    await cluster.until("all are made anew", isOver, 300_000);
    // Between the record of a fragment that was made and its count, one is missing.
    const missing = told.filter((count) => count !== total);
    assert.ok(missing.length < told.length / 4 && missing.every((count) => count === total - 1), `done and waiting are all: ${told}`);
    const tookMs = doneMs.slice(1).map((ms, i) => ms - (doneMs[i] as number));
    assert.ok(Math.max(...tookMs.slice(-2)) < 2 * Math.min(...tookMs.slice(0, 2)) + 500, `${tookMs}`);
  });
});

test("reported: encoding leaves too few fragments when a copy fails half-way; here the replicas stay until all was verified", async () => {
  for (const delayMs of [0, 1, 3, 10]) {
    const cluster = clusterOf(223);
    const { sim } = cluster;
    await sim.run(async () => {
      const extent = await sealed(cluster);
      const replicas = (await infoOf(cluster, extent.id))?.nodeIds ?? [];
      void code(cluster, extent.id);
      const holder = (): string | undefined =>
        names.find((name) => !replicas.includes(name) && filesOf(cluster).some((file) => file.startsWith(`${name}:`)));
      for (let i = 0; i < 50_000 && holder() === undefined; i++) await sim.sleep(0.1);
      assert.notEqual(holder(), undefined, "a fragment is made");
      await sim.sleep(delayMs);
      const victim = holder() ?? "";
      sim.crash(victim, { stayDown: true, unsynced: "lost" });
      await cluster.until("the attempt is over", async () => (await infoOf(cluster, extent.id))?.attempt === "", 60_000);
      const info = await infoOf(cluster, extent.id);
      if (info?.coded === undefined) assert.equal(info?.intactCopies, 3, `${delayMs} ms`);
      else {
        const whole = filesOf(cluster).filter((file) => file.endsWith(".fragment") && !file.startsWith(`${victim}:`));
        assert.equal(whole.length, 5, "all but the one that was lost afterwards");
      }
      await cluster.until(
        "coded without it",
        async () => {
          await code(cluster, extent.id);
          const { attempt, coded: stored, fragmentNodeIds = [] } = (await infoOf(cluster, extent.id)) ?? {};
          return stored !== undefined && attempt === "" && !fragmentNodeIds.includes(victim);
        },
        120_000,
      );
      assert.deepEqual(await contentOf(cluster, extent), extent.content);
    });
  }
});
