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

export const notBySeeds: readonly NotBySeeds[] = [];
