/**
 * The mutation gate: each safety rule is switched off, and some seed must then fail. A rule whose absence no seed notices is not tested.
 * Rules that stand for the same are switched off together; a rule that another backs up, together with that one.
 */
import type { RuleName } from "@stamp/base";
import type { FocusName } from "./focus.ts";
import type { WorkloadName } from "./report.ts";

export interface Mutant {
  readonly rules: readonly RuleName[];
  /** Rules that would catch the same; off as well, and with only these off the seed must pass. */
  readonly backedUpBy?: readonly RuleName[];
  readonly workload: WorkloadName;
  /** Faults that find it quickly. */
  readonly focus?: FocusName;
  /** What goes wrong without it. */
  readonly why: string;
}

export const mutants: readonly Mutant[] = [
  {
    rules: ["ackNeedsAllReplicas"],
    workload: "streams",
    focus: "replicas",
    why: "an append is acknowledged before the secondaries have it",
  },
  { rules: ["ackOnlyDurable"], workload: "streams", focus: "power", why: "a secondary answers before it has synced" },
  {
    rules: ["contiguousOffsets"],
    backedUpBy: ["primaryStopsAtFailure"],
    workload: "streams",
    focus: "replication",
    why: "a secondary takes a record behind one that it missed",
  },
  {
    rules: ["primaryStopsAtFailure"],
    backedUpBy: ["contiguousOffsets"],
    workload: "streams",
    focus: "replication",
    why: "the primary goes on behind a record that a secondary has not",
  },
  { rules: ["clientExpectsOffset"], workload: "streams", focus: "appends", why: "an append lands in the place of one that was lost" },
  { rules: ["fenceBeforeLength"], workload: "streams", focus: "slow-disks", why: "an append is acknowledged behind the seal" },
  {
    rules: ["fenceDrains"],
    workload: "streams",
    focus: "slow-disks",
    why: "a fenced replica says its length before it has synced what it took",
  },
  {
    rules: ["knownCommittedLength"],
    workload: "streams",
    focus: "lying",
    why: "a replica that lost what was acknowledged counts in the seal",
  },
  {
    rules: ["recordSealBeforeTelling"],
    // A replica that was told a length reports it as committed, so the next seal finds the same.
    backedUpBy: ["knownCommittedLength"],
    workload: "streams",
    focus: "managers",
    why: "a sealed length is told, lost, and computed again",
  },
  { rules: ["ownerEpochAtManager", "ownerEpochAtNode"], workload: "streams", why: "an old owner goes on writing" },
  {
    rules: ["leasesExtendedOnRestart"],
    workload: "registers",
    focus: "lock-service",
    why: "a lease ends early when the lock service restarts",
  },
  { rules: ["replayBySequence"], workload: "restarts", why: "efficiency: a load takes into memory what its checkpoints hold" },
  { rules: ["containerRowReadAfterArrival"], workload: "blobs", why: "the existence of a container is taken from a cache" },
];

/** Rules without which no seed can fail, and the test that does. */
export const notBySeeds: readonly { readonly rule: RuleName; readonly why: string; readonly test: string }[] = [];

export const mutantName = (mutant: Mutant): string => mutant.rules.join("+");

export const rulesOffFor = (mutant: Mutant): RuleName[] => [...mutant.rules, ...(mutant.backedUpBy ?? [])];
