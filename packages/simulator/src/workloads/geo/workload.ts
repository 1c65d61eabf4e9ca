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
import { PartitionManager } from "@stamp/wire";
import type { ClusterOptions } from "../cluster.ts";
import type { Focus } from "../faults/fault-kinds.ts";
import { Faults } from "../faults/faults.ts";
import { Reshapes } from "../reshapes.ts";
import type { Tally } from "../run/workload.ts";
import { Reader, type Shown, Writer } from "./clients.ts";
import { GeoHistory } from "./history.ts";
import { LinkFaults } from "./link-faults.ts";
import { otherStamp, type StampName, stampNames, TwoStamps } from "./location.ts";
import { Operator } from "./operator.ts";
import { RoleWatch } from "./role-watch.ts";
import { count, type Scene } from "./stamp-door.ts";

const usualWorkMs = 45_000;
const readyWithinMs = 60_000;
/**
 * Last Sync Time is told by the primary's clocks. Disks are damaged in other workloads: here a stamp with three extent nodes would only stand
 * still.
 */
export const leftOut: NonNullable<Focus["weights"]> = {
  "clock-jump": 0,
  "failed-fsync": 0,
  "full-disk": 0,
  "lost-table": 0,
  "lost-file": 0,
  "bit-rot": 0,
  "replaced-disk": 0,
};
/** After the last fault the account has a complete copy within this time. A migration whose drain took too long pauses for 200 s. */
const settledWithinMs = 420_000;
const equalWithinMs = 60_000;
const namesOf = (writer: number): string[] => [`p${2 * writer}`, `p${2 * writer + 1}`, `blob${writer}`];
const writerCount = 3;

/** Two stamps and a location service, which serve. The seed chooses how often they collect, and how many managers each stamp has. */
export async function beginTwoStamps(sim: Simulation, focus?: Focus): Promise<TwoStamps> {
  const { prng } = sim;
  const collecting = { collectEveryMs: prng.pick([300, 3_000, 60_000]), collectGoneMs: prng.pick([1, 8_000]) };
  const options: Partial<ClusterOptions> = {
    managers: prng.pick([1, 1, 2]),
    extentNodes: 3,
    partitionServers: 2,
    partitionServer: { geoRolesEveryMs: prng.pick([300, 1_000]), ...collecting, ...focus?.geo?.partitionServer },
  };
  const place = new TwoStamps(sim, () => options);
  await place.begin();
  return place;
}

export async function geoWorkload(sim: Simulation, tally: Tally, focus?: Focus): Promise<void> {
  const { prng } = sim;
  const set = focus?.geo ?? {};
  const { workMs = usualWorkMs } = focus ?? {};
  const place = await beginTwoStamps(sim, focus);
  const history = new GeoHistory();
  const scene: Scene = { sim, tally, history, place, padMax: prng.pick([10, 400, 4_000]) };
  const names = Array.from({ length: writerCount }, (_, i) => namesOf(i)).flat();
  const writers = Array.from({ length: writerCount }, (_, i) => new Writer(scene, `client-${i + 1}`, namesOf(i)));
  const reader = new Reader(scene, "reader", names);
  await sim.until(() => writers[0]?.create() ?? false, readyWithinMs, "the table and the container are made");
  // These writes are there before the first copy is begun: seeding brings them.
  for (let round = 0; round < 4; round++)
    for (const [i, writer] of writers.entries()) for (const name of namesOf(i)) await writer.step(name);
  const common = { key: () => undefined, weight: 0, neverMerges: set.splitsOnly === true };
  const reshapes = stampNames.flatMap((stamp) =>
    (["Entity", "Blob"] as const).map((table) => ({
      stamp,
      table,
      reshapes: new Reshapes(sim, { ...common, cluster: place.stamps[stamp], table }),
    })),
  );
  const faults = new Faults(sim, {
    targets: place.processes,
    clients: [],
    pace: 3,
    focus: { ...focus, weights: { ...leftOut, ...focus?.weights } },
    withinMs: workMs,
  });
  const link = new LinkFaults(sim, place, {
    everyMs: either(set.linkEveryMs, prng.pick([2_000, 6_000])),
    reshapes: reshapes.map((one) => one.reshapes),
    stepCrashChance: either(set.stepCrashChance, prng.pick([0, 0.1, 0.4])),
  });
  const operator = new Operator(sim, tally, place, history, {
    restMaxMs: either(set.restMaxMs, prng.pick([1_000, 8_000])),
    forcedChance: either(set.forcedChance, prng.pick([0, 0, 0.3])),
    giveUpChance: set.giveUpChance ?? 0.03,
    names,
    merged: (stamp) => reshapes.some((one) => one.stamp === stamp && one.table === "Entity" && one.reshapes.mayHaveMerged),
    onStep: (step) => link.stepped(step),
  });
  const watches = stampNames.map((stamp) => new RoleWatch(sim, place, history, stamp));
  tally.faults = faults.counts;
  faults.start();
  link.start();
  const endMs = sim.nowMs + workMs;
  const pauseMaxMs = either(set.pauseMaxMs, prng.pick([100, 600]));
  const working = [...writers, reader].map((each) => each.work(endMs, pauseMaxMs));
  await Promise.all([...working, operator.work(endMs), ...watches.map((each) => each.work(endMs))]);
  await link.stop();
  await faults.heal();
  const done: Record<string, number> = { ...faults.counts, ...link.counts };
  for (const one of reshapes) for (const [what, times] of Object.entries(one.reshapes.counts)) count(done, `${one.table} ${what}`, times);
  tally.faults = done;
  await sim.until(() => place.ready(), readyWithinMs, "everything is ready after the last fault");
  let primary = await operator.settle(settledWithinMs);
  let finals = await equal(sim, reader, primary);
  await lastSyncFollows(sim, reader, otherStamp(primary));
  if (prng.chance(0.3)) {
    primary = await operator.failOver(settledWithinMs);
    await operator.settle(settledWithinMs);
    finals = await equal(sim, reader, primary);
  }
  for (const [what, number] of Object.entries(history.judge(finals))) count(tally.counts, `judged ${what}`, number);
  if (!prng.chance(0.3)) return;
  await operator.removeCopy(settledWithinMs);
  await nothingLeft(sim, place, otherStamp(primary));
  count(tally.counts, "copy removed");
}

/** Looks with the eyes of the collector: a stamp that a copy was removed from has no row of any blob or entity. */
async function nothingLeft(sim: Simulation, place: TwoStamps, from: StampName): Promise<void> {
  const cluster = place.stamps[from];
  const endMs = sim.nowMs + equalWithinMs;
  const options = { timeoutMs: 20_000 };
  for (const manager of cluster.processes.filter((name) => name.startsWith("partition-manager-"))) {
    const client = sim.world("operator").transport.client(cluster.addressOf(manager), PartitionManager);
    const map = await client.getMap({}, options);
    if (!map.ok) continue;
    for (const { rangeId, table } of map.value.ranges.filter(({ table }) => table === "Blob" || table === "Entity")) {
      let found = await client.collectRange({ rangeId }, options);
      // Another range is collected now, or the range moves.
      while (!found.ok && sim.nowMs < endMs) {
        await sim.sleep(500);
        found = await client.collectRange({ rangeId }, options);
      }
      if (found.ok && found.value.rows > 0n)
        throw new BrokenPromise(
          `${found.value.rows} rows of the removed account are left at ${from}, in range ${rangeId} of table ${table}`,
        );
    }
    return;
  }
}

/** Returns the setting of the focus, or the seed's choice. The seed chooses anyway, so that the rest of the run is the same. */
const either = <T>(set: T | undefined, chosen: T): T => set ?? chosen;

/** Both stamps come to show the same states, and the same snapshots of blobs. Returns the states. */
async function equal(sim: Simulation, reader: Reader, primary: StampName): Promise<ReadonlyMap<string, number>> {
  const endMs = sim.nowMs + equalWithinMs;
  for (;;) {
    const [own, copy] = [await reader.all(primary, false), await reader.all(otherStamp(primary), true)];
    const isSame = own !== undefined && copy !== undefined && [...own.states].every(([name, id]) => copy.states.get(name) === id);
    if (isSame && own.blobs === copy.blobs) return own.states;
    if (sim.nowMs > endMs) {
      const text = (shown: Shown | undefined): string => (shown === undefined ? "no answer" : [...shown.states].join(" "));
      const blobs = isSame ? `; blobs: ${own.blobs} and ${copy.blobs}` : "";
      throw new BrokenPromise(`not equal within ${equalWithinMs} ms: ${primary} has ${text(own)}, its copy ${text(copy)}${blobs}`);
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
