/** Converts steps of trees and their answers between the wire and @stamp/objects. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  addressOfPlace,
  decodeTreeRow,
  encodeTreeRow,
  type OperationValue,
  type Step,
  type StepAnswer,
  type TreeAddress,
  type TreeRow,
} from "@stamp/objects";
import type * as wire from "@stamp/wire";
import { fromWire, plainOf } from "@stamp/wire";
import { missing } from "./missing.ts";

/** Entries of one page at most. */
const pageRowsMax = 5_000;

/** Throws FailureError `badRequest` for a step that nobody makes, `damaged` for a row that can't be read. */
export function treeStepFromWire(value: wire.TreeStep): OperationValue<"tree"> {
  if (!value.at) throw missing("a place in the tree");
  const { account, container, action, after } = value;
  const { kind, id, name } = value.at;
  const routable = {
    account,
    container,
    containerIncarnation: fromWire(value.containerIncarnation),
    action,
    after,
    at: { kind, id, name },
  };
  return { ...routable, step: stepOf(value, routable.at) };
}

function stepOf(value: wire.TreeStep, place: OperationValue<"tree">["at"]): Step {
  const { action, operationId: operation, rowsMax } = value;
  if (action === "page") {
    if (place.kind !== "directory" || rowsMax < 1 || rowsMax > pageRowsMax) throw missing(`a directory and 1 to ${pageRowsMax} entries`);
    return { kind: action, directory: place.id, after: value.after, rowsMax };
  }
  const at = addressOfPlace(place);
  if (at === undefined) throw missing("a kind of place that is known");
  switch (action) {
    case "look":
      return { kind: action, at };
    case "forget":
    case "make":
      if (at.kind !== "file" && at.kind !== "directory") throw missing("a file or directory");
      return action === "make" ? { kind: action, at, given: value.given } : { kind: action, at };
    case "release":
    case "take":
    case "condemn":
      return { kind: action, at, operation };
    case "mark":
      return markOf(value, at);
    case "begin":
    case "decide":
    case "giveUp":
    case "end":
      if (at.kind !== "entry") throw missing("an entry");
      if (action === "giveUp" || action === "end") return { kind: action, at, operation };
      return atPrimary(value, action, at);
    default:
      throw missing("a step that is known");
  }
}

function atPrimary(value: wire.TreeStep, kind: "begin" | "decide", at: Extract<TreeAddress, { kind: "entry" }>): Step {
  const { begun: operation } = rowOf(value);
  if (!operation) throw missing("an operation");
  return kind === "begin" ? { kind, at, operation, expectedId: expectedOf(value) } : { kind, at, operation };
}

function markOf(value: wire.TreeStep, at: TreeAddress): Step {
  const { mark } = rowOf(value);
  if (!mark) throw missing("a mark");
  const conditions = value.conditions && plainOf(value.conditions);
  return { kind: "mark", at, mark, expectedId: expectedOf(value), conditions, overLease: value.overLease };
}

const expectedOf = ({ expectedId }: wire.TreeStep): string | undefined => (expectedId === "" ? undefined : expectedId);

const rowOf = ({ row }: wire.TreeStep): TreeRow => decodeTreeRow(row);

export const stepAnswerToWire = (answer: StepAnswer): MessageInitShape<typeof wire.TreeAnswerSchema> => ({
  done: answer.done,
  ...(answer.row && { row: encodeTreeRow(answer.row) }),
  refused: answer.refused ?? "",
  entries: (answer.rows ?? []).map(({ name, row }) => ({ name, row: encodeTreeRow(row) })),
  more: answer.more ?? false,
  rangeEnded: answer.rangeEnded ?? false,
});
