/** Operations on tables and entities as they came over the wire. Throws FailureError (`badRequest`) for what can't be meant. */
import { FailureError } from "@stamp/base";
import {
  type ComparisonOperator,
  changesMax,
  type DictionaryEntry,
  type EntityAction,
  type EntityKey,
  type FilterTerm,
  filterTermsMax,
  isFilter,
  type LocatedTable,
  type TableOperation,
} from "@stamp/objects";
import * as wire from "@stamp/wire";
import { fromWire, signedIdentifiersFromWire } from "@stamp/wire";

const bad = (what: string): FailureError =>
  new FailureError({ code: "invalidArgument", reason: "badRequest", message: `an operation on tables with ${what}`, applied: "no" });

export function tableOperationFromWire({ kind }: wire.TableOperation): TableOperation {
  switch (kind.case) {
    case undefined:
      throw bad("no kind");
    case "createTable":
    case "getTable":
    case "deleteTable":
      return { case: kind.case, value: { account: kind.value.account, table: kind.value.table } };
    case "setTableAcl": {
      const { account, table, signedIdentifiers } = kind.value;
      return { case: kind.case, value: { account, table, signedIdentifiers: signedIdentifiersFromWire(signedIdentifiers) } };
    }
    case "listTables": {
      const { account, filter, after, tablesMax } = kind.value;
      return { case: kind.case, value: { account, filter: filterOf(filter), after, tablesMax } };
    }
    case "changeEntities": {
      const { table, partitionKey, changes } = kind.value;
      if (changes.length > changesMax) throw bad(`more than ${changesMax} changes`);
      return { case: kind.case, value: { table: located(table), partitionKey, changes: changes.map(changeOf) } };
    }
    case "getEntity":
      return { case: kind.case, value: { table: located(kind.value.table), ...keyOf(kind.value.key), select: kind.value.select } };
    case "queryEntities": {
      const { table, filter, select, after, entitiesMax, packed } = kind.value;
      const start = after ? { after: keyOf(after) } : {};
      return { case: kind.case, value: { table: located(table), filter: filterOf(filter), select, entitiesMax, packed, ...start } };
    }
  }
}

function located(table: wire.LocatedTable | undefined): LocatedTable {
  if (!table) throw bad("no table");
  return { account: table.account, table: table.table, incarnation: fromWire(table.incarnation) };
}

function keyOf(key: wire.EntityKey | undefined): EntityKey {
  if (!key) throw bad("no key");
  return { partitionKey: key.partitionKey, rowKey: key.rowKey };
}

const actions: Readonly<Record<wire.EntityAction, EntityAction | undefined>> = {
  [wire.EntityAction.UNSPECIFIED]: undefined,
  [wire.EntityAction.INSERT]: "insert",
  [wire.EntityAction.REPLACE]: "replace",
  [wire.EntityAction.MERGE]: "merge",
  [wire.EntityAction.DELETE]: "delete",
  [wire.EntityAction.INSERT_OR_REPLACE]: "insertOrReplace",
  [wire.EntityAction.INSERT_OR_MERGE]: "insertOrMerge",
};

function changeOf({ action, rowKey, properties, ifTimestamp }: wire.EntityChange) {
  const known = actions[action];
  if (!known) throw bad("a change without an action");
  return { action: known, rowKey, properties: properties.map(propertyOf), ifTimestamp };
}

function propertyOf(property: wire.EntityProperty): DictionaryEntry {
  const value = wire.propertyFromWire(property);
  if (!value) throw bad("a property without a value");
  return value;
}

const operators: Readonly<Record<wire.ComparisonOperator, ComparisonOperator | undefined>> = {
  [wire.ComparisonOperator.UNSPECIFIED]: undefined,
  [wire.ComparisonOperator.EQ]: "eq",
  [wire.ComparisonOperator.NE]: "ne",
  [wire.ComparisonOperator.GT]: "gt",
  [wire.ComparisonOperator.GE]: "ge",
  [wire.ComparisonOperator.LT]: "lt",
  [wire.ComparisonOperator.LE]: "le",
};

const connectives: Readonly<Record<wire.Connective, "and" | "or" | "not" | undefined>> = {
  [wire.Connective.UNSPECIFIED]: undefined,
  [wire.Connective.AND]: "and",
  [wire.Connective.OR]: "or",
  [wire.Connective.NOT]: "not",
};

function filterOf(terms: readonly wire.FilterTerm[]): FilterTerm[] {
  const filter = terms.map(({ kind }): FilterTerm => {
    if (kind.case === "connective") {
      const connective = connectives[kind.value];
      if (connective) return { kind: connective };
    } else if (kind.case === "comparison") {
      const operator = operators[kind.value.operator];
      const constant = wire.valueFromWire(kind.value.constant);
      if (operator && constant) return { kind: "compare", property: kind.value.property, operator, constant };
    }
    throw bad("a filter whose terms are not complete");
  });
  if (filter.length > filterTermsMax) throw bad(`a filter of ${filter.length} terms: this server takes ${filterTermsMax}`);
  if (!isFilter(filter)) throw bad("what is not a filter");
  return filter;
}
