/** A change of a tree as the judges record it. */
import type { Step } from "@stamp/objects";

/** A change of the tree, from the sending of its decision. */
export interface TreeChange {
  readonly decides: Extract<Step, { kind: "decide" }>;
  /** Id that the primary held before; undefined: nothing. */
  readonly expectedId: string | undefined;
  readonly calledAt: number;
  /** Time of the answer; undefined: it is not known whether the change was made. */
  returnedAt: number | undefined;
}
