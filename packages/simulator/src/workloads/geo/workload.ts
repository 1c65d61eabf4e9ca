/**
 * An account at two stamps, under the location service: clients write at the primary and read the copy, a person asks for failovers, forced
 * ones, migrations and copies, ranges of both stamps are split, merged and moved, processes of every role at both stamps and of the location
 * fail, and the link between the stamps is cut and slow. history.ts says what is judged.
 *
 *     writers ──► primary ══ link ══► secondary ◄── reader (copy, Last Sync Time)
 *                    ▲                    ▲
 *                    └─ location service ─┘ ◄── operator
 */
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";
import type { ClusterOptions } from "../cluster.ts";
import type { Focus } from "../faults/fault-kinds.ts";
import { Faults } from "../faults/faults.ts";
import { Reshapes } from "../reshapes.ts";
import type { Tally } from "../run/workload.ts";
import { Reader, type Scene, Writer } from "./clients.ts";
import { GeoHistory } from "./history.ts";
import { LinkFaults } from "./link-faults.ts";
import { otherStamp, type StampName, stampNames, TwoStamps } from "./location.ts";
import { Operator } from "./operator.ts";

const workMs = 60_000;
const readyWithinMs = 60_000;
/** After the last fault the account has a complete copy within this time. */
const settledWithinMs = 180_000;
const equalWithinMs = 60_000;
const namesOf = (writer: number): string[] => [0, 1].map((i) => `p${2 * writer + i}`);
const writerCount = 3;

export async function geoWorkload(sim: Simulation, tally: Tally, focus?: Focus): Promise<void> {
  const { prng } = sim;
  const collecting = { collectEveryMs: prng.pick([300, 3_000, 60_000]), collectGoneMs: prng.pick([1, 8_000]) };
  const options: Partial<ClusterOptions> = {
    managers: prng.pick([1, 1, 2]),
    extentNodes: 3,
    partitionServers: 2,
    partitionServer: { geoRolesEveryMs: prng.pick([300, 1_000]), ...collecting },
  };
  const place = new TwoStamps(sim, () => options);
  await place.begin();
  const history = new GeoHistory();
  const scene: Scene = { sim, tally, history, place, padMax: prng.pick([10, 400, 4_000]) };
  const names = Array.from({ length: writerCount }, (_, i) => namesOf(i)).flat();
  const writers = Array.from({ length: writerCount }, (_, i) => new Writer(scene, `client-${i + 1}`, namesOf(i)));
  const reader = new Reader(scene, "reader", names);
  const operator = new Operator(sim, tally, place, history, {
    restMaxMs: prng.pick([1_000, 8_000]),
    forcedChance: prng.pick([0, 0, 0.3]),
  });
  await sim.until(() => writers[0]?.createTable() ?? false, readyWithinMs, "the table is made");
  // These writes are there before the first copy is begun: seeding brings them.
  for (let round = 0; round < 4; round++)
    for (const [i, writer] of writers.entries()) for (const name of namesOf(i)) await writer.step(name);
  const moves = stampNames.map(
    (name) => new Reshapes(sim, { cluster: place.stamps[name], table: "Entity", key: () => undefined, weight: 0 }),
  );
  const faults = new Faults(sim, {
    targets: place.processes,
    clients: [],
    pace: 3,
    // Last Sync Time is told by the primary's clocks.
    focus: { ...focus, weights: { "clock-jump": 0, ...focus?.weights } },
    withinMs: workMs,
  });
  const link = new LinkFaults(sim, place, prng.pick([2_000, 6_000]), moves);
  tally.faults = faults.counts;
  faults.start();
  link.start();
  const endMs = sim.nowMs + workMs;
  const pauseMaxMs = prng.pick([100, 600]);
  await Promise.all([...writers.map((each) => each.work(endMs, pauseMaxMs)), reader.work(endMs, pauseMaxMs), operator.work(endMs)]);
  await link.stop();
  await faults.heal();
  tally.faults = { ...faults.counts, ...link.counts };
  await sim.until(() => place.ready(), readyWithinMs, "everything is ready after the last fault");
  let primary = await operator.settle(settledWithinMs);
  let finals = await equal(sim, reader, primary);
  await lastSyncFollows(sim, reader, otherStamp(primary));
  if (prng.chance(0.3)) {
    primary = await operator.failOver(settledWithinMs);
    await operator.settle(settledWithinMs);
    finals = await equal(sim, reader, primary);
  }
  const judged = history.judge(finals);
  for (const [what, number] of Object.entries(judged)) tally.counts[`judged ${what}`] = (tally.counts[`judged ${what}`] ?? 0) + number;
}

/** Both stamps come to show the same states. Returns them. */
async function equal(sim: Simulation, reader: Reader, primary: StampName): Promise<ReadonlyMap<string, number>> {
  const endMs = sim.nowMs + equalWithinMs;
  for (;;) {
    const [own, copy] = [await reader.all(primary, false), await reader.all(otherStamp(primary), true)];
    if (own !== undefined && copy !== undefined && [...own].every(([name, id]) => copy.get(name) === id)) return own;
    if (sim.nowMs > endMs) {
      const text = (states: ReadonlyMap<string, number> | undefined): string =>
        states === undefined ? "no answer" : [...states].join(" ");
      throw new BrokenPromise(`not equal within ${equalWithinMs} ms: ${primary} has ${text(own)}, its copy ${text(copy)}`);
    }
    await sim.sleep(500);
  }
}

/** Last Sync Time of a copy passes what is now. */
async function lastSyncFollows(sim: Simulation, reader: Reader, copy: StampName): Promise<void> {
  const nowMs = sim.world("operator").clock.wallMs();
  const endMs = sim.nowMs + equalWithinMs;
  while (((await reader.lastSync(copy)) ?? 0) < nowMs) {
    if (sim.nowMs > endMs) throw new BrokenPromise(`Last Sync Time of the copy at ${copy} stands still for ${equalWithinMs} ms`);
    await sim.sleep(500);
  }
}
