/** Replicas in quarantine that a person takes back: only what the records prove, only where the extent lacks a replica. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap, utf8 } from "@stamp/base";
import type { Disk } from "@stamp/ports";
import { type ExtentLocation, ExtentState, ReplicaState } from "@stamp/wire";
import { Cluster, first } from "../testing/cluster.ts";

const text = "the only copy that is left";

interface Bench {
  readonly cluster: Cluster;
  /** Sealed, with three replicas. */
  readonly extent: ExtentLocation;
  /** Node without a replica of the extent. */
  readonly other: string;
  readonly sealedBytes: bigint;
  readonly version: bigint;
  readonly checksum: number;
  readonly creation: bigint;
}

async function bench(work: (bench: Bench) => Promise<void>): Promise<void> {
  const cluster = new Cluster({ config: { syncEveryMs: 3_000, deletionGraceMs: 1_000, repairAfterMs: 8_000 }, managers: ["sm1", "sm2"] });
  await cluster.sim.run(async () => {
    await cluster.open("/s", 1);
    await cluster.sim.sleep(3_500);
    const extent = first(await cluster.next("/s", 1, 0n));
    unwrap(await cluster.append(extent, 1, 0n, text));
    await cluster.next("/s", 1, extent.extentId);
    const infoOf = async () => (await cluster.extents()).find((one) => one.location?.extentId === extent.extentId);
    await cluster.until("sealed", async () => {
      const info = await infoOf();
      return info?.intactCopies === 3 && info.checksum !== undefined;
    });
    const info = await infoOf();
    const { sealedLengthBytes: sealedBytes = 0n, version = 0n } = info?.location ?? {};
    const other = ["en1", "en2", "en3", "en4"].find((name) => !extent.addresses.includes(name)) ?? "";
    const creation = await cluster.creationOf(extent);
    await work({ cluster, extent, other, sealedBytes, version, checksum: info?.checksum ?? 0, creation });
  });
}

const termOf = ({ sim }: Cluster): bigint =>
  BigInt(Math.max(...["sm1", "sm2"].map((name) => Number(sim.role(name)?.status.facts.term ?? 0))));
const factsOf = ({ sim }: Cluster, node: string) => sim.role(node)?.status.facts ?? {};

/** Has the other node copy the extent, as a repair did of which the records know nothing any more. */
async function copyTo({ cluster, extent, other, sealedBytes, checksum, creation }: Bench, version: bigint): Promise<void> {
  const { diskId, stampId } = factsOf(cluster, other);
  const request = { smTerm: termOf(cluster), extentId: extent.extentId, sealedLengthBytes: sealedBytes, version, ownerEpoch: 1n, checksum };
  const place = { diskId: String(diskId), stampId: String(stampId), sources: [...extent.addresses], creation };
  unwrap(await cluster.en(other).copyExtent({ ...request, ...place }, { timeoutMs: 2_000 }));
}

/** Has the other node make and seal a replica of its own, with this content. */
async function writeTo({ cluster, extent, other, creation }: Bench, content: string, version: bigint): Promise<void> {
  const { diskId, stampId } = factsOf(cluster, other);
  const { extentId } = extent;
  const smTerm = termOf(cluster);
  const replicas = [{ nodeId: other, address: other, diskId: String(diskId) }];
  const node = cluster.en(other);
  const created = { smTerm, extentId, ownerEpoch: 1n, version: 1n, replicas, stampId: String(stampId), creation };
  unwrap(await node.createExtent(created, { timeoutMs: 500 }));
  const { endBytes } = unwrap(await node.append({ extentId, ownerEpoch: 1n, payload: [utf8(content)] }, { timeoutMs: 500 }));
  const sealed = { smTerm, extentId, sealedLengthBytes: endBytes, version, diskId: String(diskId), creation };
  unwrap(await node.sealExtent(sealed, { timeoutMs: 500 }));
}

const quarantined = ({ cluster, other }: Bench) =>
  cluster.until("in quarantine", async () =>
    unwrap(await cluster.sm((sm, timeoutMs) => sm.listQuarantine({}, { timeoutMs }))).replicas.some(({ nodeId }) => nodeId === other),
  );

const adopt = ({ cluster, extent, other }: Bench, id: bigint = extent.extentId) =>
  cluster.sm((sm, timeoutMs) => sm.adoptQuarantined({ nodeId: other, extentId: id }, { timeoutMs }));

async function refusedAs(bench: Bench, why: RegExp): Promise<void> {
  const answer = await adopt(bench);
  assert.ok(!answer.ok);
  assert.match(answer.failure.message, why);
  const { replicas } = unwrap(await bench.cluster.sm((sm, timeoutMs) => sm.listQuarantine({}, { timeoutMs })));
  assert.equal(replicas.length, 1, "it stays where it is");
}

/** The disks of all three replicas are lost. */
async function loseAll({ cluster, extent }: Bench): Promise<void> {
  for (const name of extent.addresses) {
    cluster.sim.crash(name, { stayDown: true });
    cluster.sim.disk(name).wipe();
    cluster.sim.keyValue(name).wipe();
    cluster.sim.restart(name);
  }
  await cluster.until("no replica is left", async () => {
    const { unreachable } = unwrap(await cluster.sm((sm, timeoutMs) => sm.getRepairStatus({}, { timeoutMs })));
    return unreachable > 0n;
  });
}

test("adopt: the last replica of an extent comes out of quarantine, is read, and three are made of it; fsck finds nothing", () =>
  bench(async (it) => {
    const { cluster, extent, other } = it;
    await copyTo(it, it.version);
    await quarantined(it);
    await refusedAs(it, /extent \d+ lacks no replica/);
    await loseAll(it);
    const adopted = unwrap(await adopt(it));
    assert.ok(adopted.nodeIds.includes(other));
    const range = { extentId: extent.extentId, offsetBytes: 0n, lengthBytes: Number(it.sealedBytes) };
    const { payload } = unwrap(await cluster.en(other).readRaw(range, { timeoutMs: 1_000 }));
    assert.ok(Buffer.from(payload).includes(text));
    const infoOf = async () => (await cluster.extents()).find((one) => one.location?.extentId === extent.extentId);
    await cluster.until("three again", async () => (await infoOf())?.intactCopies === 3, 60_000);
    cluster.sim.crash(cluster.calls.leader ?? "", { stayDown: true });
    await cluster.until("the next leader knows", async () => (await infoOf())?.nodeIds.includes(other) === true, 30_000);
    const info = await infoOf();
    assert.equal(info?.state, ExtentState.SEALED);
    for (const name of info?.nodeIds ?? []) {
      const checked = unwrap(
        await cluster.en(name).checkReplicas({ afterExtentId: extent.extentId - 1n, limit: 1, deep: true }, { timeoutMs: 1_000 }),
      );
      const [replica] = checked.replicas;
      assert.deepEqual([replica?.replica?.state, replica?.checksum, replica?.problems], [ReplicaState.SEALED, it.checksum, []]);
    }
    await cluster.sim.sleep(10_000);
    assert.deepEqual(unwrap(await cluster.sm((sm, timeoutMs) => sm.listQuarantine({}, { timeoutMs }))).replicas, []);
    const again = await adopt(it);
    assert.ok(!again.ok && /is not in quarantine/.test(again.failure.message));
  }));

test("adopt: a stale version is refused, also when nothing else is left", () =>
  bench(async (it) => {
    await copyTo(it, it.version - 1n);
    await quarantined(it);
    await loseAll(it);
    await refusedAs(it, /stale: it has version \d+, and the extent was changed since/);
  }));

test("adopt: a shorter replica is refused, and one with another content of the same length", async () => {
  await bench(async (it) => {
    await writeTo(it, text.slice(1), it.version);
    await quarantined(it);
    await loseAll(it);
    await refusedAs(it, /shorter than the extent: sealed at \d+, recorded is \d+/);
  });
  await bench(async (it) => {
    await writeTo(it, text.replace("only", "very"), it.version);
    await quarantined(it);
    await loseAll(it);
    await refusedAs(it, /has checksum \d+, recorded is \d+/);
  });
});

async function fileOf(disk: Disk, id: bigint): Promise<string> {
  for (const folder of await disk.list("extents"))
    for (const name of await disk.list(`extents/${folder}`))
      if (name.endsWith(".extent") && BigInt(`0x${name.split(".")[0]}`) === id) return `extents/${folder}/${name}`;
  throw new Error(`no file of extent ${id}`);
}

test("adopt: a replica whose bytes rotted is refused, and so is one of an extent that nobody knows", async () => {
  await bench(async (it) => {
    const { cluster, other } = it;
    await copyTo(it, it.version);
    await quarantined(it);
    await loseAll(it);
    const { disk } = cluster.sim.world(other);
    const path = await fileOf(disk, it.extent.extentId);
    const file = await disk.open(path);
    const size = await file.sizeBytes();
    await file.write(size - 8, [utf8("rotten")]);
    await file.close();
    await refusedAs(it, /not intact: .*/);
  });
  await bench(async (it) => {
    const { cluster, extent, other } = it;
    await writeTo({ ...it, extent: { ...extent, extentId: 999_999n } }, text, 2n);
    await cluster.until("in quarantine", async () =>
      unwrap(await cluster.sm((sm, timeoutMs) => sm.listQuarantine({}, { timeoutMs }))).replicas.some(({ nodeId }) => nodeId === other),
    );
    const unknown = await adopt(it, 999_999n);
    assert.ok(!unknown.ok && /the metadata know no extent 999999: nothing proves/.test(unknown.failure.message));
  });
});
