/**
 * The whole folder of the lock service, store and mark, is put back from a backup while everything else goes on, or while the managers
 * (and nodes) start anew as well. The store is whole, so the lock service serves it. Nobody may act or answer by it: a list of a stream
 * without its newest extents would be a loss of what was acknowledged. A person who reads in the status that it was put back, puts the
 * newer folder back.
 *
 * The backup is older than the copy on every extent node: what was written after the newest copies is not protected when all managers start
 * anew (docs/design/processes.md).
 */
import { metadataStoreName } from "@stamp/lock-service";
import { MetadataClient } from "@stamp/metadata-store";
import { markPath } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";
import type { SimulatedCluster } from "../cluster.ts";
import type { StreamJudge } from "../judges/stream-judge.ts";

/** Copies are taken every 30 s. */
const copiesWithinMs = 90_000;
/** How long a person looks at the status. Without the rule nothing is said, and the older folder stays. */
const patienceMs = 40_000;
const askTimeoutMs = 1_000;
const copyName = /^metadata-copies\/(\d+)\.snapshot$/;

/** Once, at times of the seed's choice. */
export async function putFolderBack(sim: Simulation, cluster: SimulatedCluster, judge: StreamJudge): Promise<void> {
  const prng = sim.prng.fork();
  const { lockService } = cluster;
  const named = (kind: string): string[] => cluster.processes.filter((name) => name.startsWith(kind));
  const [nodes, managers] = [named("extent-node-"), named("stream-manager-")];
  await sim.sleep(2_000 + prng.float() * 8_000);
  const older = stopped(sim, lockService);
  sim.restart(lockService);
  const version = await versionOf(sim, lockService);
  const endMs = sim.nowMs + copiesWithinMs;
  while (!nodes.every((node) => newestCopy(sim, node) > version)) {
    if (sim.nowMs > endMs) return;
    await sim.sleep(500);
  }
  await sim.sleep(prng.float() * 5_000);
  const startAnew = prng.pick([[], managers, [...managers, ...nodes]]);
  sim.note("the folder of the lock service is put back", `and ${startAnew.length} processes start anew`);
  judge.count("folders put back");
  for (const name of startAnew) sim.crash(name, { unsynced: "kept", stayDown: true });
  const newer = stopped(sim, lockService);
  older();
  sim.restart(lockService);
  for (const name of startAnew) sim.restart(name);
  if (!(await isRefused(sim, managers))) return;
  judge.count("folders put back that were refused");
  await sim.sleep(prng.float() * 15_000);
  stopped(sim, lockService);
  newer();
  sim.restart(lockService);
}

/** Stops the lock service, and gives what puts its folder back as it is then. */
function stopped(sim: Simulation, lockService: string): () => void {
  sim.crash(lockService, { unsynced: "kept", stayDown: true });
  const [store, mark] = [sim.keyValue(lockService).saved(metadataStoreName), sim.disk(lockService).saved(markPath(metadataStoreName))];
  return () => {
    store();
    mark();
  };
}

/** Returns the number of the last transaction, or of a later one. */
async function versionOf(sim: Simulation, lockService: string): Promise<number> {
  const metadata = new MetadataClient(sim.world("person"), lockService);
  for (;;) {
    const position = await metadata.position(askTimeoutMs);
    if (position.ok) return position.value.version;
    await sim.sleep(100);
  }
}

const newestCopy = (sim: Simulation, node: string): number =>
  Math.max(
    0,
    ...sim
      .disk(node)
      .paths()
      .flatMap((path) => copyName.exec(path)?.[1] ?? [])
      .map(Number),
  );

async function isRefused(sim: Simulation, managers: readonly string[]): Promise<boolean> {
  const endMs = sim.nowMs + patienceMs;
  while (sim.nowMs < endMs) {
    if (managers.some((name) => sim.role(name)?.status.state === "damaged")) return true;
    await sim.sleep(200);
  }
  return false;
}
