/**
 * Drills of an account at two stamps (docs/guides/geo.md): what each breaks, and what has to hold. They are run by `run-geo-drill.ts`.
 */
import { doorsOf, LocatedClients, readAll, type Write } from "./located-clients.ts";
import type { CopyFacts, ReportFacts, StampName, TwoStamps } from "./two-stamps.ts";

/** Stamps, clients and timeline that a drill works with. */
export interface GeoScene {
  readonly stamps: TwoStamps;
  /** Key of the account, in base64. */
  readonly key: string;
  /** Names of the objects that were there before the clients. */
  readonly prepared: readonly string[];
  /** Clients that know both stamps. The frame stops them when the drill has run. */
  readonly clients: LocatedClients;
  /** Promises that were broken; a drill adds to them. */
  readonly broken: string[];
  readonly fault: (what: string) => void;
  readonly note: (what: string) => void;
}

export interface GeoDrill {
  readonly name: string;
  readonly about: string;
  /** Longest hold-up of a write that the design aims at, in ms; see verdict.ts. */
  readonly holdUpAimMs: number;
  /** Whether the account has a complete copy at south-1 before the clients begin. */
  readonly hasCopy: boolean;
  /** Stamp that has everything in the end. */
  readonly endsAt: StampName;
  /** Runs the drill. Returns the names of writes that it lost on purpose, for which nobody looks in the end. */
  readonly run: (scene: GeoScene) => Promise<ReadonlySet<string>>;
}

const seconds = 1_000;
const silentMs = 10 * seconds;
const caughtUpMaxMs = 180 * seconds;
const completeMaxMs = 600 * seconds;
const listedMax = 3;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const none: ReadonlySet<string> = new Set();

/** Returns the first names, and how many there are. */
export const listedGeoDrills = (names: readonly string[]): string => {
  const more = names.length > listedMax ? `, … (${names.length})` : "";
  return `${names.slice(0, listedMax).join(", ")}${more}`;
};

const lagOf = ({ lagSeconds, pendingOperations, pendingBytes }: CopyFacts): string =>
  `lag ${lagSeconds ?? "?"} s, ${pendingOperations ?? "?"} commits and ${pendingBytes ?? "?"} bytes pending`;

async function cutLink({ stamps, key, prepared, clients, broken, fault, note }: GeoScene): Promise<ReadonlySet<string>> {
  fault("the front-ends of south-1 are stopped: the link is silent");
  await stamps.signalDoors("south-1", "SIGSTOP");
  try {
    await pause(silentMs);
    note(`before the end of the cut: ${lagOf(await stamps.copy())}`);
  } finally {
    await stamps.signalDoors("south-1", "SIGCONT");
  }
  note("they go on");
  await pause(2 * seconds);
  await clients.stop();
  const caughtUp = await stamps.untilCopy("the copy has caught up", caughtUpMaxMs, ({ pendingOperations }) => pendingOperations === 0);
  note(`the copy has caught up: ${lagOf(caughtUp)}`);
  const { names, wrong } = await readAll(doorsOf(stamps, "south-1", key, { secondary: true, tries: 20 }));
  const missing = [...prepared, ...clients.acked.map(({ name }) => name)].filter((name) => !names.has(name));
  if (missing.length > 0) broken.push(`not at the copy: ${listedGeoDrills(missing)}`);
  if (wrong.length > 0) broken.push(`with another content at the copy: ${listedGeoDrills(wrong)}`);
  return none;
}

/** Returns the names of the objects that a report is about. */
function namesIn({ rows }: ReportFacts): ReadonlySet<string> {
  const names = rows.flatMap(({ kind, partitionKey, rowKey, blob }) => {
    if (kind === "entity") return [`${partitionKey}/${rowKey}`];
    return kind === "blob" && typeof blob === "string" ? [blob] : [];
  });
  return new Set(names);
}

interface Forced {
  readonly killedMs: number;
  /** Last Sync Time that the failover told, in milliseconds since 1970; undefined: none was known. */
  readonly lastSyncMs: number | undefined;
}

/** Kills the primary whole and makes the copy primary. */
async function loseAndForce({ stamps, clients, broken, fault, note }: GeoScene): Promise<Forced> {
  fault("kill -9 all processes of north-1 and their supervisor");
  const killedMs = performance.now();
  await stamps.killWhole("north-1");
  const failover = ["geo", "failover", stamps.account, "--forced", "--accept-loss", "--to", "south-1"];
  const told = await stamps.json<CopyFacts>(...failover);
  note(`forced failover: the command took ${Math.round(performance.now() - killedMs)} ms, Last Sync Time ${told.acceptedSync}`);
  const first = await firstAt(clients, "south-1");
  if (first === undefined) broken.push("south-1 accepted no write after the forced failover");
  else note(`the first write was accepted at south-1 ${Math.round(first.endMs - killedMs)} ms after the kill`);
  return { killedMs, lastSyncMs: told.acceptedSync === null ? undefined : Date.parse(told.acceptedSync) };
}

/** Waits for the first write that a stamp acknowledges. */
async function firstAt({ acked }: LocatedClients, stamp: StampName): Promise<Write | undefined> {
  for (const endMs = performance.now() + 60 * seconds; performance.now() < endMs; await pause(50)) {
    const first = acked.find((write) => write.stamp === stamp);
    if (first !== undefined) return first;
  }
  return undefined;
}

/** Judges what the forced failover lost. Returns the names. */
async function judgeLoss({ stamps, key, clients, broken, note }: GeoScene, { lastSyncMs }: Forced): Promise<ReadonlySet<string>> {
  const { names } = await readAll(doorsOf(stamps, "south-1", key, { tries: 20 }));
  const lost = clients.acked.filter(({ name, stamp }) => stamp === "north-1" && !names.has(name));
  note(`lost: ${lost.length} of ${clients.acked.filter(({ stamp }) => stamp === "north-1").length} writes that north-1 acknowledged`);
  if (lastSyncMs === undefined) broken.push("the failover told no Last Sync Time");
  const early = lost.filter(({ ackedMs, writtenMs = Number.POSITIVE_INFINITY }) => Math.min(ackedMs, writtenMs) <= (lastSyncMs ?? 0));
  if (early.length > 0) broken.push(`lost, though from before Last Sync Time: ${listedGeoDrills(early.map(({ name }) => name))}`);
  return new Set(lost.map(({ name }) => name));
}

/** Returns the names that only the deposed stamp has: a write without an answer there was repeated at the new primary, under the same name. */
const onlyOld = (reported: ReadonlySet<string>, { acked }: LocatedClients): readonly string[] => {
  const repeated = new Set(acked.filter(({ stamp }) => stamp === "south-1").map(({ name }) => name));
  return [...reported].filter((name) => !repeated.has(name));
};

/** Brings the lost stamp back and judges its report. `deposed`: names that it acknowledged and that the new primary lacks. */
async function bringBack(
  { stamps, key, clients, broken, note }: GeoScene,
  deposed: () => ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  await stamps.bringBack("north-1");
  note("north-1 is ready again");
  const names = namesIn(await stamps.report("north-1", completeMaxMs));
  note(`north-1 has reported ${names.size} objects that only it had`);
  const isCopy = ({ stamp, secondary, seeded }: CopyFacts): boolean => stamp === "south-1" && secondary === "north-1" && seeded;
  await stamps.untilCopy("north-1 has a complete copy", completeMaxMs, isCopy);
  note("north-1 has a complete copy of south-1");
  const missing = [...deposed()].filter((name) => !names.has(name));
  if (missing.length > 0) broken.push(`lost, and not in the report: ${listedGeoDrills(missing)}`);
  const there = await readAll(doorsOf(stamps, "south-1", key, { tries: 20 }));
  const both = onlyOld(names, clients).filter((name) => there.names.has(name));
  if (both.length > 0) broken.push(`in the report, and not lost: ${listedGeoDrills(both)}`);
  return names;
}

/** Kills the primary after a silent moment of the link, so that there is a loss. */
async function losePrimary(scene: GeoScene): Promise<ReadonlySet<string>> {
  const { stamps, clients, note } = scene;
  note("the front-ends of south-1 are stopped for 2 s: what is written meanwhile is not shipped");
  await stamps.signalDoors("south-1", "SIGSTOP");
  let forced: Forced;
  try {
    await pause(2 * seconds);
  } finally {
    // The kill and the end of the silence are one moment: the old primary ships nothing in between.
    const going = loseAndForce(scene);
    await pause(seconds);
    await stamps.signalDoors("south-1", "SIGCONT");
    forced = await going;
  }
  await pause(3 * seconds);
  await clients.stop();
  const lost = await judgeLoss(scene, forced);
  await bringBack(scene, () => lost);
  return lost;
}

async function plannedFailover({ stamps, clients, broken, fault, note }: GeoScene): Promise<ReadonlySet<string>> {
  const { lagSeconds, pendingOperations } = await stamps.copy();
  fault(`planned failover to south-1; lag ${lagSeconds} s, ${pendingOperations} commits pending`);
  const beganMs = performance.now();
  await stamps.ok("geo", "failover", stamps.account, "--planned", "--to", "south-1");
  note(`the command took ${Math.round(performance.now() - beganMs)} ms`);
  await tellRefusal(clients, broken, note);
  return none;
}

/** Tells the time between the last write that the old primary acknowledged and the first one of the new primary. */
async function tellRefusal(clients: LocatedClients, broken: string[], note: (what: string) => void): Promise<void> {
  const first = await firstAt(clients, "south-1");
  await pause(2 * seconds);
  const last = clients.acked.findLast(({ stamp }) => stamp === "north-1");
  if (first === undefined || last === undefined) broken.push("no write was acknowledged on both sides of the change");
  else note(`writes were refused for ${Math.round(first.endMs - last.endMs)} ms`);
}

async function comeBack(scene: GeoScene): Promise<ReadonlySet<string>> {
  const { stamps, key, clients, broken, note } = scene;
  await stamps.untilCopy("an empty backlog", caughtUpMaxMs, ({ pendingOperations }) => pendingOperations !== null);
  const forced = await loseAndForce(scene);
  await pause(seconds);
  const lost = await judgeLoss(scene, forced);
  note("clients that know only the old address go on writing to north-1");
  const late = new LocatedClients([doorsOf(stamps, "north-1", key)], "late");
  const acknowledged = (): ReadonlySet<string> => new Set([...lost, ...late.acked.map(({ name }) => name)]);
  const reported = await bringBack(scene, acknowledged);
  const before = late.acked.length;
  await pause(2 * seconds);
  if (late.acked.length > before) broken.push(`the deposed north-1 acknowledged ${late.acked.length - before} writes`);
  await late.stop();
  note(`north-1 acknowledged ${before} writes until it heard that it is deposed; all are in its report`);
  note("failback to north-1");
  await stamps.ok("geo", "failback", stamps.account, "--to", "north-1");
  await pause(2 * seconds);
  await clients.stop();
  const { names } = await readAll(doorsOf(stamps, "north-1", key, { tries: 20 }));
  const risen = onlyOld(reported, clients).filter((name) => names.has(name));
  if (risen.length > 0) broken.push(`lost, and there again after the failback: ${listedGeoDrills(risen)}`);
  return lost;
}

async function migrate({ stamps, clients, broken, fault, note }: GeoScene): Promise<ReadonlySet<string>> {
  fault("migration to south-1");
  const beganMs = performance.now();
  let percent = -1;
  let isOver = false;
  const moving = stamps.ok("account", "migrate", stamps.account, "--to", "south-1").finally(() => {
    isOver = true;
  });
  const watching = (async () => {
    while (!isOver) {
      await pause(2 * seconds);
      const { seedingPercent, pendingOperations, kind } = await stamps.copy();
      const now = Math.floor(seedingPercent ?? -1);
      if (kind !== "" && now !== percent) note(`${now}% seeded, ${pendingOperations ?? "?"} commits pending`);
      percent = now;
    }
  })();
  await Promise.all([moving, watching]);
  note(`the command took ${((performance.now() - beganMs) / seconds).toFixed(1)} s`);
  await tellRefusal(clients, broken, note);
  const { stamp, secondary, state } = await stamps.copy();
  if (stamp !== "south-1" || secondary !== "" || state !== "single")
    broken.push(`the account is ${state} at ${stamp}, copy "${secondary}"`);
  const left = await stamps.json<{ name: string }[]>("account", "list", "--data", stamps.folderOf("north-1"));
  if (left.some(({ name }) => name === stamps.account)) broken.push("north-1 has the account still");
  return none;
}

export const geoDrills: readonly GeoDrill[] = [
  {
    name: "geo-link-cut",
    about: "the link to the copy is silent for 10 s while clients write; nobody waits for it, and the copy catches up",
    holdUpAimMs: 1_000,
    hasCopy: true,
    endsAt: "north-1",
    run: cutLink,
  },
  {
    name: "geo-primary-lost",
    about: "kill -9 the whole stamp of the primary while clients write; a forced failover, its loss, and the report of the lost stamp",
    holdUpAimMs: 15_000,
    hasCopy: true,
    endsAt: "south-1",
    run: losePrimary,
  },
  {
    name: "geo-planned",
    about: "a planned failover while clients of the SDKs write: their errors, and for how long writes are refused",
    holdUpAimMs: 5_000,
    hasCopy: true,
    endsAt: "south-1",
    run: plannedFailover,
  },
  {
    name: "geo-returns",
    about:
      "a stamp that was lost whole comes back while clients still write to it: it is fenced, reports, is filled, and gets its account back",
    holdUpAimMs: 15_000,
    hasCopy: true,
    endsAt: "north-1",
    run: comeBack,
  },
  {
    name: "geo-migrate",
    about: "an account moves to another stamp while clients write; all of it is compared by content",
    holdUpAimMs: 5_000,
    hasCopy: false,
    endsAt: "south-1",
    run: migrate,
  },
];
