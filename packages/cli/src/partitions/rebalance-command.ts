/** `stamp rebalance plan`: what load balancing would do now, and why; what it did. */
import { PartitionManager, type RebalancePlan, type RebalanceStep } from "@stamp/wire";
import type { Command } from "commander";
import { CommandError } from "../context.ts";
import { bytesText, table } from "../print.ts";
import { inspect, make, tell } from "../running.ts";
import { topLevel } from "../top-level.ts";

const timeoutMs = 5_000;
/** Ranges and steps shown to people: of ranges the busiest, of steps the first ones. */
const shownMax = 50;

const more = (count: number, what: string): string[] => (count > shownMax ? [`… ${count - shownMax} ${what}: --json`] : []);

const requestsOf = ({ requestsPerSecond, throttledPerSecond }: RebalancePlan["ranges"][number]): number =>
  requestsPerSecond + throttledPerSecond;

export function addRebalance(program: Command): void {
  const rebalance = topLevel(program, "rebalance");
  make(rebalance, "plan", "the load of every range, what would be done about it, and what was done; nothing is changed").action(
    async (_options, command: Command) => {
      const plan = await inspect(command, async (inspector, transport) => {
        const client = transport.client(await inspector.leader("partition-manager"), PartitionManager);
        const answer = await client.getRebalancePlan({}, { timeoutMs });
        if (!answer.ok) throw new CommandError(answer.failure.message);
        return answer.value;
      });
      tell(command, plan, planText);
    },
  );
}

export function planText({ automatic, waitsFor, steps, done, ranges }: RebalancePlan): string {
  const busiest = ranges.toSorted((a, b) => requestsOf(b) - requestsOf(a)).slice(0, shownMax);
  const shown = ranges.length > shownMax ? busiest : ranges;
  const loads = table(
    ["RANGE", "SERVER", "REQUESTS/S", "THROTTLED/S", "PENDING", "LATENCY", "IN/S", "OUT/S", "ROW BYTES"],
    shown.map((one) => [
      one.rangeId,
      one.server,
      one.requestsPerSecond.toFixed(1),
      one.throttledPerSecond.toFixed(1),
      one.pending,
      `${one.latencyMs.toFixed(1)} ms`,
      bytesText(Math.round(one.bytesInPerSecond)),
      bytesText(Math.round(one.bytesOutPerSecond)),
      bytesText(one.bytes),
    ]),
  );
  const stepText = ({ kind, rangeId, to, why }: RebalanceStep): string => `${kind} ${rangeId}${to === "" ? "" : ` to ${to}`}: ${why}`;
  const planned = steps.length === 0 ? ["nothing is to be done"] : steps.slice(0, shownMax).map(stepText);
  const doneText = done.map(
    (step) =>
      `${(Number(step.msAgo) / 1_000).toFixed(0)} s ago: ${stepText(step)}${step.failure === "" ? "" : ` (not done: ${step.failure})`}`,
  );
  return [
    loads,
    ...more(ranges.length, "ranges that are asked less"),
    `\n${automatic ? "Planned; a step is taken by itself every few seconds" : "Planned; nothing is done by itself (balance is off)"}`,
    ...waitsFor.map((why) => `nothing is moved, split or merged by itself now: ${why}`),
    ...planned,
    ...more(steps.length, "steps"),
    ...(done.length === 0 ? [] : ["\nDone", ...doneText]),
  ].join("\n");
}
