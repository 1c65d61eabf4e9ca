/** A mutant of the gate: rules that are switched off together. */
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
  /** Description, for people, of what goes wrong without the rules, e.g. "an epoch is given twice". */
  readonly why: string;
}
