/**
 * `stamp bench balance`: a cluster under a load that changes every few minutes, with every step of load balancing and its reason. Judged: no
 * range is moved twice within ten times `balanceRestMs`, except for a reason that held at three looks (decision 0550), which a person reads.
 */
import { parseArgs } from "node:util";
import { type DrillTarget, startOwn } from "@stamp/drills";
import type { RebalancePlan } from "@stamp/wire";
import { againMoved, newSteps, type Step } from "./judge.ts";
import { ChangingLoad, type Shape, shapes } from "./load.ts";

const usage = `pnpm bench balance [--minutes 60] [--phase-s 300] [--rate 60]
--phase-s: time after which something else is hot, in seconds; --rate: requests a second to each thing that is hot
A range is split above 100 requests a second (default 2,000), and differences of servers below 40 (default 200) are left, so that a small load
reaches these bounds. All times of load balancing are the default ones.`;

const roles = { "partition-manager": { splitRequestsPerSecond: 100, moveRequestsPerSecond: 40 } };
const stayMs = 600_000;
const lookMs = 5_000;

export async function balance(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: "string", default: "60" },
      "phase-s": { type: "string", default: "300" },
      rate: { type: "string", default: "60" },
      help: { type: "boolean", default: false },
    },
  });
  const [minutes, phaseS, rate] = [values.minutes, values["phase-s"], values.rate].map(Number);
  if (values.help || !minutes || !phaseS || !rate) {
    console.log(usage);
    process.exitCode = values.help ? 0 : 2;
    return;
  }
  const target = await startOwn({ roles: JSON.stringify(roles) }, false);
  const load = new ChangingLoad(target.connectionString, rate);
  try {
    await load.begin();
    const steps = await watched(target, load, minutes * 60_000, phaseS * 1_000);
    const again = againMoved(steps, stayMs);
    const counts = [...Map.groupBy(steps, ({ kind, failure }) => (failure === "" ? kind : `${kind} not done`))];
    console.log(
      `\n${counts.map(([kind, all]) => `${kind} ${all.length}`).join(", ") || "no step"}; ${load.done} requests, ${load.failed} failed`,
    );
    for (const failure of load.failures) console.log(`failed: ${failure}`);
    for (const { step, afterMs } of again) console.log(`moved again after ${(afterMs / 1_000).toFixed(0)} s: ${textOf(step)}`);
    if (again.length === 0) console.log("no range was moved twice within ten minutes");
  } finally {
    await load.stop();
    await target.close();
  }
}

async function watched(target: DrillTarget, load: ChangingLoad, lengthMs: number, phaseMs: number): Promise<readonly Step[]> {
  const startMs = performance.now();
  const steps: Step[] = [];
  let shape: Shape | undefined;
  let [doneBefore, shapeSinceMs] = [0, 0];
  for (let nowMs = 0; nowMs < lengthMs; nowMs = performance.now() - startMs) {
    const next = shapes[Math.floor(nowMs / phaseMs) % shapes.length] as Shape;
    if (next !== shape) {
      if (shape !== undefined)
        console.log(`         (${rateText(load.done - doneBefore, nowMs - shapeSinceMs)}; ${await serversText(target)})`);
      [shape, doneBefore, shapeSinceMs] = [next, load.done, nowMs];
      load.become(shape);
      console.log(`${timeText(nowMs)}  hot: ${shape}`);
    }
    for (const step of newSteps(steps, await told(target, startMs))) {
      steps.push(step);
      console.log(`${timeText(step.atMs)}    ${textOf(step)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
  return steps;
}

/** The plan and what was done; undefined while no manager answers, which a busy machine may cause for a moment. */
async function planOf({ inspector }: DrillTarget): Promise<RebalancePlan | undefined> {
  try {
    const manager = await inspector.partitionManager();
    const plan = await manager.getRebalancePlan({}, { timeoutMs: lookMs });
    return plan.ok ? plan.value : undefined;
  } catch {
    return undefined;
  }
}

async function told(target: DrillTarget, startMs: number): Promise<Step[]> {
  const plan = await planOf(target);
  const nowMs = performance.now() - startMs;
  return (plan?.done ?? []).map((step) => ({ ...step, atMs: nowMs - Number(step.msAgo) })).filter(({ atMs }) => atMs >= 0);
}

async function serversText(target: DrillTarget): Promise<string> {
  const plan = await planOf(target);
  if (plan === undefined) return "no manager answers";
  const servers = [...Map.groupBy(plan.ranges, ({ server }) => server)].sort(([a], [b]) => a.localeCompare(b));
  const rateOf = (all: readonly { readonly requestsPerSecond: number }[]): string =>
    all.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0).toFixed(0);
  return servers.map(([server, all]) => `${server}: ${all.length} ranges, ${rateOf(all)} requests/s`).join("; ");
}

const rateText = (count: number, ms: number): string => `${((count * 1_000) / ms).toFixed(0)} requests/s were answered`;
const timeText = (ms: number): string => {
  const seconds = Math.floor(ms / 1_000);
  return `${String(Math.floor(seconds / 60)).padStart(3)}:${String(seconds % 60).padStart(2, "0")}`;
};
const textOf = ({ kind, rangeId, to, why, failure }: Step): string =>
  `${kind} ${rangeId}${to === "" ? "" : ` to ${to}`}: ${why}${failure === "" ? "" : ` (not done: ${failure})`}`;
