/** Shared by tests that restore the metadata store from a copy on an extent node (no test itself). */
import { unwrap } from "@stamp/base";
import { metadataStoreName, restoreMetadata } from "@stamp/lock-service";
import { openSnapshot } from "@stamp/metadata-store";
import type { Clock } from "@stamp/ports";
import type { Cluster } from "./cluster.ts";

export const copiesFolder = "metadata-copies";

/** Name of the newest copy of the first node. */
export const newestCopy = async ({ sim }: Cluster): Promise<string> =>
  (await sim.world("en1").disk.list(copiesFolder)).toSorted().at(-1) ?? "none";

/** Half a year: virtual time begins with the year from which a restore counts its seconds. */
const laterMs = 180 * 86_400_000;

/** Takes a copy of the first node, by default the newest, into an empty metadata store. */
export async function restore(cluster: Cluster, copy?: string): Promise<void> {
  const { sim } = cluster;
  await sim.stop("lock");
  sim.keyValue("lock").drop(metadataStoreName);
  const offline = sim.offline("lock");
  const file = await sim.world("en1").disk.open(`${copiesFolder}/${copy ?? (await newestCopy(cluster))}`);
  const snapshot = unwrap(await openSnapshot(file, (bytes, seed) => offline.digest.crc32c(bytes, seed)));
  const { clock } = offline;
  const wallMs = (): number => clock.wallMs() + laterMs;
  const later: Clock = { monotonicMs: () => clock.monotonicMs(), suspendedMs: () => 0, after: (ms, call) => clock.after(ms, call), wallMs };
  unwrap(await restoreMetadata({ ...offline, clock: later }, snapshot));
  sim.restart("lock");
}
