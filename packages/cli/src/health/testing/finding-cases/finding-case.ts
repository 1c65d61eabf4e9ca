/** A test case of one finding: what to change in a healthy stamp so that health names it, and a smaller change after which it does not. */
import type { Change } from "../healthy.ts";

export interface FindingCase {
  readonly change: Change;
  /** Subject of the finding. */
  readonly subject?: string;
  readonly cause: RegExp;
  /** Only for help that depends on the facts. */
  readonly help?: RegExp;
  /** A change that goes nearly as far and gives no such finding. */
  readonly notYet?: Change;
}
