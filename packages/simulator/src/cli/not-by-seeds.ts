/**
 * Rules whose absence no seed has noticed, why, and the test that fails without the rule, if any. Not a place to put a rule for convenience: what
 * is said here of back-ups and of missing workloads is what would have to change for a seed to notice.
 */
import type { RuleName } from "@stamp/base";

export interface NotBySeeds {
  readonly rule: RuleName;
  readonly why: string;
  /** Undefined: none; then the rule is a candidate for deletion. */
  readonly test: string | undefined;
}

const leases = "packages/lease/src/lease.test.ts";
const serverRules = "packages/partition-map/src/server-rules.test.ts";
const reshapes = "services/partition-server/src/reshapes.test.ts";

export const notBySeeds: readonly NotBySeeds[] = [
  { rule: "leaseEndRecorded", why: "the holder stopped by its own clock before the lock service says that the lease ended", test: leases },
  { rule: "refusalDurable", why: "the partition manager refuses again when the lock service forgot that it had", test: leases },
  {
    rule: "neverRenewEnded",
    why: "the holder stopped by its own clock before; the end that was told is recorded (leaseEndRecorded)",
    test: leases,
  },
  {
    rule: "closedEpochRefused",
    why: "a Load would have to arrive behind the Close that followed it, and calls of one pair of processes stay in order",
    test: serverRules,
  },
  {
    rule: "leaseEpochNamedInLoad",
    why: "the same; and the stream manager refuses the old owner epoch that such a Load carries (ownerEpochAtManager)",
    test: serverRules,
  },
  {
    rule: "pmTermAtServer",
    why: "what an old manager commands carries an owner epoch that the stream manager refuses (ownerEpochAtManager)",
    test: serverRules,
  },
  {
    rule: "childEndsParents",
    why: "a server whose hand-over has no answer yet loads the children by the same connection to the stream manager, behind that answer; the test's streams have no such order",
    test: reshapes,
  },
  {
    rule: "pipelineAnswersDurable",
    why: "who is told too early that a queue is empty, or a receipt old, can't prove it later",
    test: "packages/range-partition/src/pipelined.test.ts",
  },
];
