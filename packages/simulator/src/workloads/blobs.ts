/**
 * Several clients put, get, update under If-Match, delete and list a few blobs in two containers, which are deleted and made again at
 * times, while faults come. Then everything heals; within a bound every blob can be read again; and one order of all operations must
 * explain every answer, the last reads included.
 */
import { makeToken } from "@stamp/azure-rest";
import type { BlobDoor } from "@stamp/histories";
import { HttpBlobDoor, ObjectClients } from "@stamp/histories";
import type { Tally } from "../cli/run-seed.ts";
import type { Simulation } from "../simulation.ts";
import { BrokenPromise } from "../simulation.ts";
import { BlobClient } from "./blob-client.ts";
import type { WholeCluster } from "./cluster.ts";
import { simulatedCluster } from "./cluster.ts";
import type { Focus } from "./faults.ts";
import { Faults } from "./faults.ts";
import { HttpClient } from "./http-client.ts";
import { stageOf } from "./stage.ts";
import { TransactionClient } from "./transaction-client.ts";

const clientCount = 4;
const operationsPerClient = 50;
const pauseMaxMs = 1_000;
const workMs = (operationsPerClient * pauseMaxMs) / 2;
const readyWithinMs = 60_000;
/** After the last fault everything is served again within this. */
const healedWithinMs = 60_000;

export function blobWorkload(sim: Simulation, tally: Tally, focus?: Focus): Promise<void> {
  return objectWorkload(sim, tally, focus, blobDoor);
}

/** The same with tables and transactions: what is put is put by a transaction of several entities. */
export function tableWorkload(sim: Simulation, tally: Tally, focus?: Focus): Promise<void> {
  return objectWorkload(
    sim,
    tally,
    focus,
    (...[simulation, cluster, name]) => new TransactionClient(simulation, simulation.world(name), name, cluster),
  );
}

type DoorOf = (sim: Simulation, cluster: WholeCluster, name: string, index: number) => BlobDoor;

/** Every second client speaks HTTP, the others gRPC. */
const blobDoor: DoorOf = (sim, cluster, name, index) => {
  const world = sim.world(name);
  if (index % 2 === 0) {
    const http = new HttpClient(sim, world, name, cluster, "blob");
    return new HttpBlobDoor((...request) => http.request(...request));
  }
  const expiresMs = world.clock.wallMs() + 24 * 3600_000;
  const token = makeToken({ account: cluster.account, expiresMs }, cluster.accountKey, (key, message) =>
    world.digest.hmacSha256(key, message),
  );
  return new BlobClient(world, cluster.frontEnd, cluster.account, token);
};

async function objectWorkload(sim: Simulation, tally: Tally, focus: Focus | undefined, doorOf: DoorOf): Promise<void> {
  const cluster = simulatedCluster(sim);
  await sim.until(() => cluster.ready(), readyWithinMs, "the cluster is ready");
  const names = new Map([
    ["left", ["a", "b", "c"]],
    ["right", ["a", "z/y"]],
  ]);
  const run = new ObjectClients(stageOf(sim, tally), names, { pauseMaxMs });
  const clients = Array.from({ length: clientCount }, (_, i) => `client-${i + 1}`);
  const faults = new Faults(sim, { targets: cluster.processes, clients: [], pace: 5, focus, withinMs: workMs });
  tally.faults = faults.counts;
  const first = doorOf(sim, cluster, "client-1", sim.prng.below(2));
  for (const container of names.keys()) await run.createContainer(first, container);
  faults.start();
  await Promise.all(
    clients.map((name, i) => run.work(doorOf(sim, cluster, name, i), sim.prng.fork(), (operations) => operations < operationsPerClient)),
  );
  await faults.heal();
  await run.readBack(first, sim.prng, healedWithinMs);
  const wrong = run.history.check();
  if (wrong !== undefined) throw new BrokenPromise(wrong);
  for (const name of run.history.undecided) sim.note("not decided", name);
  if (run.history.undecided.length > 0) tally.counts["NOT DECIDED histories"] = run.history.undecided.length;
}
