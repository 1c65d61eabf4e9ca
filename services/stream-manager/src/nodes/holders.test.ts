/**
 * Raw content among extent nodes whose names are certified: only nodes that the record of an extent names get it, and repairs, codings, and
 * decodings, with and without a stream manager, go on as before.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8 } from "@stamp/base";
import { ExtentFragments, ExtentNode } from "@stamp/wire";
import { Cluster } from "../testing/cluster.ts";
import { code, config, contentOf, infoOf, isCoded, type Sealed, sealed, timeoutMs } from "../testing/coding-harness.ts";

const nodes = Array.from({ length: 8 }, (_, i) => `extent-node-${i + 1}`);
const clusterOf = (seed: number): Cluster => new Cluster({ seed, nodes, managers: ["stream-manager-1"], config });

const clientOf = (cluster: Cluster, from: string, to: string) => ({
  replicas: cluster.sim.world(from).transport.client(to, ExtentNode),
  fragments: cluster.sim.world(from).transport.client(to, ExtentFragments),
});
const said = (outcome: { ok: true } | { ok: false; failure: { reason: string } }): string => (outcome.ok ? "ok" : outcome.failure.reason);

async function raw(cluster: Cluster, { id }: Sealed, from: string, to: string): Promise<string> {
  return said(await clientOf(cluster, from, to).replicas.readRaw({ extentId: id, offsetBytes: 0n, lengthBytes: 100 }, { timeoutMs }));
}

test("holders: an extent node reads no raw replica of an extent whose record does not name it; a repair does, and goes on", async () => {
  const cluster = clusterOf(701);
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await sealed(cluster);
    const holders = (await infoOf(cluster, extent.id))?.nodeIds ?? [];
    const strangers = nodes.filter((name) => !holders.includes(name));
    const [source = "", member = "", lost = ""] = holders;
    // The level is noted by now, so the question is asked.
    await sim.sleep(12_000);
    for (const stranger of strangers) assert.equal(await raw(cluster, extent, stranger, source), "unauthorized", stranger);
    assert.equal(await raw(cluster, extent, member, source), "ok");
    // Made anew elsewhere: the target gets it, and the node that was replaced has lost the right.
    sim.crash(lost, { stayDown: true });
    const isWhole = async (): Promise<boolean> => {
      const { nodeIds = [], intactCopies } = (await infoOf(cluster, extent.id)) ?? {};
      return intactCopies === 3 && !nodeIds.includes(lost);
    };
    await cluster.until("made anew", isWhole, 60_000);
    sim.restart(lost);
    await sim.sleep(12_000);
    assert.equal(await raw(cluster, extent, lost, source), "unauthorized", "its replica was replaced");
    const target = (await infoOf(cluster, extent.id))?.nodeIds.find((name) => !holders.includes(name)) ?? "";
    assert.equal(await raw(cluster, extent, target, source), "ok");
    // While no stream manager leads, a node that was named before still reads, and a stranger does not.
    sim.crash("stream-manager-1", { stayDown: true });
    await sim.sleep(15_000);
    assert.equal(await raw(cluster, extent, target, source), "ok", "named before");
    assert.equal(await raw(cluster, extent, source, member), "ok", "the extent was made with both");
    for (const stranger of strangers.filter((name) => name !== target))
      assert.notEqual(await raw(cluster, extent, stranger, source), "ok", stranger);
  });
});

test("holders: fragments are made, made anew and decoded by nodes that the record names, and by no other", async () => {
  const cluster = clusterOf(702);
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await sealed(cluster);
    await sim.sleep(12_000);
    const written = async (from: string, to: string, version: bigint): Promise<string> => {
      const payload = utf8("x".repeat(65_536));
      const { diskId, stampId } = (sim.role(to)?.status.facts ?? {}) as { diskId: string; stampId: string };
      const coded = { extentId: extent.id, profile: "rs-4-2", sealedLengthBytes: BigInt(extent.content.length), checksum: 1 };
      const { crc32c } = sim.world(from).digest;
      const piece = { offsetBytes: 0n, payload, payloadChecksum: crc32c(payload), maker: "m" };
      const request = { smTerm: 99n, extent: coded, index: 0, version, stampId, diskId, ...piece };
      return said(await clientOf(cluster, from, to).fragments.writeFragment(request, { timeoutMs }));
    };
    for (const from of nodes.slice(1)) assert.equal(await written(from, nodes[0] ?? "", 50n), "unauthorized", `${from}: nothing is coded`);
    const replicated = (await infoOf(cluster, extent.id))?.nodeIds ?? [];
    await code(cluster, extent.id);
    await cluster.until("coded", () => isCoded(cluster, extent.id), 60_000);
    const info = await infoOf(cluster, extent.id);
    const holders = info?.fragmentNodeIds ?? [];
    const [, holder = ""] = holders;
    const strangers = nodes.filter((name) => !holders.includes(name));
    const read = async (from: string): Promise<string> => {
      const request = {
        extentId: extent.id,
        version: info?.coded?.fragments[1]?.version ?? 0n,
        index: 1,
        offsetBytes: 0n,
        lengthBytes: 64,
      };
      return said(await clientOf(cluster, from, holder).fragments.readFragment(request, { timeoutMs }));
    };
    await sim.sleep(12_000);
    assert.equal(strangers.length, 2);
    for (const name of strangers) assert.equal(await read(name), "unauthorized", name);
    for (const name of replicated) assert.equal(await written(name, holder, info?.coded?.fragments[1]?.version ?? 0n), "unauthorized");
    assert.equal(await read(holders[0] ?? ""), "ok");
    assert.equal(await read("owner"), "ok", "a reader has no name of an extent node");
    sim.crash(holders[0] ?? "", { stayDown: true });
    await cluster.until("made anew", async () => (await infoOf(cluster, extent.id))?.intactFragments === 6, 90_000);
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
    await cluster.sm((sm, left) => sm.replicateExtent({ extentId: extent.id }, { timeoutMs: left }));
    const isReplicated = async (): Promise<boolean> => {
      const after = await infoOf(cluster, extent.id);
      return after?.coded === undefined && after?.intactCopies === 3;
    };
    await cluster.until("replicated", isReplicated, 90_000);
  });
});
