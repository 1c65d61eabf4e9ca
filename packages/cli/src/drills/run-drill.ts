/** Runs one drill: clients write, the fault comes, the stamp is whole again, everything is read back. */
import { randomBytes } from "node:crypto";
import { BlobClient } from "./blob-client.ts";
import { CheckingClient, type CheckingReport, type WriteTime } from "./checking-client.ts";
import type { Drill } from "./drills.ts";
import type { DrillContext } from "./faults.ts";
import { RegisterClients } from "./histories/register-clients.ts";
import { type DrillTarget, untilReady } from "./target.ts";
import { Timeline, type TimelineEntry, Watch } from "./watch.ts";

export interface DrillReport extends CheckingReport {
  readonly drill: string;
  readonly ok: boolean;
  /** Of clients whose recorded history was checked for linearizability. */
  readonly registerOperations: number;
  readonly timeline: readonly TimelineEntry[];
  /** Of any write that was under way after the fault. */
  readonly longestHoldUpMs: number;
  readonly holdUpAimMs: number;
  /** For comparison, before the fault. */
  readonly slowestBeforeMs: number;
}

export interface DrillOptions {
  /** Default 20. */
  readonly ranges?: number;
  readonly beforeFaultMs?: number;
  /** How long to wait until every extent has its copies again. */
  readonly wholeTimeoutMs?: number;
  readonly onEntry?: (entry: TimelineEntry) => void;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function runDrill(drill: Drill, target: DrillTarget, options: DrillOptions = {}): Promise<DrillReport> {
  const timeline = new Timeline(options.onEntry ?? (() => {}));
  const client = BlobClient.fromConnectionString(target.connectionString, { timeoutMs: 30_000 });
  const checking = new CheckingClient({ client, container: `drill-${randomBytes(6).toString("hex")}`, ...drill.clients });
  const watch = new Watch(target.inspector, timeline);
  const broken: string[] = [];
  const registers = new RegisterClients(client);
  try {
    await checking.start();
    await registers.start();
    await pause(options.beforeFaultMs ?? 3_000);
    await watch.begin();
    const context: DrillContext = {
      target,
      ...(options.ranges === undefined ? {} : { ranges: options.ranges }),
      fault: (what) => {
        timeline.faultMs = performance.now();
        timeline.note(what);
      },
      note: (what) => timeline.note(what),
    };
    await drill.run(context);
    const leftMs = drill.afterFaultMs - (performance.now() - timeline.faultMs);
    await pause(Math.max(leftMs, 0));
    await drill.mend?.(context);
    // A write that never comes back would be held up for ever: those under way may take this long.
    await Promise.all([checking.stop(30_000), registers.stop()]);
    await untilReady(target);
    if (!(await becomesWhole(watch, options.wholeTimeoutMs ?? 30_000))) broken.push("not every extent has its copies again");
  } finally {
    await watch.stop();
  }
  const checked = await checking.verify();
  broken.push(...checked.broken, ...(await registers.judge()));
  client.close();
  const after = checking.times.filter((each) => each.endMs >= timeline.faultMs);
  if (after.length === 0) broken.push("no write was acknowledged after the fault");
  const slowest = after.reduce<WriteTime | undefined>(
    (held, each) => (held === undefined || lasted(each) > lasted(held) ? each : held),
    undefined,
  );
  if (slowest !== undefined)
    timeline.note(
      `served again: the write that was held up longest is acknowledged (after ${Math.round(lasted(slowest))} ms)`,
      slowest.endMs,
    );
  const before = checking.times.filter((each) => each.endMs < timeline.faultMs);
  return {
    ...checked,
    drill: drill.name,
    registerOperations: registers.operations,
    ok: broken.length === 0,
    broken,
    timeline: timeline.entries.toSorted((a, b) => a.atMs - b.atMs),
    longestHoldUpMs: Math.round(slowest === undefined ? Number.POSITIVE_INFINITY : lasted(slowest)),
    holdUpAimMs: drill.holdUpAimMs,
    slowestBeforeMs: Math.round(Math.max(0, ...before.map(lasted))),
  };
}

const lasted = (time: WriteTime): number => time.endMs - time.startMs;

async function becomesWhole(watch: Watch, timeoutMs: number): Promise<boolean> {
  const untilMs = performance.now() + timeoutMs;
  while (performance.now() < untilMs) {
    if (watch.whole) return true;
    await pause(50);
  }
  return false;
}
