/** The policy begins attempts by itself: with which extents, when, how many at once, and what it waits for. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { Status } from "@stamp/wire";
import { Cluster } from "../testing/cluster.ts";
import { clusterOf, config, contentOf, filesOf, infoOf, isCoded, names, type Sealed, sealed } from "../testing/coding-harness.ts";

const policy = { profile: "auto" as const, afterSeconds: 30, minBytes: 500_000 };
const byPolicy = (seed: number, more: object = {}): Cluster => clusterOf(seed, ["sm1"], [], { erasureCoding: policy, ...more });

async function factsOf(cluster: Cluster): Promise<Record<string, unknown>> {
  const answer = await cluster.sim.world("owner").transport.client("sm1", Status).getStatus({}, { timeoutMs: 1_000 });
  return (unwrap(answer).facts as { coding: Record<string, unknown> }).coding;
}

test("coding policy: a sealed extent is coded once it is old; commit logs and short extents stay; saved bytes are told", async () => {
  const cluster = byPolicy(151);
  await cluster.sim.run(async () => {
    const log = await sealed(cluster, "/ps/blob-1/commit-log");
    const data = await sealed(cluster, "/ps/blob-1/blob-data");
    await cluster.open("/short", 1);
    const short = await cluster.next("/short", 1, 0n);
    await cluster.append(short.extent, 1, 0n, "short", 5_000);
    await cluster.open("/short", 2);
    const sealedAtMs = cluster.sim.nowMs;
    await cluster.until("coded", () => isCoded(cluster, data.id), 90_000);
    const afterMs = cluster.sim.nowMs - sealedAtMs;
    assert.ok(afterMs > 25_000, `coded ${afterMs} ms after it was sealed`);
    assert.equal((await infoOf(cluster, data.id))?.coded?.profile, "rs-4-2");
    assert.deepEqual(await contentOf(cluster, data), data.content);
    await cluster.sim.sleep(60_000);
    assert.equal((await infoOf(cluster, log.id))?.coded, undefined);
    assert.equal((await infoOf(cluster, short.extent?.extentId ?? 0n))?.coded, undefined);
    const facts = await factsOf(cluster);
    assert.deepEqual([facts.profile, facts.coded, facts.codeWaiting, facts.failing], ["rs-4-2", 1, 0, 0]);
    assert.equal(facts.codedBytes, data.content.length);
    // Six fragments of a quarter, rounded up to 64 KiB, with a page for the head and one for the checksums.
    const fragmentBytes = 6 * (Math.ceil(data.content.length / 4 / 65_536) * 65_536 + 8_192);
    assert.equal(facts.fragmentBytes, fragmentBytes);
    assert.equal(facts.savedBytes, 3 * data.content.length - fragmentBytes);
    const onDisk = names.flatMap((name) => {
      const disk = cluster.sim.disk(name);
      return disk.paths().filter((path) => path.endsWith(".fragment"));
    });
    assert.equal(onDisk.length, 6);
  });
});

test("coding policy: with six extent nodes, or off, nothing is coded", async () => {
  for (const [nodes, erasureCoding, why] of [
    [names.slice(0, 6), policy, /auto needs 7 extent nodes, 6 serve/],
    [names, "off", /erasureCoding is off/],
  ] as const) {
    const cluster = new Cluster({ seed: 152, nodes: [...nodes], config: { ...config, erasureCoding } });
    await cluster.sim.run(async () => {
      const extent = await sealed(cluster);
      await cluster.sim.sleep(120_000);
      assert.equal((await infoOf(cluster, extent.id))?.coded, undefined);
      const facts = await factsOf(cluster);
      assert.equal(facts.profile, "");
      assert.match(String(facts.whyNotCoding), why);
    });
  }
});

/** Several sealed extents, each in a stream of its own. */
async function several(cluster: Cluster, count: number): Promise<Sealed[]> {
  const made: Sealed[] = [];
  for (let i = 0; i < count; i++) made.push(await sealed(cluster, `/s${i}`));
  return made;
}

test("coding policy: no more extents at once than codingsMax, and not faster than codingBytesPerSecond", async () => {
  for (const [codingsMax, codingBytesPerSecond] of [
    [2, 10_000_000_000],
    [4, 200_000],
  ] as const) {
    const cluster = byPolicy(153, { codingsMax, codingBytesPerSecond, erasureCoding: { ...policy, afterSeconds: 40 } });
    await cluster.sim.run(async () => {
      const extents = await several(cluster, 4);
      // The next leader sees all four at its first look, so they get old together.
      cluster.sim.crash("sm1");
      cluster.sim.restart("sm1");
      let most = 0;
      let firstMs = 0;
      for (let coded = 0; coded < 4; await cluster.sim.sleep(2)) {
        const infos = await cluster.extents();
        const running = infos.filter(({ attempt }) => attempt === "code").length;
        most = Math.max(most, running);
        if (running > 0) firstMs ||= cluster.sim.nowMs;
        coded = infos.filter((one) => one.coded !== undefined).length;
        assert.ok(cluster.sim.nowMs < 200_000, `${coded} are coded`);
      }
      const tookMs = cluster.sim.nowMs - firstMs;
      const [content] = extents.map((each) => each.content.length) as [number];
      if (codingsMax === 2) assert.equal(most, 2);
      else assert.ok(tookMs > (3 * content * 1_000) / codingBytesPerSecond, `${tookMs} ms for three after the first`);
    });
  }
});

test("coding policy: an extent without all its replicas is made whole first", async () => {
  const cluster = byPolicy(154, { repairAfterMs: 40_000 });
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await sealed(cluster);
    const holder = (await infoOf(cluster, extent.id))?.nodeIds[0] ?? "";
    sim.crash(holder, { stayDown: true });
    let attemptedAtMs = 0;
    const goneAtMs = sim.nowMs;
    await cluster.until(
      "an attempt is under way",
      async () => {
        const info = await infoOf(cluster, extent.id);
        if (info?.attempt === "code") attemptedAtMs = sim.nowMs;
        return attemptedAtMs > 0 || info?.coded !== undefined;
      },
      120_000,
    );
    assert.ok(sim.nowMs - goneAtMs > 40_000, "its third replica was made first");
    sim.restart(holder);
    await cluster.until("coded", () => isCoded(cluster, extent.id), 30_000);
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
  });
});

test("coding policy: an extent whose attempt was taken back rests for a minute, is told, and is coded then", async () => {
  const cluster = byPolicy(155, { repairAfterMs: 600_000, erasureCoding: { ...policy, afterSeconds: 5 } });
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await sealed(cluster);
    const holders = (await infoOf(cluster, extent.id))?.nodeIds ?? [];
    // No replica's node reaches these: with two of five others left every choice of targets has one of them.
    const others = names.filter((name) => !holders.includes(name)).slice(0, 3);
    sim.partition(others, holders);
    await cluster.until("taken back", async () => (await factsOf(cluster)).failing === 1, 120_000);
    const backAtMs = sim.nowMs;
    const facts = await factsOf(cluster);
    assert.equal((facts.failures as string[]).length, 1, JSON.stringify(facts.failures));
    sim.heal();
    await cluster.until("coded", () => isCoded(cluster, extent.id), 120_000);
    assert.ok(sim.nowMs - backAtMs > 50_000, `${sim.nowMs - backAtMs} ms later`);
    assert.equal((await factsOf(cluster)).failing, 0);
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
    await cluster.until("nothing else is left", async () => filesOf(cluster).length === 6, 60_000);
  });
});

test("coding policy: nothing is coded while lost replicas of other extents wait for their copies", async () => {
  const cluster = byPolicy(156, { repairBytesPerSecond: 1_024, erasureCoding: { ...policy, afterSeconds: 40 } });
  const { sim } = cluster;
  await sim.run(async () => {
    await several(cluster, 5);
    const infos = await cluster.extents();
    const counts = names.map((name) => ({ name, count: infos.filter(({ nodeIds }) => nodeIds.includes(name)).length }));
    const lost = counts.find(({ count }) => count >= 2 && count <= 3)?.name ?? "";
    sim.crash(lost, { stayDown: true });
    sim.disk(lost).wipe();
    sim.keyValue(lost).wipe();
    sim.restart(lost);
    await sim.sleep(120_000);
    const waiting = unwrap(await cluster.sm((sm, timeoutMs) => sm.getRepairStatus({}, { timeoutMs }))).replicasWaiting;
    assert.ok(waiting > 0n, "a copy waits for the rate");
    assert.deepEqual(
      (await cluster.extents()).filter(({ coded, attempt }) => coded !== undefined || attempt === "code"),
      [],
    );
  });
});
