/** One row of the tables of operations (rows.ts, ../tables/operations.ts, ../queues/operations.ts): everything about an operation that is not in its values. */
import { assert, type Rules } from "@stamp/base";
import type { Plan, PlanContext } from "../plan.ts";
import type { ObjectTable } from "../rows/schemas.ts";

/** Table, and the key by which the range is found. */
export interface Route {
  readonly table: ObjectTable;
  readonly key: Uint8Array;
}

export interface OperationRow<Value> {
  /** `read` changes nothing: it is read at a snapshot and waits for no write. */
  readonly access: "read" | "write" | ((value: Value) => "read" | "write");
  /** Takes the wire's values as well as ours: only names are looked at. */
  readonly route: (rules: Rules, value: never) => Route;
  readonly plan: (value: Value, context: PlanContext) => Plan;
  /** True if the operation may go on in the next range; absent: it concerns one range. */
  readonly overRanges?: true | ((value: Value) => boolean);
  /** Most bytes of its `body` that stay in the row; more go to the stream of blob data. Absent: it has no body. */
  readonly inlineBytesMax?: number;
  /** Many of one lock key are decided before the first of them is durable: each sees what those before it decided. */
  readonly pipelined?: true | ((value: Value) => boolean);
}

interface Tagged {
  readonly case: string;
  readonly value: unknown;
}

/** A table with one row for each case of a union. */
export type OperationRows<Operation extends Tagged> = {
  readonly [Case in Operation["case"]]: OperationRow<Extract<Operation, { readonly case: Case }>["value"]>;
};

type AnyRow = OperationRow<never>;

/** A table of rows by any operation of its union: the compiler has checked that row and value fit when the table was written. */
export interface RowsOf<Operation extends Tagged, Routable extends Tagged> {
  isRead(operation: Pick<Operation, "case" | "value">): boolean;
  goesOverRanges(operation: Operation): boolean;
  isPipelined(operation: Operation): boolean;
  route(rules: Rules, operation: Routable): Route;
  plan(operation: Operation, context: PlanContext): Plan;
}

export function byCase<Operation extends Tagged, Routable extends Tagged>(rows: OperationRows<Operation>): RowsOf<Operation, Routable> {
  const rowOf = ({ case: kind }: Tagged): AnyRow => {
    const row: AnyRow | undefined = rows[kind as Operation["case"]];
    assert(row !== undefined, "an operation has a kind that is known");
    return row;
  };
  const holds = (said: true | ((value: never) => boolean) | undefined, { value }: Tagged): boolean =>
    typeof said === "function" ? said(value as never) : said === true;
  return {
    isRead: (operation) => {
      const { access } = rowOf(operation);
      return (typeof access === "function" ? access(operation.value as never) : access) === "read";
    },
    goesOverRanges: (operation) => holds(rowOf(operation).overRanges, operation),
    isPipelined: (operation) => holds(rowOf(operation).pipelined, operation),
    route: (rules, operation) => rowOf(operation).route(rules, operation.value as never),
    plan: (operation, context) => rowOf(operation).plan(operation.value as never, context),
  };
}
