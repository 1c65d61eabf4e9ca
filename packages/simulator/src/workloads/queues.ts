/**
 * Several clients put, take, update and delete the messages of two queues, some slowly, so that others take the same messages after them,
 * while faults come, among them splits, merges and moves of the ranges. Then everything heals, the queues are emptied, and what is promised of messages must have been kept (queue-judge.ts).
 */
import type { Prng } from "@stamp/base";
import { QueueClients, until } from "@stamp/histories";
import { routeOf } from "@stamp/objects";
import type { Simulation } from "@stamp/virtual-time";
import { QueueClient } from "./clients/queue-client.ts";
import { simulatedCluster } from "./cluster.ts";
import type { Focus } from "./faults/fault-kinds.ts";
import { Faults } from "./faults/faults.ts";
import { stageOf } from "./run/stage.ts";
import type { Tally } from "./run/workload.ts";

const clientCount = 4;
const operationsPerClient = 70;
const pauseMaxMs = 700;
const workMs = (operationsPerClient * pauseMaxMs) / 2;
const readyWithinMs = 60_000;
/** Time within which, after the last fault, everything is served again and every message is found. */
const healedWithinMs = 120_000;
const queues = ["left", "right"] as const;
/** Largest incarnation, as commits count until the queues are made. */
const incarnationsMax = 6;

export async function queueWorkload(sim: Simulation, tally: Tally, focus?: Focus): Promise<void> {
  const cluster = simulatedCluster(sim);
  await sim.until(() => cluster.ready(), readyWithinMs, "the cluster is ready");
  const stage = stageOf(sim, tally);
  const run = new QueueClients(stage, queues, pauseMaxMs);
  const names = Array.from({ length: clientCount }, (_, i) => `client-${i + 1}`);
  const clients = names.map((name) => new QueueClient(sim, sim.world(name), name, cluster));
  const key = (prng: Prng): Uint8Array => {
    const queue = { account: cluster.account, queue: prng.pick(queues), incarnation: 1 + prng.below(incarnationsMax) };
    return routeOf(sim.rules, { case: "queue", value: { kind: { case: "peekMessages", value: { queue } } } }).key;
  };
  const reshapes = { cluster, table: "Message", key, weight: 6 } as const;
  const faults = new Faults(sim, { targets: cluster.processes, clients: [], pace: 5, focus, withinMs: workMs, reshapes });
  tally.faults = faults.counts;
  const first = clients[0] as QueueClient;
  const bound = { withinMs: healedWithinMs, pauseMs: 500 };
  for (const queue of queues) await until(stage, "a queue is made", bound, async () => (await first.create(queue)).kind === "ok");
  faults.start();
  await Promise.all(clients.map((client) => run.work(client, sim.prng.fork(), (operations) => operations < operationsPerClient)));
  await faults.heal();
  for (const queue of queues) await run.empty(first, queue, healedWithinMs);
}
