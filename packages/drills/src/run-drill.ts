/** Runs one drill: clients write, the fault comes, the stamp is whole again, everything is read back. */
import { randomBytes } from "node:crypto";
import { BlobClient } from "./blob-client.ts";
import { CheckingClient, type CheckingReport, type WriteTime } from "./checking-client.ts";
import { CodedBlobs } from "./coding/coded-blobs.ts";
import type { Drill } from "./drill.ts";
import type { DrillContext } from "./faults.ts";
import { RegisterClients } from "./histories/register-clients.ts";
import { SilenceWatch } from "./silence.ts";
import { type DrillTarget, untilReady } from "./target.ts";
import { conclusionOf, type ReadHoldUp, type Verdict, verdictOf } from "./verdict.ts";
import { Timeline, type TimelineEntry, Watch } from "./watch.ts";

export interface DrillReport extends CheckingReport {
  readonly drill: string;
  /** Whether every promise was kept. */
  readonly ok: boolean;
  readonly verdict: Verdict;
  /** Line with the verdict and its measure. */
  readonly conclusion: string;
  /** Number of operations whose recorded history was checked for linearizability. */
  readonly registerOperations: number;
  readonly timeline: readonly TimelineEntry[];
  /** Longest time that a write took which was under way after the first fault, in ms. Infinity if none was acknowledged. */
  readonly longestHoldUpMs: number;
  readonly holdUpAimMs: number;
  /** Longest time that a write took before the first fault, in ms. */
  readonly slowestBeforeMs: number;
  /** Longest reads of coded blobs, in a drill of erasure coding. */
  readonly codedReads?: ReadHoldUp;
}

export interface DrillOptions {
  /** Number of ranges (default 20). */
  readonly ranges?: number;
  readonly beforeFaultMs?: number;
  /** How long to wait until every extent has its copies again, in ms. Default 90,000: replicas are made again after 60 s. */
  readonly wholeTimeoutMs?: number;
  readonly onEntry?: (entry: TimelineEntry) => void;
  /** Called each second with the clients' observations of that second. */
  readonly onWrites?: (writes: Writes) => void;
}

/** Writes of the clients that were acknowledged in one second. */
export interface Writes {
  readonly count: number;
  /** Longest time of an operation in milliseconds; null without any. */
  readonly longestMs: number | null;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function runDrill(drill: Drill, target: DrillTarget, options: DrillOptions = {}): Promise<DrillReport> {
  const timeline = new Timeline(options.onEntry ?? (() => {}));
  const client = BlobClient.fromConnectionString(target.connectionString, { timeoutMs: 30_000 });
  const container = `drill-${randomBytes(6).toString("hex")}`;
  const checking = new CheckingClient({ client, container, ...drill.clients });
  const registers = new RegisterClients(client);
  const broken: string[] = [];
  const blobs = drill.codedReads === undefined ? undefined : new CodedBlobs(target, client, `${container}-coded`);
  const context: DrillContext = {
    target,
    container: { account: client.account, name: container },
    ...(options.ranges === undefined ? {} : { ranges: options.ranges }),
    ...(blobs === undefined ? {} : { blobs }),
    fault: (what) => timeline.fault(what),
    note: (what) => timeline.note(what),
  };
  await drill.prepare?.(context);
  await checking.start();
  await registers.start();
  blobs?.begin();
  await pause(options.beforeFaultMs ?? 3_000);
  const watch = new Watch(target, timeline);
  const silence = new SilenceWatch(
    { timeline, times: checking.times, waitsFor: () => watch.waitsFor, nowMs: () => performance.now() },
    slowest(checking.times),
  );
  await watch.begin();
  silence.begin();
  const telling = tellWrites(checking.times, options.onWrites);
  const stopped = async (): Promise<void> => {
    // A write that never comes back would be held up for ever: those under way may take this long.
    await Promise.all([checking.stop(30_000), registers.stop(), blobs?.stop()]);
  };
  try {
    await strike(drill, context, () => pause(Math.max(0, drill.afterFaultMs - (performance.now() - timeline.lastFaultMs))));
    await stopped();
    silence.end();
    await untilReady(target);
    if (!(await becomesWhole(watch, options.wholeTimeoutMs ?? 90_000))) broken.push("not every extent has its copies again");
  } catch (error) {
    broken.push((error as Error).message);
    silence.end();
    await stopped();
  } finally {
    clearInterval(telling);
    await watch.stop();
  }
  const checked = await checking.verify();
  const codedReads = blobs === undefined || drill.codedReads === undefined ? undefined : readsOf(blobs, timeline, drill.codedReads.aimMs);
  await blobs?.readAll("afterwards");
  broken.push(...checked.broken, ...(blobs?.broken ?? []), ...(await registers.judge()));
  client.close();
  const after = checking.times.filter((each) => each.endMs >= timeline.faultMs);
  if (after.length === 0) broken.push("no write was acknowledged after the fault");
  const heldUp = {
    longestHoldUpMs: after.length === 0 ? Number.POSITIVE_INFINITY : Math.round(slowest(after)),
    holdUpAimMs: drill.holdUpAimMs,
    slowestBeforeMs: Math.round(slowest(checking.times.filter((each) => each.endMs < timeline.faultMs))),
    ...(codedReads === undefined ? {} : { codedReads }),
  };
  return {
    ...checked,
    ...heldUp,
    drill: drill.name,
    ok: broken.length === 0,
    verdict: verdictOf(broken, heldUp),
    conclusion: conclusionOf(drill.name, broken, heldUp),
    registerOperations: registers.operations,
    broken,
    timeline: timeline.entries,
  };
}

/** Tells new writes each second. `times` grows meanwhile. */
function tellWrites(times: readonly WriteTime[], onWrites: DrillOptions["onWrites"]): NodeJS.Timeout | undefined {
  if (onWrites === undefined) return undefined;
  let told = 0;
  return setInterval(() => {
    const some = times.slice(told);
    told += some.length;
    onWrites({ count: some.length, longestMs: some.length === 0 ? null : Math.round(slowest(some)) });
  }, 1_000);
}

/** Reads of coded blobs while the drill ran, before and after the first fault. */
function readsOf({ times }: CodedBlobs, { faultMs }: Timeline, aimMs: number): ReadHoldUp {
  const longest = (isAfter: boolean): number => Math.round(slowest(times.filter(({ endMs }) => endMs >= faultMs === isAfter)));
  return { longestMs: longest(true), aimMs, slowestBeforeMs: longest(false) };
}

/** Returns the longest time of an operation, in ms; 0 if there is none. */
const slowest = (times: readonly WriteTime[]): number =>
  times.reduce((longest, { startMs, endMs }) => Math.max(longest, endMs - startMs), 0);

async function becomesWhole(watch: Watch, timeoutMs: number): Promise<boolean> {
  const untilMs = performance.now() + timeoutMs;
  while (performance.now() < untilMs) {
    if (watch.whole) return true;
    await pause(50);
  }
  return false;
}

/** Runs the drill, and brings back what it held down, also if it failed half-way. `goOn`: the clients go on writing meanwhile. */
export async function strike({ run, mend }: Pick<Drill, "run" | "mend">, context: DrillContext, goOn: () => Promise<void>): Promise<void> {
  try {
    await run(context);
    await goOn();
  } finally {
    await startEverything(context);
    await mend?.(context);
  }
}

async function startEverything(context: DrillContext): Promise<void> {
  for (const each of (await context.target.status()).processes) {
    if (each.state === "down") {
      await context.target.ask({ do: "start", name: each.name });
      context.note(`${each.name} started again`);
    }
  }
}
