/** One finding of health: the change of a healthy stamp that gives it, and one that nearly does. */
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
