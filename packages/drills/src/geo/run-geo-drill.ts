/** Runs a drill of two stamps: they are started, filled, struck while clients write, and read back. */
import { conclusionOf, type Verdict, verdictOf } from "../verdict.ts";
import { Timeline, type TimelineEntry } from "../watch.ts";
import { type GeoDrill, type GeoScene, listedGeoDrills } from "./geo-drills.ts";
import { type Doors, doorsOf, LocatedClients, prepare, readAll, type Write } from "./located-clients.ts";
import { TwoStamps } from "./two-stamps.ts";

export interface GeoDrillOptions {
  /** The file of the command line, as `process.argv[1]`. */
  readonly main: string;
  /** Number of objects that are there before the clients: nine tenths entities, the others blobs of 1 KiB. */
  readonly objects: number;
  /** Number of blobs of 4 MiB besides. */
  readonly largeBlobs: number;
  readonly keep: boolean;
  readonly onEntry?: (entry: TimelineEntry) => void;
}

export interface GeoDrillReport {
  readonly drill: string;
  /** Whether every promise was kept. */
  readonly ok: boolean;
  readonly verdict: Verdict;
  /** Line with the verdict and its measure. */
  readonly conclusion: string;
  readonly prepared: number;
  readonly acknowledged: number;
  /** Failed attempts of clients, by stamp and code. */
  readonly errors: Readonly<Record<string, number>>;
  /** Number of objects that were read back and compared. */
  readonly readBack: number;
  /** Acknowledged writes that a forced failover lost. */
  readonly lost: number;
  readonly broken: readonly string[];
  readonly timeline: readonly TimelineEntry[];
  readonly longestHoldUpMs: number;
  readonly holdUpAimMs: number;
  /** Longest time that a write took before the first fault, in ms. */
  readonly slowestBeforeMs: number;
}

const beforeFaultMs = 5_000;
const completeMaxMs = 1_800_000;

export async function runGeoDrill(drill: GeoDrill, options: GeoDrillOptions): Promise<GeoDrillReport> {
  const timeline = new Timeline(options.onEntry ?? (() => {}));
  const stamps = await TwoStamps.start(options.main);
  try {
    const key = await makeAccount(stamps, drill);
    const north = doorsOf(stamps, "north-1", key, { tries: 20 });
    const prepared = await filled(north, stamps, drill, options, timeline);
    const clients = new LocatedClients([doorsOf(stamps, "north-1", key), doorsOf(stamps, "south-1", key)], "client");
    const broken: string[] = [];
    const fault = (what: string): void => timeline.fault(what);
    const note = (what: string): void => timeline.note(what);
    stamps.onSaid = (line) => note(`(command) ${line}`);
    const scene: GeoScene = { stamps, key, prepared, clients, broken, fault, note };
    let lost: ReadonlySet<string> = new Set();
    try {
      await new Promise((resolve) => setTimeout(resolve, beforeFaultMs));
      lost = await drill.run(scene);
    } catch (error) {
      broken.push((error as Error).message);
    } finally {
      await clients.stop();
    }
    const readBack = await judgeEnd(doorsOf(stamps, drill.endsAt, key, { tries: 20 }), scene, lost);
    const heldUp = holdUpOf(clients.acked, timeline.faultMs, drill.holdUpAimMs);
    if (!Number.isFinite(heldUp.longestHoldUpMs)) broken.push("no write was acknowledged after the fault");
    return {
      ...heldUp,
      drill: drill.name,
      ok: broken.length === 0,
      verdict: verdictOf(broken, heldUp),
      conclusion: conclusionOf(drill.name, broken, heldUp),
      prepared: prepared.length,
      acknowledged: clients.acked.length,
      errors: Object.fromEntries(clients.errors),
      readBack,
      lost: lost.size,
      broken,
      timeline: timeline.entries,
    };
  } finally {
    await stamps.close(options.keep);
  }
}

async function makeAccount(stamps: TwoStamps, { hasCopy }: GeoDrill): Promise<string> {
  const copy = hasCopy ? ["--geo", "south"] : [];
  const { keys } = await stamps.json<{ keys: readonly string[] }>("account", "create", stamps.account, "--location", "north", ...copy);
  return keys[0] ?? "";
}

async function filled(
  north: Doors,
  stamps: TwoStamps,
  { hasCopy }: GeoDrill,
  { objects, largeBlobs }: GeoDrillOptions,
  timeline: Timeline,
): Promise<readonly string[]> {
  const beganMs = performance.now();
  const prepared = await prepare(north, objects, largeBlobs);
  const tookS = ((performance.now() - beganMs) / 1_000).toFixed(1);
  timeline.note(`${prepared.length} objects were written in ${tookS} s, ${largeBlobs} of them blobs of 4 MiB`);
  if (!hasCopy) return prepared;
  const isComplete = ({ seeded, pendingOperations }: { readonly seeded: boolean; readonly pendingOperations: number | null }): boolean =>
    seeded && pendingOperations === 0;
  await stamps.untilCopy("a complete copy", completeMaxMs, isComplete);
  timeline.note("south-1 has a complete copy");
  return prepared;
}

/** Reads every object at its final place. Returns the number of objects. */
async function judgeEnd(doors: Doors, { prepared, clients, broken }: GeoScene, lost: ReadonlySet<string>): Promise<number> {
  try {
    const { names, wrong } = await readAll(doors);
    const missing = [...prepared, ...clients.acked.map(({ name }) => name)].filter((name) => !names.has(name) && !lost.has(name));
    if (missing.length > 0) broken.push(`acknowledged, and not at ${doors.stamp} in the end: ${listedGeoDrills(missing)}`);
    if (wrong.length > 0) broken.push(`with another content at ${doors.stamp} in the end: ${listedGeoDrills(wrong)}`);
    return names.size;
  } catch (error) {
    broken.push(`what ${doors.stamp} has in the end can't be read: ${(error as Error).message}`);
    return 0;
  }
}

/** Returns the longest writes before the first fault, and of those that were under way at it or began later. */
export function holdUpOf(acked: readonly Pick<Write, "startMs" | "endMs">[], faultMs: number, holdUpAimMs: number) {
  const longest = (writes: readonly Pick<Write, "startMs" | "endMs">[]): number =>
    Math.round(writes.reduce((most, { startMs, endMs }) => Math.max(most, endMs - startMs), 0));
  const after = acked.filter(({ endMs }) => endMs >= faultMs);
  return {
    longestHoldUpMs: after.length === 0 ? Number.POSITIVE_INFINITY : longest(after),
    holdUpAimMs,
    slowestBeforeMs: longest(acked.filter(({ endMs }) => endMs < faultMs)),
  };
}
