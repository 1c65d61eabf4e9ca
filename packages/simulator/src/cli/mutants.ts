/**
 * The mutation gate: each safety rule is switched off, and some seed must then fail. A rule whose absence no seed notices is not tested.
 * Rules that stand for the same are switched off together.
 */
import type { RuleName } from "@stamp/base";
import type { WorkloadName } from "./report.ts";

export interface Mutant {
  readonly rules: readonly RuleName[];
  /** Rules that would catch the same; off as well, and with only these off the seed must pass. */
  readonly backedUpBy?: readonly RuleName[];
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
  {
    rules: ["recordSealBeforeTelling"],
    // A replica that was told a length reports it as committed, so the next seal finds the same.
    backedUpBy: ["knownCommittedLength"],
    workload: "streams",
    why: "a sealed length is told, lost, and computed again",
  },
  { rules: ["containerRowReadAfterArrival"], workload: "blobs", why: "the existence of a container is taken from a cache" },
];

export const mutantName = (mutant: Mutant): string => mutant.rules.join("+");

export const rulesOffFor = (mutant: Mutant): RuleName[] => [...mutant.rules, ...(mutant.backedUpBy ?? [])];
