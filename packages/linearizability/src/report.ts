/** Text of a verdict, for people. */
import type { HistoryVerdict, Violation } from "./check.ts";
import type { Model, RecordedOperation } from "./history.ts";

const shownMax = 40;

/** Returns one line if all is well; else each violation, and everything undecided. */
export function describeVerdict<State, Call>(model: Model<State, Call>, verdict: HistoryVerdict<State, Call>): string {
  if (verdict.kind === "linearizable") {
    return `linearizable: ${verdict.operations} operations in ${verdict.partitions} partitions`;
  }
  const undecided = verdict.unknown.map(
    ({ partition, why, operations }) =>
      `NOT DECIDED${partition === "" ? "" : ` ${partition}`}: the search over ${operations} operations was given up after ${why}; this is no proof of anything`,
  );
  return [...verdict.violations.map((violation) => describeViolation(model, violation)), ...undecided].join("\n");
}

export function describeViolation<State, Call>(model: Model<State, Call>, violation: Violation<State, Call>): string {
  const { partition, contradiction, others, longest, state } = violation;
  const placed = new Set(longest);
  const lines = [
    `${partition === "" ? "" : `${partition}: `}no order explains these ${contradiction.length} answers:`,
    ...shown(contradiction.map((operation) => `  ${placed.has(operation) ? " " : "!"} ${describeOperation(model, operation)}`)),
  ];
  if (others.length > 0) {
    lines.push(
      ` whatever became of these ${others.length}:`,
      ...shown(others.map((operation) => `    ${describeOperation(model, operation)}`)),
    );
  }
  lines.push(
    ` longest order that could be begun, ${longest.length} operations, leaves ${model.describeState?.(state) ?? model.key(state)}; marked ! are left:`,
    ...shown(longest.map((operation) => `    ${describeOperation(model, operation)}`)),
  );
  return lines.join("\n");
}

function describeOperation<State, Call>(model: Model<State, Call>, operation: RecordedOperation<Call>): string {
  const { call, client, calledAt, returnedAt } = operation;
  const when = `${calledAt.toFixed(3)}..${returnedAt?.toFixed(3) ?? "?"}`;
  return `${when}${client === undefined ? "" : ` ${client}`} ${model.describe?.(call) ?? JSON.stringify(call)}`;
}

function shown(lines: readonly string[]): readonly string[] {
  return lines.length <= shownMax ? lines : [`    … ${lines.length - shownMax} more`, ...lines.slice(-shownMax)];
}
