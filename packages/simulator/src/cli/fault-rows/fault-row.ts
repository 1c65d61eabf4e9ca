/** Shape of the table of faults: a row holds the rules that close its fault, a rule holds how its absence is noticed. */
import type { RuleName } from "@stamp/base";
import type { FocusName } from "../focus.ts";
import type { WorkloadName } from "../report.ts";

export interface FaultRow {
  readonly fault: string;
  /** Design that closes the fault, for people. */
  readonly closedBy: string;
  /**
   * Rules of the code that close the fault; the name alone of a rule that an earlier row holds, or that is another's `together`. Empty if a format
   * or a machine without an alternative closes the fault: `tests` and `faults` attack it then.
   */
  readonly rules: readonly (Rule | RuleName)[];
  readonly tests: readonly string[];
  /** Faults of the simulator that bring it about. */
  readonly faults: readonly string[];
}

export type Rule = NoticedRule | UnnoticedRule;

/** A rule without which some seed fails: a mutant of the gate, or one in each of two workloads. */
export interface NoticedRule extends MutantRun {
  readonly name: RuleName;
  readonly also?: MutantRun;
}

/** A rule whose absence no seed has noticed: a test of its row switches it off instead. Not a place to put a rule for convenience. */
export interface UnnoticedRule {
  readonly name: RuleName;
  /** Back-up or missing workload that would have to change for a seed to notice. */
  readonly unnoticed: string;
}

/** Run of the simulator that notices the absence of a rule. */
export interface MutantRun {
  /** Rules that stand for the same, and are switched off together with this one. */
  readonly together?: readonly RuleName[];
  /** Rules that would catch the same; off as well, and with only these off the seed must pass. */
  readonly backedUpBy?: readonly RuleName[];
  readonly workload: WorkloadName;
  /** Faults that find it quickly. */
  readonly focus?: FocusName;
  /** Description, for people, of what goes wrong without the rules, e.g. "an epoch is given twice". */
  readonly why: string;
}

export const nameOf = (rule: Rule | RuleName): RuleName => (typeof rule === "string" ? rule : rule.name);
