/** Report of one run of one seed, as plain data: it travels from worker to parent. */
import type { RuleName } from "@stamp/base";

export type WorkloadName =
  | "blobs"
  | "streams"
  | "restarts"
  | "registers"
  | "tables"
  | "queues"
  | "bank"
  | "leases"
  | "handles"
  | "holds"
  | "locks"
  | "consensus"
  | "restores"
  | "disks"
  | "loads"
  | "trees"
  | "uploads"
  | "writers"
  | "coding"
  | "geo"
  | "geo-queues";

export const workloadNames: readonly WorkloadName[] = [
  "streams",
  "blobs",
  "tables",
  "queues",
  "registers",
  "restarts",
  "bank",
  "leases",
  "handles",
  "holds",
  "locks",
  "consensus",
  "restores",
  "disks",
  "loads",
  "trees",
  "uploads",
  "writers",
  "coding",
  "geo",
  "geo-queues",
];

export interface SeedJob {
  readonly workload: WorkloadName;
  readonly seed: number;
  readonly rulesOff: readonly RuleName[];
  /** Makes some faults likely (focus.ts). */
  readonly focus?: string | undefined;
  /** True to run the seed twice and compare the event logs. */
  readonly twice: boolean;
  /** When it fails, run it with only these off as well: then it must pass. */
  readonly controlRulesOff?: readonly RuleName[];
}

export interface SeedReport {
  readonly seed: number;
  /** Undefined: every promise was kept. */
  readonly failure?: string;
  /** True if a checker saw a promise broken; else something failed before that. */
  readonly promiseBroken?: boolean;
  /** True if the control run failed too: the missing rule is not the reason. */
  readonly failsAnyway?: boolean;
  /** The last lines of the event log of a failed run. */
  readonly tail?: readonly string[];
  readonly hash: string;
  readonly events: number;
  readonly simulatedMs: number;
  readonly faults: Readonly<Record<string, number>>;
  /** Operations by outcome and the like. */
  readonly counts: Readonly<Record<string, number>>;
  /** The largest of what was measured. */
  readonly most: Readonly<Record<string, number>>;
  readonly failpoints: Readonly<Record<string, FailpointHits>>;
}

export interface FailpointHits {
  readonly reached: number;
  readonly struck: number;
}

export function addCounts(total: Record<string, number>, more: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(more)) total[name] = (total[name] ?? 0) + count;
}

export function addHits(total: Record<string, FailpointHits>, more: Readonly<Record<string, FailpointHits>>): void {
  for (const [name, { reached, struck }] of Object.entries(more)) {
    const before = total[name] ?? { reached: 0, struck: 0 };
    total[name] = { reached: before.reached + reached, struck: before.struck + struck };
  }
}

export function takeMost(most: Record<string, number>, more: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(more)) most[name] = Math.max(most[name] ?? 0, value);
}

export const showCounts = (counts: Readonly<Record<string, number>>): string =>
  Object.keys(counts)
    .sort()
    .map((name) => `${name} ${counts[name]?.toLocaleString("en")}`)
    .join(", ");
