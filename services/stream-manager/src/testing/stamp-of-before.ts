/** Shared by tests (no test itself): a stamp in which a release before feature levels has led. */
import { type RuleName, unwrap } from "@stamp/base";
import { MetadataClient } from "@stamp/metadata-store";
import { encodeStored, nodeKey } from "@stamp/stream";
import { FeatureLevels, LockService } from "@stamp/wire";
import { leaseName } from "../term/ledger.ts";
import type { Cluster } from "./cluster.ts";
import { clusterOf, timeoutMs } from "./coding-harness.ts";

/** Raises the level of the stamp. */
export const setLevel = async (cluster: Cluster, level: number) => {
  const { transport } = cluster.sim.world("owner");
  return cluster.calls.call(20_000, (address, left) =>
    transport.client(address, FeatureLevels).setFeatureLevel({ level }, { timeoutMs: left }),
  );
};

/** Writes into the metadata store as the stream manager of a release before feature levels did. */
async function writtenBefore(cluster: Cluster, writes: readonly { readonly key: string; readonly value: Uint8Array }[]): Promise<void> {
  const world = cluster.sim.world("owner");
  const leases = world.transport.client("lock", LockService);
  const asked = { name: leaseName, holder: "before", identity: "before", instance: "1", incarnation: 1n, address: "before", termMs: 1_000 };
  const { leaseEpoch } = unwrap(await leases.acquireLease(asked, { timeoutMs }));
  const fence = { leaseName, leaseEpoch: Number(leaseEpoch) };
  unwrap(await new MetadataClient(world, "lock").transact({ fence, conditions: [], writes }, timeoutMs));
  unwrap(await leases.releaseLease({ name: leaseName, leaseEpoch }, { timeoutMs }));
}

/** A node that was decommissioned long ago: the stamp is not a new one. */
const oldNode = (cluster: Cluster) => ({
  key: nodeKey("en0"),
  value: encodeStored(
    {
      kind: "node",
      record: { nodeId: "en0", address: "en0", diskId: "d0", faultDomain: "", incarnation: 1, duty: "decommissioned" },
    },
    cluster.sim.world("owner").digest.crc32c,
  ),
});

/** A stamp of eight nodes in which a release before feature levels has led. Its stream managers, of this release, are started by the caller. */
export async function stampOfBefore(seed: number, work: (cluster: Cluster) => Promise<void>, without: readonly RuleName[] = []) {
  const cluster = clusterOf(seed, [], [...without]);
  await cluster.sim.run(async () => {
    await cluster.sim.sleep(500);
    await writtenBefore(cluster, [oldNode(cluster)]);
    for (const name of ["sm1", "sm2"]) cluster.addManager(name, { erasureCoding: "off", deletionGraceMs: 3_000, repairAfterMs: 4_000 });
    await work(cluster);
  });
}
