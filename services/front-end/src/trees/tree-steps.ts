/** Steps of trees as operations of partition servers, and their answers. */
import { decodeTreeRow, encodeTreeRow, placeOfAddress, type Step, type StepAnswer, type TreeName } from "@stamp/objects";
import { ConditionsSchema, initOf, type TreeAnswer, toWire } from "@stamp/wire";
import type { OperationKind } from "../routing/router.ts";

type TreeStepInit = Extract<OperationKind, { case: "tree" }>["value"];

/** Returns the part of the message that only steps of this kind have. */
function partOf(step: Step): Partial<TreeStepInit> {
  switch (step.kind) {
    case "page":
      return { at: { kind: "directory", id: step.directory, name: "" }, after: step.after, rowsMax: step.rowsMax };
    case "make":
      return step.given === undefined ? {} : { given: step.given };
    case "begin":
      return { row: encodeTreeRow({ begun: step.operation }), expectedId: step.expectedId ?? "" };
    case "decide":
      return { row: encodeTreeRow({ begun: step.operation }) };
    case "mark": {
      const { mark, expectedId = "", conditions, overLease = false } = step;
      const under = conditions === undefined ? {} : { conditions: initOf(ConditionsSchema, conditions) };
      return { row: encodeTreeRow({ mark }), expectedId, overLease, ...under };
    }
    case "giveUp":
    case "end":
    case "release":
    case "take":
    case "condemn":
      return { operationId: step.operation };
    default:
      return {};
  }
}

export function stepToWire({ account, filesystem, incarnation }: TreeName, step: Step): Extract<OperationKind, { case: "tree" }> {
  const at = step.kind === "page" ? undefined : placeOfAddress(step.at);
  const place = { account, container: filesystem, containerIncarnation: toWire(incarnation) };
  return { case: "tree", value: { ...place, action: step.kind, at, after: "", ...partOf(step) } as TreeStepInit & { after: string } };
}

/** Throws FailureError for a row that can't be read. */
export function stepAnswerFromWire({ done, row, refused, entries, more, rangeEnded }: TreeAnswer): StepAnswer {
  return {
    done,
    ...(row && { row: decodeTreeRow(row) }),
    ...(refused === "" ? {} : { refused }),
    rows: entries.map((entry) => ({ name: entry.name, row: decodeTreeRow(entry.row) })),
    more,
    rangeEnded,
  };
}

/**
 * True if a step may be sent again before its operation has seen that an answer was lost. A decision is not: others may have ended and gone
 * past the operation since, and the answer to a second decision is a refusal then. Only the coordinator can tell that apart from an operation
 * that was given up, so it sends the second decision itself (packages/tree, changes/coordinate.ts).
 */
export const isRepeatable = ({ kind }: Step): boolean => kind !== "begin" && kind !== "decide";
