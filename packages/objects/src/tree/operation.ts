/**
 * Steps of trees and their answers, as values. A step is what one PartitionName does atomically: its plan (step.ts) runs at the server of its
 * row. All but `begin` may be sent again: a second time they change nothing and answer as before.
 */
import type { Conditions } from "../asked-conditions.ts";
import type { Address, EntryAddress, Mark, NodeAddress, Operation, TreeRow } from "./tree-row.ts";

export type Step =
  | { readonly kind: "look"; readonly at: Address }
  /** Writes a node that is not there. */
  | { readonly kind: "make"; readonly at: NodeAddress; readonly given?: Uint8Array | undefined }
  /** Begins an operation at its primary, which must hold `expectedId` (undefined: nothing) and belong to no operation. */
  | { readonly kind: "begin"; readonly at: EntryAddress; readonly operation: Operation; readonly expectedId: string | undefined }
  /** Commit point. An operation without participants ends with it. */
  | { readonly kind: "decide"; readonly at: EntryAddress; readonly operation: Operation }
  | { readonly kind: "giveUp"; readonly at: EntryAddress; readonly operation: string }
  /** The primary holds what was decided, and nothing else. */
  | { readonly kind: "end"; readonly at: EntryAddress; readonly operation: string }
  /** `conditions` are the client's, on the blob of a file or directory. `overLease`: a lease stands in the way only if the client names another. */
  | {
      readonly kind: "mark";
      readonly at: Address;
      readonly mark: Mark;
      readonly expectedId?: string | undefined;
      readonly conditions?: Conditions | undefined;
      readonly overLease?: boolean | undefined;
    }
  | { readonly kind: "release" | "take" | "condemn"; readonly at: Address; readonly operation: string }
  /** Deletes the row of a removed node for good. */
  | { readonly kind: "forget"; readonly at: NodeAddress }
  /** Entries of a directory behind a name, in one range partition. */
  | { readonly kind: "page"; readonly directory: string; readonly after: string; readonly rowsMax: number };

export interface NamedRow {
  readonly name: string;
  readonly row: TreeRow;
}

export interface StepAnswer {
  /** True if the step did what it says, now or before. */
  readonly done: boolean;
  /** The row as the step found it; undefined: there was none. */
  readonly row?: TreeRow | undefined;
  /** Code of the service for the condition that does not hold. */
  readonly refused?: string | undefined;
  readonly rows?: readonly NamedRow[];
  /** True if there may be more entries behind the last of `rows`. Then there is at least one: the driver goes over empty ranges. */
  readonly more?: boolean;
  /** True if the range ended before the directory: the driver asks the next one. */
  readonly rangeEnded?: boolean;
}

/** A row of a tree as the wire names it: `id` of a file or directory, or of the directory that an entry is in. */
export interface TreePlace {
  readonly kind: string;
  readonly id: string;
  readonly name: string;
}

/** Part of a step that says where it belongs, by the names that the wire has. */
export interface TreeRoutable {
  readonly account: string;
  readonly container: string;
  readonly containerIncarnation: number | bigint;
  readonly action: string;
  readonly at?: TreePlace | undefined;
  readonly after: string;
}

export interface TreeStep extends TreeRoutable {
  readonly containerIncarnation: number;
  readonly at: TreePlace;
  readonly step: Step;
}
