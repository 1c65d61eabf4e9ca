/**
 * The entities that a table's SAS is for (spk, srk, epk, erk): a check of requests that name keys, more terms in the
 * filter of a query.
 */
import { type Parsed, parsed, rejected } from "@stamp/azure-rest";
import { type ComparisonOperator, type EntityKey, type FilterTerm, fitsFilter } from "@stamp/objects";
import type { EntityRange } from "../exchange.ts";

const compare = (property: "PartitionKey" | "RowKey", operator: ComparisonOperator, value: string): FilterTerm => ({
  kind: "compare",
  property,
  operator,
  constant: { type: "string", value },
});
const and: FilterTerm = { kind: "and" };
const or: FilterTerm = { kind: "or" };

/** Returns a filter for a bound of keys; a row key counts only inside of the bound's partition. */
function bound(partitionKey: string, rowKey: string, beyond: "gt" | "lt", upTo: "ge" | "le"): FilterTerm[] {
  if (partitionKey === "") return [];
  if (rowKey === "") return [compare("PartitionKey", upTo, partitionKey)];
  const inside = [compare("PartitionKey", "eq", partitionKey), compare("RowKey", upTo, rowKey), and];
  return [compare("PartitionKey", beyond, partitionKey), ...inside, or];
}

/** Fits exactly the entities of the range; empty: every one. */
export function filterOfRange(range: EntityRange | undefined): readonly FilterTerm[] {
  if (!range) return [];
  const low = bound(range.startPartitionKey, range.startRowKey, "gt", "ge");
  const high = bound(range.endPartitionKey, range.endRowKey, "lt", "le");
  return low.length > 0 && high.length > 0 ? [...low, ...high, and] : [...low, ...high];
}

/** Returns a filter that passes what both filters pass. */
export const narrowedFilter = (filter: readonly FilterTerm[], by: readonly FilterTerm[]): readonly FilterTerm[] =>
  filter.length > 0 && by.length > 0 ? [...filter, ...by, and] : [...filter, ...by];

export function checkRange(range: EntityRange | undefined, { partitionKey, rowKey }: EntityKey): Parsed<void> {
  const inside = fitsFilter(filterOfRange(range), (name) => ({ type: "string", value: name === "PartitionKey" ? partitionKey : rowKey }));
  return inside ? parsed(undefined) : rejected("AuthorizationFailure");
}
