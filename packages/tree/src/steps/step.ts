/**
 * Steps: what one PartitionName does atomically. A step is data, so that it goes over the wire; its plan (`planOfStep`) runs at the server
 * of its row. All but `begin` may be sent again: a second time they change nothing and answer as before.
 */
import type { Rules } from "@stamp/base";
import type { Plan, RowWrite } from "@stamp/objects";
import { entriesEnd, entryNameOf, type TreeName, treeKey } from "../rows/tree-keys.ts";
import {
  type Address,
  decodeTreeRow,
  type EntryAddress,
  encodeTreeRow,
  type Mark,
  type Operation,
  type TreeRow,
} from "../rows/tree-row.ts";

export type Step =
  | { readonly kind: "look"; readonly at: Address }
  /** Writes a node that is not there. */
  | { readonly kind: "make"; readonly at: Address; readonly given?: Uint8Array | undefined }
  /** Begins an operation at its primary, which must hold `expectedId` (undefined: nothing) and belong to no operation. */
  | { readonly kind: "begin"; readonly at: EntryAddress; readonly operation: Operation; readonly expectedId: string | undefined }
  /** Commit point. An operation without participants ends with it. */
  | { readonly kind: "decide"; readonly at: EntryAddress; readonly operation: Operation }
  | { readonly kind: "giveUp"; readonly at: EntryAddress; readonly operation: string }
  /** The primary holds what was decided, and nothing else. */
  | { readonly kind: "end"; readonly at: EntryAddress; readonly operation: string }
  /** `conditions` are the door's, on rows of the same PartitionName. */
  | {
      readonly kind: "mark";
      readonly at: Address;
      readonly mark: Mark;
      readonly expectedId?: string | undefined;
      readonly conditions?: Uint8Array | undefined;
    }
  | { readonly kind: "release" | "take" | "condemn"; readonly at: Address; readonly operation: string }
  /** Deletes the row of a removed node for good. */
  | { readonly kind: "forget"; readonly at: Address }
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
  /** Name of the door's condition that does not hold. */
  readonly refused?: string | undefined;
  readonly rows?: readonly NamedRow[];
  /** True if there may be more entries behind the last of `rows`. Then there is at least one: the driver goes over empty ranges. */
  readonly more?: boolean;
}

export interface StepContext {
  readonly tree: TreeName;
  readonly rules: Rules;
  /** Checks the door's conditions on rows of the address's PartitionName; returns the name of the one that does not hold. */
  readonly conditionsOf?: ((at: Address, conditions: Uint8Array) => Plan<string | undefined>) | undefined;
}

export interface StepDecision {
  readonly answer: StepAnswer;
  readonly writes: readonly RowWrite[];
}

const pageBytesMax = 1024 * 1024;
const isFree = (row: TreeRow | undefined): boolean => !row?.begun && !row?.decided && !row?.mark;

export function* planOfStep(context: StepContext, step: Step): Plan<StepDecision> {
  if (step.kind === "page") return yield* page(context, step.directory, step.after, step.rowsMax);
  const key = treeKey(context.tree, step.at);
  const read = yield { kind: "get", key };
  const row = read.kind === "get" && read.value ? decodeTreeRow(read.value) : undefined;
  const refusal =
    step.kind === "mark" && step.conditions && context.conditionsOf ? yield* context.conditionsOf(step.at, step.conditions) : undefined;
  if (refusal !== undefined) return { answer: { done: false, row, refused: refusal }, writes: [] };
  const changed = changeOf(context.rules, step, row);
  if (changed === undefined) return { answer: { done: step.kind === "look" || isDoneBefore(step, row), row }, writes: [] };
  const writes: RowWrite[] = isEmpty(step.at, changed) ? [{ kind: "delete", key }] : [{ kind: "put", key, value: encodeTreeRow(changed) }];
  return { answer: { done: true, row }, writes };
}

/** An entry without anything has no row, nor has a free lock. A node has one until it is forgotten. */
const isEmpty = (at: Address, row: TreeRow | "forgotten"): row is "forgotten" =>
  row === "forgotten" || ((at.kind === "entry" || at.kind === "lock") && !row.held && isFree(row));

/** Returns the row after the step; undefined: the step changes nothing. */
function changeOf(rules: Rules, step: Exclude<Step, { kind: "page" }>, row: TreeRow | undefined): TreeRow | "forgotten" | undefined {
  switch (step.kind) {
    case "look":
      return undefined;
    case "make":
      return row ? undefined : { given: step.given };
    case "begin":
      return isFree(row) && row?.held?.id === step.expectedId ? { ...row, begun: step.operation } : undefined;
    case "decide":
      if (row?.begun?.id !== step.operation.id && (rules.on("treeDecidedWhereBegun") || row?.decided)) return undefined;
      return step.operation.participants.length === 0
        ? { ...row, held: step.operation.next, begun: undefined }
        : { ...row, mark: undefined, begun: undefined, decided: step.operation };
    case "giveUp":
      return row?.begun?.id === step.operation ? { ...row, begun: undefined } : undefined;
    case "end":
      return row?.decided?.id === step.operation ? { ...row, held: row.decided.next, decided: undefined } : undefined;
    case "mark": {
      const isThere = step.at.kind === "lock" || (step.at.kind === "entry" ? row?.held?.id === step.expectedId : row && !row.removed);
      return isFree(row) && isThere ? { ...row, mark: step.mark } : undefined;
    }
    case "release":
      return row?.mark?.operation === step.operation ? { ...row, mark: undefined } : undefined;
    case "take":
      if (row?.mark?.operation !== step.operation) return undefined;
      return step.at.kind === "entry" ? { ...row, held: undefined, mark: undefined } : { ...row, removed: true, mark: undefined };
    case "condemn":
      return row && !row.removed ? { ...row, removed: true } : undefined;
    case "forget":
      return row?.removed && isFree(row) ? "forgotten" : undefined;
  }
}

/** True if the row is as the step would have left it, so that a second sending answers as the first one did. */
function isDoneBefore(step: Exclude<Step, { kind: "page" }>, row: TreeRow | undefined): boolean {
  if (step.kind === "decide" && step.operation.participants.length === 0) return isHeld(step.operation, row);
  if (step.kind === "decide") return row?.decided?.id === step.operation.id;
  if (step.kind === "mark") return row?.mark?.operation === step.mark.operation;
  return step.kind === "release" || step.kind === "take" || step.kind === "condemn" || step.kind === "end" || step.kind === "giveUp";
}

const isHeld = ({ next }: Operation, row: TreeRow | undefined): boolean => row?.held?.id === next?.id && row?.held?.name === next?.name;

function* page({ tree }: StepContext, directory: string, after: string, rowsMax: number): Plan<StepDecision> {
  // The key of the name and a zero is the first one behind the name.
  const low = treeKey(tree, { kind: "entry", directory, name: after === "" ? "" : `${after}\0` });
  const read = yield { kind: "scan", low, high: entriesEnd(tree, directory), rowsMax, bytesMax: pageBytesMax };
  if (read.kind !== "scan") return { answer: { done: false }, writes: [] };
  const rows = read.rows.map(({ key, value }) => ({ name: entryNameOf(key), row: decodeTreeRow(value) }));
  return { answer: { done: true, rows, more: read.more }, writes: [] };
}
