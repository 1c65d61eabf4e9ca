/**
 * Clients of the real SDKs work on blobs, entities, transactions and messages while every kind of process is killed and a partition server
 * is stopped for longer than its lease. What each client asked and was answered is recorded; afterwards one order of all operations must
 * explain every answer (blobs, entities and transactions, each name for itself), and no promise about messages may have been broken.
 */
import { randomBytes } from "node:crypto";
import { Prng } from "@stamp/base";
import { type BlobDoor, ObjectClients, type ObjectClientsOptions, QueueClients, until } from "@stamp/histories";
import { type DrillContext, kill, leaderOf, nodesWrittenTo, serverOf, servingLockService } from "../faults.ts";
import { type DrillTarget, untilReady } from "../target.ts";
import { Timeline, type TimelineEntry } from "../watch.ts";
import { judgedInto, judgeHistory, stageInto } from "./real-stage.ts";
import { SdkBlobDoor, SdkEntityDoor, SdkQueueDoor, SdkTransactionDoor } from "./sdk-doors.ts";

export { MovingClients, type Pause } from "./moving-clients.ts";

export interface HistoriesReport {
  readonly ok: boolean;
  readonly broken: readonly string[];
  /** Keyed by kind of object: how often each answer came. */
  readonly counts: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Operations in the checked histories. */
  readonly operations: number;
  readonly faults: number;
  readonly timeline: readonly TimelineEntry[];
}

export interface HistoriesOptions {
  /** Least time of the clients' work; the faults take about 50 s. */
  readonly workMs?: number;
  readonly seed?: number;
  readonly onEntry?: (entry: TimelineEntry) => void;
}

const clientsPerKind = 3;
const pauseMaxMs = 60;
/**
 * Four operations of a hundred may delete a container and make it again; one of so many does: about one in three
 * seconds.
 */
const recreateOneIn = 10;
/** An entity's binary property holds 64 KiB. */
const entityBytesMax = 30_000;
const betweenFaultsMs = 4_000;
const healedWithinMs = 60_000;
/** Time of a stop, in milliseconds: longer than a lease, its margin and the move of its ranges. */
const stoppedMs = 14_000;
const findWithinMs = 20_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function runHistoriesDrill(target: DrillTarget, options: HistoriesOptions = {}): Promise<HistoriesReport> {
  const timeline = new Timeline(options.onEntry ?? (() => {}));
  const prng = new Prng(options.seed ?? randomBytes(4).readUInt32LE(0));
  const broken: string[] = [];
  const startMs = performance.now();
  let striking = true;
  const goesOn = (): boolean => broken.length === 0 && (striking || performance.now() - startMs < (options.workMs ?? 0));
  const plays = [...objectPlays(target.connectionStrings, prng), queuePlay(target.connectionStrings, prng)];
  for (const play of plays) await play.prepare();
  timeline.note(`${plays.map(({ name }) => name).join(", ")}: clients begin`);
  const faults = strike(target, timeline, () => broken.length === 0).finally(() => {
    striking = false;
  });
  await Promise.all([faults, ...plays.map((play) => judgedInto(broken, play.work(goesOn)))]);
  await untilReady(target);
  timeline.note("clients stop; everything is read back and judged");
  for (const play of plays) await judgedInto(broken, play.finish(broken));
  return {
    ok: broken.length === 0,
    broken,
    counts: Object.fromEntries(plays.map(({ name, counts }) => [name, counts])),
    operations: plays.reduce((sum, play) => sum + play.operations(), 0),
    faults: await faults,
    timeline: timeline.entries,
  };
}

interface Play {
  readonly name: string;
  readonly counts: Readonly<Record<string, number>>;
  prepare(): Promise<void>;
  work(goesOn: () => boolean): Promise<unknown>;
  /** Reads everything back and judges. */
  finish(broken: string[]): Promise<void>;
  operations(): number;
}

const sumOf = (counts: Readonly<Record<string, number>>): number => Object.values(counts).reduce((sum, count) => sum + count, 0);
const unique = (): string => randomBytes(4).toString("hex");

interface Kind {
  readonly name: string;
  readonly doorTo: (connectionString: string) => BlobDoor;
  readonly options?: Partial<ObjectClientsOptions>;
}

function objectPlays(connectionStrings: readonly string[], prng: Prng): Play[] {
  const kinds: readonly Kind[] = [
    { name: "blobs", doorTo: (connectionString) => new SdkBlobDoor(connectionString) },
    { name: "entities", doorTo: (connectionString) => new SdkEntityDoor(connectionString), options: { lengthBytesMax: entityBytesMax } },
    {
      name: "transactions",
      doorTo: (connectionString) => new SdkTransactionDoor(connectionString),
      options: { conditionalDeletes: false },
    },
  ];
  return kinds.map(({ name, doorTo, options }) => {
    const counts: Record<string, number> = {};
    const stage = stageInto(counts);
    // Letters and digits, which every kind of container may have.
    const names = new Map([
      [`left${unique()}`, ["a", "b", "c"]],
      [`right${unique()}`, ["a", "z/y"]],
    ]);
    const clients = new ObjectClients(stage, names, { pauseMaxMs, recreateOneIn, ...options });
    const doors = Array.from({ length: clientsPerKind }, (_, i) => doorTo(connectionStrings[i % connectionStrings.length] as string));
    const first = doors[0] as BlobDoor;
    return {
      name,
      counts,
      prepare: async () => {
        for (const container of names.keys()) await clients.createContainer(first, container);
      },
      work: (goesOn) => Promise.all(doors.map((door) => clients.work(door, prng.fork(), goesOn))),
      finish: async (broken) => {
        await clients.readBack(first, prng, healedWithinMs);
        broken.push(...judgeHistory(clients).map((wrong) => `${name}: ${wrong}`));
      },
      operations: () => sumOf(counts),
    };
  });
}

function queuePlay(connectionStrings: readonly string[], prng: Prng): Play {
  const counts: Record<string, number> = {};
  const stage = stageInto(counts);
  const queues = [`left-${unique()}`, `right-${unique()}`];
  const clients = new QueueClients(stage, queues, pauseMaxMs);
  const doors = Array.from(
    { length: clientsPerKind + 1 },
    (_, i) => new SdkQueueDoor(connectionStrings[i % connectionStrings.length] as string),
  );
  const first = doors[0] as SdkQueueDoor;
  return {
    name: "messages",
    counts,
    prepare: async () => {
      for (const queue of queues) {
        await until(
          stage,
          "a queue is made",
          { withinMs: healedWithinMs, pauseMs: 200 },
          async () => (await first.create(queue)).kind === "ok",
        );
      }
    },
    work: (goesOn) => Promise.all(doors.map((door) => clients.work(door, prng.fork(), goesOn))),
    finish: async () => {
      for (const queue of queues) await clients.empty(first, queue, healedWithinMs);
    },
    operations: () => sumOf(counts) - (counts["messages taken"] ?? 0),
  };
}

/** Strikes one fault after another, each under the clients' work. Returns their number. */
async function strike(target: DrillTarget, timeline: Timeline, goesOn: () => boolean): Promise<number> {
  let count = 0;
  const context: DrillContext = { target, fault: (what) => timeline.fault(what), note: (what) => timeline.note(what) };
  const killed = (whom: () => Promise<string>): (() => Promise<void>) => {
    return async () => kill(context, await found(whom));
  };
  const faults: readonly (() => Promise<void>)[] = [
    killed(async () => (await nodesWrittenTo(context, "Entity"))[0] as string),
    killed(() => serverOf(context, "Message")),
    killed(() => leaderOf(context, "stream-manager")),
    killed(async () => "front-end-1"),
    () => stopForLong(context, "Entity"),
    killed(() => leaderOf(context, "partition-manager")),
    killed(() => serverOf(context, "Blob")),
    killed(() => servingLockService(context)),
    killed(async () => (await nodesWrittenTo(context, "Message")).at(-1) as string),
  ];
  for (const fault of faults) {
    await pause(betweenFaultsMs);
    if (!goesOn()) break;
    await fault();
    count++;
  }
  await pause(2 * betweenFaultsMs);
  return count;
}

async function stopForLong(context: DrillContext, table: string): Promise<void> {
  const name = await found(() => serverOf(context, table));
  context.fault(`SIGSTOP ${name} for ${stoppedMs / 1_000} s`);
  await context.target.ask({ do: "signal", name, signal: "SIGSTOP" });
  await pause(stoppedMs);
  await context.target.ask({ do: "signal", name, signal: "SIGCONT" });
  context.note(`SIGCONT ${name}`);
}

/** Managers that are just being restarted can't be asked. */
async function found(whom: () => Promise<string>): Promise<string> {
  for (const endMs = performance.now() + findWithinMs; ; await pause(100)) {
    try {
      return await whom();
    } catch (error) {
      if (performance.now() > endMs) throw error;
    }
  }
}
