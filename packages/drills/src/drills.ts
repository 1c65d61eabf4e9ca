/** The drills: what each breaks, and how it is mended. */

import { refused } from "@stamp/base";
import { timesText } from "@stamp/cluster";
import { codingDrills } from "./coding/coding-drills.ts";
import type { Drill } from "./drill.ts";
import { type DrillContext, kill, leaderOf, nodesWrittenTo, serverOf, servingLockService } from "./faults.ts";
import { stopAndAskOn } from "./old-callers.ts";
import { type DrillTarget, untilReady } from "./target.ts";

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const changeTimeoutMs = 60_000;
const takeOverTimeoutMs = 120_000;
const growMs = 30_000;
const pacedBetweenMs = 1_000;
const splitFailuresMax = 10;
const rangesOf = ({ ranges }: DrillContext): number => ranges ?? 20;

const blobRanges = async ({ target }: DrillContext) => (await target.inspector.ranges()).filter((range) => range.table === "Blob");

type Manager = Awaited<ReturnType<DrillTarget["inspector"]["partitionManager"]>>;

async function change(
  context: DrillContext,
  what: string,
  work: (manager: Manager) => ReturnType<Manager["movePartition"]>,
): Promise<boolean> {
  const changed = await work(await context.target.inspector.partitionManager());
  const held = changed.ok && changed.value.times ? `, ${timesText(changed.value.times)}` : "";
  context.note(`${what}: ${changed.ok ? `done${held}` : changed.failure.message}`);
  return changed.ok;
}

/**
 * Makes ranges behind all keys there are, up to as many as are wanted: empty, but each with streams and a load of its own. A split that failed
 * may have happened: the map is asked where to go on.
 */
async function splitBehind(context: DrillContext): Promise<void> {
  const { inspector } = context.target;
  const startMs = performance.now();
  let failures = 0;
  for (let [count, last] = await countAndLast(context); count < rangesOf(context); ) {
    const atKey = new TextEncoder().encode(`x${String(count).padStart(6, "0")}`);
    const split = await inspector.partitionManager().then(
      (manager) => manager.splitPartition({ rangeId: last, atKey }, { timeoutMs: changeTimeoutMs }),
      (error: Error) => refused("unavailable", "notLeader", error.message),
    );
    if (split.ok) {
      count++;
      last = split.value.ranges.find(({ highKey }) => highKey.length === 0)?.rangeId ?? "";
      if (count % 100 === 0) context.note(`${count} ranges after ${((performance.now() - startMs) / 1_000).toFixed(1)} s`);
      continue;
    }
    if (++failures > splitFailuresMax) throw new Error(`${last} was not split: ${split.failure.message}`);
    context.note(`${last} was not split, it is tried again: ${split.failure.message}`);
    await pause(1_000);
    [count, last] = await countAndLast(context);
  }
}

const notAnswered = (): [] => [];

async function countAndLast(context: DrillContext): Promise<[count: number, last: string]> {
  const endMs = performance.now() + changeTimeoutMs;
  let ranges = await blobRanges(context).catch(notAnswered);
  // Another manager may be about to lead.
  for (; ranges.length === 0 && performance.now() < endMs; ranges = await blobRanges(context).catch(notAnswered)) await pause(250);
  return [ranges.length, ranges.find(({ highKey }) => highKey.length === 0)?.rangeId ?? ""];
}

/** Reports the steps of load balancing meanwhile, each once. */
async function tellSteps(context: DrillContext, durationMs: number): Promise<readonly string[]> {
  const told = new Set<string>();
  const endMs = performance.now() + durationMs;
  while (performance.now() < endMs) {
    const plan = await (await context.target.inspector.partitionManager()).getRebalancePlan({}, { timeoutMs: 5_000 });
    for (const { kind, rangeId, to, why, failure } of plan.ok ? plan.value.done.toReversed() : []) {
      const text = `${kind} ${rangeId}${to === "" ? "" : ` to ${to}`}: ${why}${failure === "" ? "" : ` (not done: ${failure})`}`;
      if (!told.has(text)) context.note(text);
      told.add(text);
    }
    await pause(250);
  }
  return [...told];
}

/** Tells how long after the end of the lease ranges were served again: of all, and of those that were asked last before. */
async function untilTakenOver(context: DrillContext, name: string, held: ReadonlySet<string>, hot: ReadonlySet<string>): Promise<void> {
  const { inspector } = context.target;
  const endMs = performance.now() + takeOverTimeoutMs;
  // A manager that does not answer now is asked again.
  const until = async (done: () => Promise<boolean>): Promise<number> => {
    while (!(await done().catch(() => false)) && performance.now() < endMs) await pause(20);
    return performance.now();
  };
  const endedMs = await until(async () => (await inspector.servers()).some(({ server, up }) => server === name && !up));
  const afterMs = new Map<string, number>();
  await until(async () => {
    const ranges = await inspector.ranges();
    const nowMs = performance.now();
    for (const { rangeId, server, loaded } of ranges) {
      if (loaded && server !== name && held.has(rangeId) && !afterMs.has(rangeId)) afterMs.set(rangeId, nowMs - endedMs);
    }
    return afterMs.size === held.size;
  });
  const told = (which: ReadonlySet<string>): string => {
    const sorted = [...which].flatMap((rangeId) => afterMs.get(rangeId) ?? []).sort((a, b) => a - b);
    const at = (part: number): string => `${Math.round(sorted[Math.floor((sorted.length - 1) * part)] ?? Number.NaN)} ms`;
    return `the first after ${at(0)}, half of them after ${at(0.5)}, the last after ${at(1)}`;
  };
  context.note(`${afterMs.size} of ${held.size} ranges are served again; counted from when the end of the lease was seen, ${told(held)}`);
  if (hot.size > 0) context.note(`of the ${hot.size} ranges that were asked before, ${told(hot)}`);
  if (afterMs.size < held.size) throw new Error(`${held.size - afterMs.size} ranges are not served after ${takeOverTimeoutMs / 1_000} s`);
}

/** Returns the ranges of a server (`held`), and those of them that were asked in the last seconds (`hot`). */
async function heldBy({ target: { inspector } }: DrillContext, name: string): Promise<{ held: Set<string>; hot: Set<string> }> {
  const held = new Set((await inspector.ranges()).flatMap(({ server, rangeId }) => (server === name ? [rangeId] : [])));
  const hot = new Set<string>();
  for (const [rangeId, { load }] of await inspector.held()) {
    if (held.has(rangeId) && (load?.readsPerSecond ?? 0) + (load?.writesPerSecond ?? 0) > 0) hot.add(rangeId);
  }
  return { held, hot };
}

async function mergeAll(context: DrillContext, betweenMs = 0): Promise<void> {
  for (let left = (await blobRanges(context)).length; left > 1; left--) {
    const rangeId = (await blobRanges(context))[0]?.rangeId ?? "";
    await change(context, `merge ${rangeId}`, (manager) => manager.mergePartition({ rangeId }, { timeoutMs: changeTimeoutMs }));
    await pause(betweenMs);
  }
}

/** Splits the first range that can be split; false: none can. */
async function splitLargest(context: DrillContext): Promise<boolean> {
  for (const { rangeId } of (await blobRanges(context)).toReversed()) {
    const done = await change(context, `split ${rangeId}`, (manager) =>
      manager.splitPartition({ rangeId }, { timeoutMs: changeTimeoutMs }),
    );
    if (done) return true;
  }
  return false;
}

async function splitAndMerge(context: DrillContext, betweenMs = 0): Promise<void> {
  context.fault("splits and merges begin");
  for (let i = 0; i < 3; i++) {
    await splitLargest(context);
    await pause(betweenMs);
  }
  await mergeAll(context, betweenMs);
}

export const drills: readonly Drill[] = [
  {
    name: "kill-extent-node",
    about: "kill -9 an extent node that holds a secondary replica of what is being written",
    holdUpAimMs: 1_000,
    afterFaultMs: 8_000,
    run: async (context) => {
      const nodes = await nodesWrittenTo(context);
      await kill(context, nodes.at(-1) as string);
    },
  },
  {
    name: "kill-primary",
    about: "kill -9 the extent node that is the primary of what is being written",
    holdUpAimMs: 1_000,
    afterFaultMs: 8_000,
    run: async (context) => {
      const nodes = await nodesWrittenTo(context);
      await kill(context, nodes[0] as string);
    },
  },
  {
    name: "kill-partition-server",
    about: "kill -9 the partition server of the range that clients write; it is restarted at once",
    holdUpAimMs: 3_000,
    afterFaultMs: 8_000,
    run: async (context) => kill(context, await serverOf(context)),
  },
  {
    name: "kill-partition-server-stays-dead",
    about: "kill -9 the partition server of the range that clients write and keep it down: another one takes over",
    holdUpAimMs: 8_000,
    afterFaultMs: 12_000,
    run: async (context) => {
      const name = await serverOf(context);
      context.fault(`kill -9 ${name}, it stays down`);
      await context.target.ask({ do: "hold", name });
    },
  },
  {
    name: "kill-partition-manager",
    about: "kill -9 the partition manager",
    holdUpAimMs: 250,
    afterFaultMs: 8_000,
    run: async (context) => kill(context, await leaderOf(context, "partition-manager")),
  },
  {
    name: "kill-stream-manager",
    about: "kill -9 the stream manager",
    holdUpAimMs: 250,
    afterFaultMs: 8_000,
    run: async (context) => kill(context, await leaderOf(context, "stream-manager")),
  },
  {
    name: "kill-lock-service",
    about: "kill -9 the lock service that serves: of three the one that leads, and another one takes over",
    holdUpAimMs: 250,
    afterFaultMs: 10_000,
    run: async (context) => kill(context, await servingLockService(context)),
  },
  {
    name: "pause-extent-node",
    about: "SIGSTOP an extent node for 30 s, then let it go on: it must not serve or take what it missed",
    holdUpAimMs: 2_500,
    afterFaultMs: 40_000,
    run: async (context) => {
      const name = (await nodesWrittenTo(context))[0] as string;
      context.fault(`SIGSTOP ${name}`);
      await context.target.ask({ do: "signal", name, signal: "SIGSTOP" });
      await pause(30_000);
      await context.target.ask({ do: "signal", name, signal: "SIGCONT" });
      context.note(`SIGCONT ${name}`);
    },
  },
  {
    name: "pause-partition-server",
    about:
      "SIGSTOP the partition server of the range that clients write for 14 s, longer than its lease, twice; who asks it on by the old map hears nothing old",
    holdUpAimMs: 8_000,
    afterFaultMs: 20_000,
    run: stopAndAskOn,
  },
  {
    name: "reshape",
    about: "split, move and merge the ranges of the Blob table while clients write",
    holdUpAimMs: 250,
    afterFaultMs: 20_000,
    run: async (context) => {
      context.fault("splits, moves and merges begin");
      for (let i = 0; i < 3; i++) await splitLargest(context);
      for (const range of (await blobRanges(context)).slice(1))
        await change(context, `move ${range.rangeId}`, (manager) =>
          manager.movePartition({ rangeId: range.rangeId, server: "" }, { timeoutMs: changeTimeoutMs }),
        );
      await mergeAll(context);
    },
  },
  {
    name: "split-and-merge",
    about: "split the Blob table in four and merge it again, on one server, while clients write",
    holdUpAimMs: 250,
    afterFaultMs: 10_000,
    run: splitAndMerge,
  },
  {
    name: "split-and-merge-paced",
    about: "the same, a second apart, while clients write at a pace that leaves the processors room",
    holdUpAimMs: 250,
    afterFaultMs: 10_000,
    clients: { smallWriters: 4, largeWriters: 0, pauseMs: 100 },
    run: (context) => splitAndMerge(context, pacedBetweenMs),
  },
  {
    name: "reshapes-under-uploads",
    about: "split the Blob table in four, move a range away and merge all again, while eight clients upload 4 MiB without pause",
    holdUpAimMs: 2_000,
    afterFaultMs: 10_000,
    clients: { largeWriters: 8, largePauseMs: 0 },
    run: async (context) => {
      context.fault("splits, a move and merges begin");
      for (let i = 0; i < 3; i++) await splitLargest(context);
      const moved = (await blobRanges(context))[1]?.rangeId ?? "";
      await change(context, `move ${moved}`, (manager) =>
        manager.movePartition({ rangeId: moved, server: "" }, { timeoutMs: changeTimeoutMs }),
      );
      await mergeAll(context);
    },
  },
  {
    name: "splits-by-themselves",
    about: "let the Blob table grow by the clients' writes where ranges are split beyond 1 MiB of rows, and moved when servers are uneven",
    holdUpAimMs: 1_000,
    afterFaultMs: 1_000,
    roles: {
      "partition-manager": { splitBytes: 1_048_576, balanceEveryMs: 1_000, balanceRestMs: 2_000, mergeBytes: 0, moveRequestsPerSecond: 20 },
    },
    run: async (context) => {
      context.fault("what is watched begins");
      const steps = await tellSteps(context, growMs);
      const counts = [...Map.groupBy(await blobRanges(context), ({ server }) => server)].map(([server, all]) => `${server} ${all.length}`);
      context.note(`ranges of the Blob table by server: ${counts.join(", ")}`);
      if (!steps.some((step) => step.startsWith("split"))) throw new Error(`no range was split by itself in ${growMs / 1_000} s`);
    },
  },
  {
    name: "kill-partition-server-of-many",
    about:
      "split the Blob table into 20 ranges (--ranges) on one partition server, kill -9 it and keep it down: others take all of them over",
    holdUpAimMs: 8_000,
    afterFaultMs: 14_000,
    // Empty ranges would be merged again meanwhile.
    roles: { "partition-manager": { balance: false } },
    run: async (context) => {
      while ((await blobRanges(context)).length < Math.min(rangesOf(context), 20)) if (!(await splitLargest(context))) break;
      const name = await serverOf(context);
      for (const range of await blobRanges(context)) {
        if (range.server === name) continue;
        await change(context, `move ${range.rangeId}`, (manager) =>
          manager.movePartition({ rangeId: range.rangeId, server: name }, { timeoutMs: changeTimeoutMs }),
        );
      }
      await splitBehind(context);
      const { held, hot } = await heldBy(context, name);
      context.fault(`kill -9 ${name}, which serves ${held.size} ranges; it stays down`);
      await context.target.ask({ do: "hold", name });
      await untilTakenOver(context, name, held, hot);
    },
  },
  {
    name: "power-loss",
    about: "kill -9 every process at once, then start all again",
    holdUpAimMs: 15_000,
    afterFaultMs: 5_000,
    run: async (context) => {
      context.fault("kill -9 of every process");
      await context.target.ask({ do: "power-loss" });
      await pause(500);
      await context.target.ask({ do: "resume" });
      context.note("every process started again");
    },
  },
  {
    name: "rolling-restart",
    about: "stop and start every process, one after another, as an upgrade does; the next one when the one before serves again",
    // Term of a lease, and 2 s.
    holdUpAimMs: 8_000,
    afterFaultMs: 5_000,
    run: restartAll,
  },
  ...codingDrills,
];

/** Throws if a process does not serve again: the next one is not touched then. */
async function restartAll(context: DrillContext): Promise<void> {
  const { target } = context;
  const { processes } = await target.status();
  context.fault(`${processes.length} processes are stopped and started, one after another`);
  for (const { name } of processes) {
    const startMs = performance.now();
    await target.ask({ do: "restart", name });
    await untilReady(target);
    context.note(`${name} serves again ${((performance.now() - startMs) / 1_000).toFixed(1)} s after it was asked to stop`);
  }
}
