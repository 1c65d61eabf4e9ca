/**
 * Status and pause of erasure coding. A pause holds under later leaders, after a restart of everything, and with a
 * damaged record.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import type { MetadataClient } from "@stamp/metadata-store";
import { codingPauseKey, decodeCodingPause, encodeCodingPause } from "@stamp/stream";
import type { Term } from "../term/term.ts";
import type { Cluster } from "../testing/cluster.ts";
import { clusterOf, code, infoOf, isCoded, sealed } from "../testing/coding-harness.ts";
import { CodingPauses } from "./pauses.ts";

const policy = { profile: "auto" as const, afterSeconds: 5, minBytes: 500_000 };
const byPolicy = (seed: number, more: object = {}): Cluster => clusterOf(seed, ["sm1", "sm2"], [], { erasureCoding: policy, ...more });
const statusOf = async (cluster: Cluster) => unwrap(await cluster.sm((sm, timeoutMs) => sm.getCodingStatus({}, { timeoutMs })));
const setPaused = async (cluster: Cluster, paused: boolean, note = "") =>
  unwrap(await cluster.sm((sm, timeoutMs) => sm.setCodingPaused({ paused, note }, { timeoutMs })));
const planOf = async (cluster: Cluster, afterExtentId = 0n, limit = 0) =>
  unwrap(await cluster.sm((sm, timeoutMs) => sm.listCodingPlan({ afterExtentId, limit }, { timeoutMs })));
const repairOf = async (cluster: Cluster) => unwrap(await cluster.sm((sm, timeoutMs) => sm.getRepairStatus({}, { timeoutMs })));

test("coding status: a pause holds under the next leader and after a restart of everything; resumed, the policy goes on", async () => {
  const cluster = byPolicy(161);
  const { sim } = cluster;
  await sim.run(async () => {
    await setPaused(cluster, true, "Ada: the disks are being replaced");
    const extent = await sealed(cluster);
    await sim.sleep(60_000);
    const status = await statusOf(cluster);
    assert.equal(status.pause?.note, "Ada: the disks are being replaced");
    assert.deepEqual([status.profile, status.codedExtents, status.extentsWaiting, status.etaMs], ["rs-4-2", 0n, 1n, undefined]);
    assert.deepEqual(
      (await planOf(cluster)).extents.map(({ extentId, why }) => [extentId, why]),
      [[extent.id, "coding is paused"]],
    );
    for (const names of [["sm1"], ["sm1", "sm2", "lock"]]) {
      for (const name of names) sim.crash(name);
      await sim.sleep(1_000);
      for (const name of names) sim.restart(name);
      await sim.sleep(60_000);
      assert.equal((await statusOf(cluster)).pause?.note, "Ada: the disks are being replaced", names.join());
      assert.equal(await isCoded(cluster, extent.id), false, names.join());
    }
    const resumed = await setPaused(cluster, false);
    assert.equal(resumed.pause, undefined);
    await cluster.until("coded", () => isCoded(cluster, extent.id), 60_000);
    await cluster.until("counted", async () => (await statusOf(cluster)).codedBytes > 0n, 20_000);
    const after = await statusOf(cluster);
    assert.deepEqual(
      [after.codedExtents, after.extentsDone, after.codedBytes, after.bytesDone],
      [1n, 1n, BigInt(extent.content.length), BigInt(extent.content.length)],
    );
    assert.equal(after.savedBytes, 3n * after.codedBytes - after.fragmentBytes);
    assert.deepEqual((await planOf(cluster)).extents, [], "what is coded is in no plan");
    const long = await cluster.sm((sm, timeoutMs) => sm.setCodingPaused({ paused: true, note: "x".repeat(1_001) }, { timeoutMs }));
    assert.ok(!long.ok && long.failure.reason === "badRequest");
  });
});

test("coding status: the plan has every extent that is not coded, page by page, with the reason; the status sums them up", async () => {
  const cluster = byPolicy(162, { erasureCoding: { ...policy, afterSeconds: 100_000 } });
  await cluster.sim.run(async () => {
    await sealed(cluster, "/ps/1/commit-log");
    const young = await sealed(cluster, "/ps/1/blob-data");
    await cluster.sim.sleep(30_000);
    const seen = new Map<bigint, string>();
    for (let after = 0n, more = true; more; ) {
      const page = await planOf(cluster, after, 1);
      assert.ok(page.extents.length <= 1 && page.lastExtentId > after);
      for (const { extentId, why } of page.extents) seen.set(extentId, why);
      after = page.lastExtentId;
      more = page.more;
    }
    assert.equal(seen.size, 2);
    assert.match(seen.get(young.id) ?? "", /afterSeconds \(100000\)/);
    const { reasons, extentsWaiting } = await statusOf(cluster);
    assert.equal(extentsWaiting, 0n);
    assert.deepEqual(reasons.map(({ why, extents }) => [why, extents]).sort(), [...seen.values()].map((why) => [why, 1n]).sort());
  });
});

test("coding status: a decoded extent is coded again only when it is old again", async () => {
  const cluster = byPolicy(163, { erasureCoding: { ...policy, afterSeconds: 60 } });
  await cluster.sim.run(async () => {
    const extent = await sealed(cluster);
    await cluster.until("coded", () => isCoded(cluster, extent.id), 120_000);
    unwrap(await cluster.sm((sm, timeoutMs) => sm.replicateExtent({ extentId: extent.id }, { timeoutMs })));
    await cluster.until("replicated", async () => (await infoOf(cluster, extent.id))?.intactCopies === 3, 60_000);
    const decodedMs = cluster.sim.nowMs;
    await cluster.until("coded again", () => isCoded(cluster, extent.id), 180_000);
    assert.ok(cluster.sim.nowMs - decodedMs > 50_000, `${cluster.sim.nowMs - decodedMs} ms later`);
  });
});

test("coding status: lost fragments are told with the losses that are left, and made anew within the repair status", async () => {
  const cluster = byPolicy(164, { erasureCoding: "off", repairAfterMs: 20_000 });
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await sealed(cluster);
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id));
    assert.deepEqual((await statusOf(cluster)).lossesLeft, []);
    assert.equal((await infoOf(cluster, extent.id))?.intactFragments, 6);
    const holders = (await infoOf(cluster, extent.id))?.fragmentNodeIds ?? [];
    for (const name of holders.slice(0, 2)) sim.crash(name, { stayDown: true });
    await cluster.until("seen", async () => (await repairOf(cluster)).fragmentsInGrace === 1n, 15_000);
    assert.equal((await infoOf(cluster, extent.id))?.intactFragments, 4);
    const [left] = (await statusOf(cluster)).lossesLeft;
    assert.deepEqual([left?.losses, left?.extents], [0, 1n]);
    assert.equal((await repairOf(cluster)).fragmentsEndangered, 1n);
    const seen: (readonly [waiting: bigint, etaMs: bigint | undefined])[] = [];
    await cluster.until(
      "made anew",
      async () => {
        const { fragmentsDone, fragmentBytesWaiting, fragmentEtaMs } = await repairOf(cluster);
        if (fragmentBytesWaiting > 0n) seen.push([fragmentBytesWaiting, fragmentEtaMs]);
        return fragmentsDone === 2n;
      },
      60_000,
    );
    await cluster.until("whole", async () => (await statusOf(cluster)).lossesLeft.length === 0, 20_000);
    const repaired = await repairOf(cluster);
    assert.deepEqual(
      [repaired.fragmentsWaiting, repaired.fragmentsInGrace, repaired.fragmentsUnreachable, repaired.fragmentsEndangered],
      [0n, 0n, 0n, 0n],
    );
    assert.equal((await infoOf(cluster, extent.id))?.intactFragments, 6);
    const { fragmentBytesDone, fragmentBytesRead, fragmentBytesWaiting, fragmentRunningMs, fragmentEtaMs } = repaired;
    assert.ok(fragmentBytesDone > 0n && fragmentBytesDone % 2n === 0n, `${fragmentBytesDone} bytes of two fragments`);
    assert.equal(fragmentBytesRead, 4n * fragmentBytesDone, "rs-4-2 reads four bytes for a byte");
    assert.deepEqual([fragmentBytesWaiting, fragmentEtaMs], [0n, undefined]);
    assert.ok(seen.length > 0 && seen.every(([, etaMs]) => etaMs !== undefined), "there is an estimate as long as any waits");
    await sim.sleep(5_000);
    assert.equal((await repairOf(cluster)).fragmentRunningMs, fragmentRunningMs, "an episode that is over takes no more time");
  });
});

test("coding pause: a record that can't be read pauses the policy, and says why", async () => {
  const world = { digest: { crc32c: sum }, logger: { error: () => {} } };
  const term = { config: { metadataTimeoutMs: 1 }, world } as unknown as Term;
  const metadata = {} as unknown as MetadataClient;
  assert.match(new CodingPauses(term, metadata, new Uint8Array(20)).pause?.note ?? "", /can't be read/);
  assert.equal(new CodingPauses(term, metadata, undefined).pause, undefined);
});

const sum = (bytes: Uint8Array): number => bytes.reduce((total, byte) => (total * 31 + byte) >>> 0, 7);

test("coding pause: the record is written as it always was; any flipped or missing byte is damage, a later version is newer", () => {
  const pause = { note: "Ada: disks", wallMs: 1_764_000_000_000 };
  const url = new URL("../../../../tests/golden/metadata/v1/erasure-coding-pause.bin", import.meta.url);
  if (process.env.STAMP_WRITE_GOLDEN && !existsSync(url)) writeFileSync(url, encodeCodingPause(pause, sum));
  const bytes = new Uint8Array(readFileSync(url));
  assert.deepEqual(encodeCodingPause(pause, sum), bytes);
  assert.deepEqual(unwrap(decodeCodingPause(bytes, sum)), pause);
  for (let i = 0; i < bytes.length; i++) {
    const flipped = bytes.with(i, (bytes[i] as number) ^ 4);
    const outcome = decodeCodingPause(flipped, sum);
    assert.ok(!outcome.ok && outcome.failure.reason === "damaged", `byte ${i}`);
    assert.ok(!decodeCodingPause(bytes.subarray(0, i), sum).ok, `first ${i} bytes`);
  }
  const later = bytes.with(1, 2);
  new DataView(later.buffer).setUint32(later.length - 4, sum(later.subarray(0, -4)), true);
  const newer = decodeCodingPause(later, sum);
  assert.ok(!newer.ok && newer.failure.reason === "newerFormat");
  assert.equal(codingPauseKey, "erasure-coding/pause");
});
