/**
 * Filters over entities, as a program in postfix order, and what they say of an entity. A comparison is true only when the entity has
 * the property and the constant is of the property's type (an Int32 is of the types Int64 and Double, too): otherwise it is false, whatever the operator. `not` turns that round.
 * Strings compare by code point (as keys sort), binaries by byte, GUIDs by their text, false before true; NaN equals nothing.
 */
import { assert, compareBytes } from "@stamp/base";
import { compareText } from "../rows/key.ts";
import type { DictionaryEntry } from "../rows/row.ts";

export const comparisonOperators = ["eq", "ne", "gt", "ge", "lt", "le"] as const;
export type ComparisonOperator = (typeof comparisonOperators)[number];

export type FilterConstant = Omit<DictionaryEntry, "name">;

export interface Comparison {
  readonly kind: "compare";
  readonly property: string;
  readonly operator: ComparisonOperator;
  readonly constant: FilterConstant;
}

export type FilterTerm = Comparison | { readonly kind: "and" | "or" | "not" };

/** More in one filter than the service allows, so that a message of any sender is bounded. */
export const filterTermsMax = 2_048;

/** True if each term finds its operands and one value is left. */
export function isFilter(terms: readonly FilterTerm[]): boolean {
  if (terms.length === 0) return true;
  if (terms.length > filterTermsMax) return false;
  let depth = 0;
  for (const { kind } of terms) {
    if (depth < (kind === "compare" ? 0 : kind === "not" ? 1 : 2)) return false;
    if (kind === "compare") depth += 1;
    else if (kind !== "not") depth -= 1;
  }
  return depth === 1;
}

/** `of` gives the value of a property of what is looked at. The empty filter fits everything. */
export function fitsFilter(terms: readonly FilterTerm[], of: (property: string) => FilterConstant | undefined): boolean {
  return fold<boolean>(terms, {
    compare: (term) => holds(of(term.property), term.operator, term.constant),
    and: (a, b) => a && b,
    or: (a, b) => a || b,
    not: (a) => !a,
    empty: true,
  });
}

/** Runs the program over any domain of values. */
export function fold<T>(
  terms: readonly FilterTerm[],
  over: {
    readonly compare: (term: Comparison) => T;
    readonly and: (a: T, b: T) => T;
    readonly or: (a: T, b: T) => T;
    readonly not: (a: T) => T;
    readonly empty: T;
  },
): T {
  const stack: T[] = [];
  const pop = (): T => {
    assert(stack.length > 0, "a filter that was checked");
    return stack.pop() as T;
  };
  for (const term of terms) {
    if (term.kind === "compare") stack.push(over.compare(term));
    else if (term.kind === "not") stack.push(over.not(pop()));
    else {
      const right = pop();
      stack.push(over[term.kind](pop(), right));
    }
  }
  return stack.length === 0 ? over.empty : pop();
}

function holds(held: FilterConstant | undefined, operator: ComparisonOperator, constant: FilterConstant): boolean {
  const widened = held && widenedTo(held.type, constant);
  if (held === undefined || widened?.type !== held.type) return false;
  const order = compareValues(held, widened);
  // NaN differs from everything, itself too.
  if (order === undefined) return operator === "ne";
  return satisfies(operator, order);
}

/** Returns an Int32 as the type of a property that holds larger numbers; any other constant as it is. */
function widenedTo(type: FilterConstant["type"], constant: FilterConstant): FilterConstant {
  if (constant.type !== "int32") return constant;
  if (type === "int64") return { type, value: BigInt(constant.value as number) };
  return type === "double" ? { type, value: constant.value as number } : constant;
}

/** True if the operator holds; `order`: order of the left side to the right one. */
export function satisfies(operator: ComparisonOperator, order: number): boolean {
  switch (operator) {
    case "eq":
      return order === 0;
    case "ne":
      return order !== 0;
    case "gt":
      return order > 0;
    case "ge":
      return order >= 0;
    case "lt":
      return order < 0;
    case "le":
      return order <= 0;
  }
}

/** Compares two constants of one type. Undefined if they have no order. */
function compareValues({ value: a }: FilterConstant, { value: b }: FilterConstant): number | undefined {
  if (typeof a === "string") return compareText(a, b as string);
  if (a instanceof Uint8Array) return compareBytes(a, b as Uint8Array);
  const [left, right] = [a, b as typeof a];
  if (left < right) return -1;
  if (left > right) return 1;
  return left === right ? 0 : undefined;
}
