/** Copies of the metadata on extent nodes, and their restore after every lock service has lost what it had. */
import { unwrap } from "@stamp/base";
import { restoreMetadata } from "@stamp/lock-service";
import { inMemory, lockServiceAddresses, MetadataClient, openSnapshot, type SnapshotSource } from "@stamp/metadata-store";
import type { Clock } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";
import { by } from "../streams.ts";

/** Copies are taken every 30 s. */
const copyWithinMs = 90_000;
const answersWithinMs = 120_000;
const askTimeoutMs = 1_000;
/** Half a year: virtual time begins with the year from which a restore counts its seconds. */
const laterMs = 180 * 86_400_000;
const copiesFolder = "metadata-copies";

/** Returns a copy that the extent node `keeper` took after this moment. */
export async function copyOfNow(sim: Simulation, lockService: string, keeper: string): Promise<SnapshotSource> {
  const metadata = new MetadataClient(sim.world("person"), lockService);
  const version = await by(sim, sim.nowMs + answersWithinMs, "the metadata store answers", async () => {
    const position = await metadata.position(askTimeoutMs);
    return position.ok ? position.value.version : undefined;
  });
  const { disk } = sim.world(keeper);
  return by(sim, sim.nowMs + copyWithinMs, `${keeper} has a copy of the metadata`, async () => {
    const names = await disk.list(copiesFolder);
    const name = names.find((each) => Number(/^(\d+)\.snapshot$/.exec(each)?.[1]) >= version);
    if (name === undefined) return undefined;
    const file = await disk.open(`${copiesFolder}/${name}`);
    const bytes = await file.read(0, await file.sizeBytes());
    await file.close();
    return inMemory(bytes.slice());
  });
}

/** Empties the folders of all lock services, which are down then, and restores the copy into that of the first one. */
export async function restoreCopy(sim: Simulation, lockService: string, copy: SnapshotSource): Promise<void> {
  const members = lockServiceAddresses(lockService);
  for (const name of members) {
    if (sim.isUp(name)) await sim.stop(name);
    sim.disk(name).wipe();
    sim.keyValue(name).wipe();
  }
  const offline = sim.offline(members[0] as string);
  const snapshot = unwrap(await openSnapshot(copy, (bytes, seed) => offline.digest.crc32c(bytes, seed)));
  const { clock } = offline;
  const later: Clock = {
    monotonicMs: () => clock.monotonicMs(),
    suspendedMs: () => 0,
    after: (delayMs, call) => clock.after(delayMs, call),
    wallMs: () => clock.wallMs() + laterMs,
  };
  unwrap(await restoreMetadata({ ...offline, clock: later }, snapshot));
  sim.note("the metadata are restored from a copy", `taken at transaction ${snapshot.version}`);
}
