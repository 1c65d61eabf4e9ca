/**
 * Several clients put, get, update under If-Match, delete and list a few blobs in two containers, which are deleted and made again at
 * times, while faults come, among them splits, merges and moves of the ranges. Then everything heals; within a bound every blob can be read again; and one order of all operations must
 * explain every answer, the last reads included. Where garbage is collected soon (garbage.ts), nothing may be left of it when everything was
 * deleted.
 */
import { makeToken } from "@stamp/azure-rest";
import type { Prng, Rules } from "@stamp/base";
import type { BlobDoor } from "@stamp/histories";
import { HttpBlobDoor, ObjectClients, partitionKeyOf } from "@stamp/histories";
import { routeOf } from "@stamp/objects";
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";
import { BlobClient } from "./clients/blob-client.ts";
import { HttpClient } from "./clients/http-client.ts";
import { TransactionClient } from "./clients/transaction-client.ts";
import type { WholeCluster } from "./cluster.ts";
import { simulatedCluster } from "./cluster.ts";
import type { Focus } from "./faults/fault-kinds.ts";
import { Faults } from "./faults/faults.ts";
import { collectingOf, GarbageJudge } from "./faults/garbage.ts";
import { stageOf } from "./run/stage.ts";
import type { Tally, Workload } from "./run/workload.ts";

const clientCount = 4;
const operationsPerClient = 50;
const pauseMaxMs = 1_000;
const workMs = (operationsPerClient * pauseMaxMs) / 2;
const readyWithinMs = 60_000;
/** Time within which everything is served again after the last fault. */
const healedWithinMs = 60_000;
/**
 * Largest incarnation, as commits of a run count; a key with one may lie between what a deleted container held and what
 * its successor holds.
 */
const incarnationsMax = 200;

type Names = ReadonlyMap<string, readonly string[]>;

interface Kind {
  readonly door: (sim: Simulation, cluster: WholeCluster, name: string, index: number) => BlobDoor;
  /** Where its objects are, and a key of them at which a range may be split. */
  readonly table: "Blob" | "Entity";
  readonly key: (
    rules: Rules,
    where: { readonly account: string; readonly container: string; readonly incarnation: number },
    blob: string,
  ) => Uint8Array;
}

/** Every second client speaks HTTP, the others gRPC. */
export const blobDoor: Kind["door"] = (sim, cluster, name, index) => {
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

const blobs: Kind = {
  door: blobDoor,
  table: "Blob",
  key: (rules, { account, container, incarnation }, blob) =>
    routeOf(rules, { case: "getBlob", value: { name: { account, container, containerIncarnation: incarnation, blob } } }).key,
};

const tables: Kind = {
  door: (sim, cluster, name) => new TransactionClient(sim, sim.world(name), name, cluster),
  table: "Entity",
  key(rules, { account, container, incarnation }, blob) {
    const value = { table: { account, table: container, incarnation }, partitionKey: partitionKeyOf(blob), changes: [] };
    return routeOf(rules, { case: "table", value: { case: "changeEntities", value } }).key;
  },
};

export const blobWorkload: Workload = (sim, tally, focus) => objectWorkload(sim, tally, focus, blobs);

/** Workload `tables`: objects are put by transactions of several entities. */
export const tableWorkload: Workload = (sim, tally, focus) => objectWorkload(sim, tally, focus, tables);

async function objectWorkload(sim: Simulation, tally: Tally, focus: Focus | undefined, kind: Kind): Promise<void> {
  const collecting = collectingOf(sim);
  const cluster = simulatedCluster(sim, collecting.options);
  await sim.until(() => cluster.ready(), readyWithinMs, "the cluster is ready");
  const names: Names = new Map([
    ["left", ["a", "b", "c"]],
    ["right", ["a", "z/y"]],
  ]);
  const run = new ObjectClients(stageOf(sim, tally), names, { pauseMaxMs });
  const clients = Array.from({ length: clientCount }, (_, i) => `client-${i + 1}`);
  const key = (prng: Prng): Uint8Array => {
    const container = prng.pick([...names.keys()]);
    const where = { account: cluster.account, container, incarnation: 1 + prng.below(incarnationsMax) };
    return kind.key(sim.rules, where, prng.pick(names.get(container) as readonly string[]));
  };
  const reshapes = { cluster, table: kind.table, key, weight: 6 };
  const faults = new Faults(sim, { targets: cluster.processes, clients: [], pace: 5, focus, withinMs: workMs, reshapes });
  tally.faults = faults.counts;
  const first = kind.door(sim, cluster, "client-1", sim.prng.below(2));
  for (const container of names.keys()) await run.createContainer(first, container);
  faults.start();
  await Promise.all(
    clients.map((name, i) => run.work(kind.door(sim, cluster, name, i), sim.prng.fork(), (operations) => operations < operationsPerClient)),
  );
  await faults.heal();
  await run.readBack(first, sim.prng, healedWithinMs);
  const wrong = run.history.check();
  if (wrong !== undefined) throw new BrokenPromise(wrong);
  for (const name of run.history.undecided) sim.note("not decided", name);
  if (run.history.undecided.length > 0) tally.counts["NOT DECIDED histories"] = run.history.undecided.length;
  if (collecting.soon) await new GarbageJudge(sim, tally, cluster, collecting, kind.table).allGoes(first, names.keys());
}
