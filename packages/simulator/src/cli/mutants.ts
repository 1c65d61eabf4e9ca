/**
 * The mutation gate: each safety rule is switched off (with the one that backs it up, where there is one), and some seed must then
 * fail. A rule whose absence no seed notices is not tested.
 */
import type { RuleName } from "@stamp/base";
import type { WorkloadName } from "./report.ts";

export interface Mutant {
  readonly rules: readonly RuleName[];
  readonly workload: WorkloadName;
  /** What goes wrong without it. */
  readonly why: string;
}

export const mutants: readonly Mutant[] = [
  { rules: ["ackNeedsAllReplicas"], workload: "streams", why: "an append is acknowledged before the secondaries have it" },
  {
    rules: ["fenceBeforeLength"],
    workload: "streams",
    why: "lengths are asked without fencing: an append is acknowledged behind the seal",
  },
  { rules: ["ownerEpochAtManager", "ownerEpochAtNode"], workload: "streams", why: "an old owner goes on writing" },
  { rules: ["recordSealBeforeTelling"], workload: "streams", why: "a sealed length is told, lost, and computed again" },
  { rules: ["containerRowReadAfterArrival"], workload: "blobs", why: "the existence of a container is taken from a cache" },
];

export const mutantName = (mutant: Mutant): string => mutant.rules.join("+");
