/**
 * An account at two stamps whose queues are copied, too: clients put, take, update and delete messages at the primary, while a person asks for
 * planned failovers, migrations and copies, ranges of messages are split, merged and moved, processes of every role fail, and the link is cut
 * and slow. Nothing is forced, so nothing may be lost: every promise about messages holds over failovers (queue-judge.ts), by the receipts that
 * clients hold. A second queue is only put to, and the copy shows a prefix of it (queue-doors.ts).
 */
import { QueueClients, until } from "@stamp/histories";
import { BrokenPromise, type Simulation } from "@stamp/virtual-time";
import type { Focus } from "../faults/fault-kinds.ts";
import { Faults } from "../faults/faults.ts";
import { Reshapes } from "../reshapes.ts";
import { stageOf } from "../run/stage.ts";
import type { Tally } from "../run/workload.ts";
import { Reader } from "./clients.ts";
import { GeoHistory } from "./history.ts";
import { LinkFaults } from "./link-faults.ts";
import { otherStamp, stampNames } from "./location.ts";
import { Operator } from "./operator.ts";
import { Ledger, PrimaryQueues } from "./queue-doors.ts";
import { count, type Scene } from "./stamp-door.ts";
import { beginTwoStamps, leftOut } from "./workload.ts";

const workMs = 45_000;
const readyWithinMs = 60_000;
const settledWithinMs = 420_000;
const equalWithinMs = 60_000;
/** Time within which, after the last fault, every message is found and the queue is empty. */
const emptiedWithinMs = 120_000;
const clientCount = 3;
const jobs = "jobs";

export async function geoQueueWorkload(sim: Simulation, tally: Tally, focus?: Focus): Promise<void> {
  const { prng } = sim;
  const set = focus?.geo ?? {};
  const place = await beginTwoStamps(sim, focus);
  const history = new GeoHistory();
  const scene: Scene = { sim, tally, history, place, padMax: 0 };
  const stage = stageOf(sim, tally);
  const pauseMaxMs = set.pauseMaxMs ?? prng.pick([150, 600]);
  const run = new QueueClients(stage, [jobs], pauseMaxMs);
  const clients = Array.from({ length: clientCount }, (_, i) => new PrimaryQueues(scene, `client-${i + 1}`));
  const first = clients[0] as PrimaryQueues;
  const ledger = new Ledger(scene);
  const reader = new Reader(scene, "reader", []);
  const bound = { withinMs: readyWithinMs, pauseMs: 500 };
  await until(stage, "the queue is made", bound, async () => (await first.create(jobs)).kind === "ok");
  await until(stage, "the ledger is made", bound, async () => (await ledger.create()).kind === "ok");
  // These operations are there before the first copy is begun: seeding brings what they leave.
  await run.work(first, prng.fork(), (operations) => operations < 20);
  const reshapes = stampNames.map(
    (stamp) => new Reshapes(sim, { key: () => undefined, weight: 0, cluster: place.stamps[stamp], table: "Message" }),
  );
  const faults = new Faults(sim, {
    targets: place.processes,
    clients: [],
    pace: 3,
    focus: { ...focus, weights: { ...leftOut, ...focus?.weights } },
    withinMs: workMs,
  });
  const link = new LinkFaults(sim, place, {
    everyMs: set.linkEveryMs ?? prng.pick([2_000, 6_000]),
    reshapes,
    stepCrashChance: set.stepCrashChance ?? prng.pick([0, 0.1, 0.4]),
  });
  const operator = new Operator(sim, tally, place, history, {
    restMaxMs: set.restMaxMs ?? prng.pick([1_000, 8_000]),
    forcedChance: 0,
    takesOverChance: 0,
    giveUpChance: set.giveUpChance ?? 0.03,
    withQueues: true,
    names: [],
    merged: () => false,
    onStep: (step) => link.stepped(step),
  });
  tally.faults = faults.counts;
  faults.start();
  link.start();
  const endMs = sim.nowMs + workMs;
  await Promise.all([
    ...clients.map((client) => run.work(client, sim.prng.fork(), () => sim.nowMs < endMs)),
    ledger.write(endMs),
    ledger.read(endMs, pauseMaxMs, (stamp) => reader.lastSync(stamp)),
    operator.work(endMs),
  ]);
  await link.stop();
  await faults.heal();
  tally.faults = { ...faults.counts, ...link.counts };
  await sim.until(() => place.ready(), readyWithinMs, "everything is ready after the last fault");
  const primary = await operator.settle(settledWithinMs);
  const copy = otherStamp(primary);
  const whole = { withinMs: equalWithinMs, pauseMs: 500 };
  await until(stage, `${primary} has the ledger`, whole, () => ledger.isWhole(primary, false));
  await until(stage, `the copy at ${copy} has the ledger`, whole, () => ledger.isWhole(copy, true));
  // The messages are taken at the stamp that had the copy: it has everything of them.
  if (prng.chance(0.5)) await operator.failOver(settledWithinMs);
  await run.empty(first, jobs, emptiedWithinMs);
  if (!prng.chance(0.3)) return;
  await operator.settle(settledWithinMs);
  await operator.removeCopy(settledWithinMs);
  const kept = otherStamp((await operator.look())?.stamp === "north" ? "north" : "south");
  if (await ledger.isWhole(kept, true)) throw new BrokenPromise(`stamp ${kept} shows queues of a copy that was removed from it`);
  count(tally.counts, "copy removed");
}
