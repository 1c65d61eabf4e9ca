import assert from "node:assert/strict";
import { test } from "node:test";
import { filterStepsMax } from "@stamp/azure-rest";
import { type FilterTerm, filterTermsMax, isFilter } from "@stamp/objects";
import { filterOfRange, narrowedFilter } from "./entity-range.ts";

test("the longest filter of a request with the longest range of a SAS is one that a partition server takes", () => {
  const compare: FilterTerm = { kind: "compare", property: "a", operator: "eq", constant: { type: "bool", value: true } };
  const longest: FilterTerm[] = [compare, ...Array.from({ length: filterStepsMax - 1 }, (): FilterTerm => ({ kind: "not" }))];
  const range = { startPartitionKey: "a", startRowKey: "a", endPartitionKey: "b", endRowKey: "b" };
  const asked = narrowedFilter(longest, filterOfRange(range));
  assert.ok(asked.length > filterStepsMax && asked.length <= filterTermsMax);
  assert.ok(isFilter(asked));
});
