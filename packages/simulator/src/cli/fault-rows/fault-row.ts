/** Shape of one row of docs/design/faults.md in code. */
import type { RuleName } from "@stamp/base";

export interface FaultRow {
  /** Text of the first cell in docs/design/faults.md. */
  readonly fault: string;
  /** Rules that close the fault. Empty if a format or a machine without an alternative closes it: `tests` and `faults` attack it then. */
  readonly rules: readonly RuleName[];
  readonly tests: readonly string[];
  /** Faults of the simulator that bring it about. */
  readonly faults: readonly string[];
}
