/**
 * Steps: what one PartitionName does atomically. A step is data, so that it goes over the wire; its plan (`planOfStep`) runs at the server
 * of its row. All but `begin` may be sent again: a second time they change nothing and answer as before.
 */
import { compareBytes, type Rules } from "@stamp/base";
import type { Conditions } from "../asked-conditions.ts";
import { headKey } from "../object-keys.ts";
import { type Plan, put, type RowWrite, remove, scanRows } from "../plan.ts";
import type { Step, StepAnswer } from "./operation.ts";
import { entriesEnd, entryNameOf, partitionOf, type TreeName, treeKey } from "./tree-keys.ts";
import { type Address, decodeTreeRow, encodeTreeRow, type Operation, type TreeRow } from "./tree-row.ts";

export interface StepContext {
  readonly tree: TreeName;
  readonly rules: Rules;
  /** The range that is asked: low inclusive, high exclusive; empty high: no end. */
  readonly range: { readonly low: Uint8Array; readonly high: Uint8Array };
  /** Checks conditions on rows of the address's PartitionName; returns the code of the one that does not hold. */
  readonly conditionsOf: (at: Address, conditions: Conditions, overLease: boolean) => Plan<string | undefined>;
}

export interface StepDecision {
  readonly answer: StepAnswer;
  readonly writes: readonly RowWrite[];
}

const pageBytesMax = 1024 * 1024;
const isFree = (row: TreeRow | undefined): boolean => !row?.begun && !row?.decided && !row?.mark;

export function* planOfStep(context: StepContext, step: Step): Plan<StepDecision> {
  if (step.kind === "page") return yield* page(context, step);
  const key = treeKey(context.tree, step.at);
  const read = yield { kind: "get", key };
  const row = read.kind === "get" && read.value ? decodeTreeRow(read.value) : undefined;
  const refusal =
    step.kind === "mark" && step.conditions ? yield* context.conditionsOf(step.at, step.conditions, step.overLease === true) : undefined;
  if (refusal !== undefined) return { answer: { done: false, row, refused: refusal }, writes: [] };
  const changed = changeOf(context.rules, step, row);
  if (changed === undefined) return { answer: { done: step.kind === "look" || isDoneBefore(step, row), row }, writes: [] };
  if (!isEmpty(step.at, changed)) return { answer: { done: true, row }, writes: [put(key, encodeTreeRow(changed))] };
  // The properties of a directory go with its node. A file goes as a whole (blobs/blob-garbage.ts).
  const head = changed === "forgotten" ? [remove(headKey(partitionOf(context.tree, step.at)))] : [];
  return { answer: { done: true, row }, writes: [remove(key), ...head] };
}

/** True if the row needs not be stored: an entry without content, a free lock, or a forgotten node. */
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

function* page({ tree, range }: StepContext, { directory, after, rowsMax }: Extract<Step, { kind: "page" }>): Plan<StepDecision> {
  // The key of the name and a zero is the first one behind the name.
  const behind = treeKey(tree, { kind: "entry", directory, name: after === "" ? "" : `${after}\0` });
  const end = entriesEnd(tree, directory);
  const low = compareBytes(behind, range.low) < 0 ? range.low : behind;
  const cut = range.high.length > 0 && compareBytes(range.high, end) < 0;
  const read = yield* scanRows(low, cut ? range.high : end, { rowsMax, bytesMax: pageBytesMax });
  const rows = read.rows.map(({ key, value }) => ({ name: entryNameOf(key), row: decodeTreeRow(value) }));
  return { answer: { done: true, rows, more: read.more, rangeEnded: cut && !read.more }, writes: [] };
}
