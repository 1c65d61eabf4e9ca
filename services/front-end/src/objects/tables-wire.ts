/** Operations on tables and entities for partition servers, and their results. */
import { FailureError } from "@stamp/base";
import {
  type EntityAction as Action,
  type DictionaryEntry,
  type Entity,
  type EntityChange,
  type FilterTerm,
  type LocatedTable,
  type ComparisonOperator as Operator,
  type Table,
  type TableOperation,
  unpackEntities,
} from "@stamp/objects";
import * as wire from "@stamp/wire";
import { fromWire, propertyToWire, toWire, valueToWire } from "@stamp/wire";
import type { OperationKind } from "../routing/router.ts";

type TableKind = Extract<OperationKind, { case: "table" }>["value"];

export const tableOperationToWire = (operation: TableOperation): OperationKind =>
  ({ case: "table", value: { kind: kindOf(operation) } }) as OperationKind;

function kindOf(operation: TableOperation): TableKind["kind"] {
  switch (operation.case) {
    case "createTable":
    case "getTable":
    case "deleteTable":
      return operation;
    case "setTableAcl": {
      const { signedIdentifiers, ...table } = operation.value;
      return { case: operation.case, value: { ...table, signedIdentifiers: wire.signedIdentifiersToWire(signedIdentifiers) } };
    }
    case "listTables":
      return { case: operation.case, value: { ...operation.value, filter: operation.value.filter.map(termToWire) } };
    case "changeEntities": {
      const { table, partitionKey, changes } = operation.value;
      return { case: operation.case, value: { table: located(table), partitionKey, changes: changes.map(changeToWire) } };
    }
    case "getEntity": {
      const { table, select, ...key } = operation.value;
      return { case: operation.case, value: { table: located(table), key, select: [...select] } };
    }
    case "queryEntities": {
      const { table, filter, select, after, entitiesMax } = operation.value;
      const question = { table: located(table), filter: filter.map(termToWire), select: [...select], entitiesMax, packed: true };
      return { case: operation.case, value: after ? { ...question, after } : question };
    }
  }
}

const located = ({ account, table, incarnation }: LocatedTable) => ({ account, table, incarnation: toWire(incarnation) });

const actions: Readonly<Record<Action, wire.EntityAction>> = {
  insert: wire.EntityAction.INSERT,
  replace: wire.EntityAction.REPLACE,
  merge: wire.EntityAction.MERGE,
  delete: wire.EntityAction.DELETE,
  insertOrReplace: wire.EntityAction.INSERT_OR_REPLACE,
  insertOrMerge: wire.EntityAction.INSERT_OR_MERGE,
};

function changeToWire({ action, rowKey, properties, ifTimestamp }: EntityChange) {
  const change = { action: actions[action], rowKey, properties: properties.map(propertyToWire) };
  return ifTimestamp === undefined ? change : { ...change, ifTimestamp };
}

const operators: Readonly<Record<Operator, wire.ComparisonOperator>> = {
  eq: wire.ComparisonOperator.EQ,
  ne: wire.ComparisonOperator.NE,
  gt: wire.ComparisonOperator.GT,
  ge: wire.ComparisonOperator.GE,
  lt: wire.ComparisonOperator.LT,
  le: wire.ComparisonOperator.LE,
};

const connectives = { and: wire.Connective.AND, or: wire.Connective.OR, not: wire.Connective.NOT } as const;

const termToWire = (term: FilterTerm) =>
  term.kind === "compare"
    ? ({
        kind: {
          case: "comparison",
          value: { property: term.property, operator: operators[term.operator], constant: valueToWire(term.constant) },
        },
      } as const)
    : ({ kind: { case: "connective", value: connectives[term.kind] } } as const);

const damaged = (what: string): FailureError =>
  new FailureError({ code: "internal", reason: "bug", message: `a partition server answered ${what}`, applied: "unknown" });

export const tableFromWire = ({ name, incarnation, signedIdentifiers }: wire.Table): Table => ({
  name,
  incarnation: fromWire(incarnation),
  signedIdentifiers: wire.signedIdentifiersFromWire(signedIdentifiers),
});

/** Returns the entities of a page, in order; a partition server of an older release answers them as messages. */
export const entitiesOf = (page: wire.EntityPage): Iterable<Entity> =>
  page.rows.length > 0 ? unpackEntities(page.rows) : page.entities.values().map(entityFromWire);

export function entityFromWire({ key, timestamp, properties }: wire.Entity): Entity {
  if (!key) throw damaged("an entity without its key");
  return { partitionKey: key.partitionKey, rowKey: key.rowKey, timestamp, properties: properties.map(propertyOf) };
}

function propertyOf(property: wire.EntityProperty): DictionaryEntry {
  const value = wire.propertyFromWire(property);
  if (!value) throw damaged("a property without its value");
  return value;
}
