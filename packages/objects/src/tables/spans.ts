/**
 * The planner of queries: finds the keys that a filter can match. The constants that a filter compares a key with cut its values into points (the
 * constants) and gaps between them; inside one piece every comparison of the key has one answer. So for each piece of PartitionKey, and
 * for points of it each piece of RowKey, the filter is asked whether it may hold there, whatever the other properties are. What may not
 * is never read: a comparison of both keys is one row, of a PartitionKey and a prefix of RowKey one short range.
 */
import { compareBytes, concatBytes, equalBytes, type Rules } from "@stamp/base";
import { afterPrefix } from "../object-keys.ts";
import { compareText } from "../rows/key.ts";
import { type Comparison, type FilterTerm, fold, satisfies } from "./filter.ts";
import { entitiesPrefix, entityKey, foldedName, partitionPrefix, tableKey, tablesPrefix } from "./keys.ts";
import type { ListTables, QueryEntities } from "./operation.ts";

/** Low inclusive, high exclusive. */
export interface KeySpan {
  readonly low: Uint8Array;
  readonly high: Uint8Array;
}

/** A constant, or what lies between two neighbours. */
interface Piece {
  readonly at?: string;
  readonly after?: string;
  readonly before?: string;
}

/** Returns the order of any value of the piece relative to a constant of the filter. */
function orderOf(piece: Piece, constant: string): number {
  if (piece.at !== undefined) return compareText(piece.at, constant);
  return piece.after !== undefined && compareText(constant, piece.after) <= 0 ? 1 : -1;
}

function piecesOf(constants: readonly string[]): Piece[] {
  const sorted = [...new Set(constants)].sort(compareText);
  const pieces: Piece[] = [];
  let after: string | undefined;
  for (const at of sorted) {
    pieces.push(after === undefined ? { before: at } : { after, before: at }, { at });
    after = at;
  }
  pieces.push(after === undefined ? {} : { after });
  return pieces;
}

/** Possible results of a condition: it may be true, it may be false. */
interface Chance {
  readonly true: boolean;
  readonly false: boolean;
}
const unknown: Chance = { true: true, false: true };
const known = (truth: boolean): Chance => ({ true: truth, false: !truth });

type Pieces = Readonly<Record<string, Piece | undefined>>;

/** True if the filter can hold for keys inside these pieces; a key without a piece may be anything. */
function mayHold(filter: readonly FilterTerm[], pieces: Pieces, text: (constant: string) => string): boolean {
  return fold<Chance>(filter, {
    compare: (term) => chanceOf(term, pieces, text),
    and: (a, b) => ({ true: a.true && b.true, false: a.false || b.false }),
    or: (a, b) => ({ true: a.true || b.true, false: a.false && b.false }),
    not: (a) => ({ true: a.false, false: a.true }),
    empty: known(true),
  }).true;
}

function chanceOf({ property, operator, constant }: Comparison, pieces: Pieces, text: (constant: string) => string): Chance {
  if (!Object.hasOwn(pieces, property)) return unknown;
  // Keys are strings: a constant of another type fits none.
  if (constant.type !== "string") return known(false);
  const piece = pieces[property];
  return piece ? known(satisfies(operator, orderOf(piece, text(String(constant.value))))) : unknown;
}

const constantsOf = (filter: readonly FilterTerm[], key: string): string[] =>
  filter.flatMap((term) =>
    term.kind === "compare" && term.property === key && term.constant.type === "string" ? [String(term.constant.value)] : [],
  );

const same = (text: string): string => text;

/** Returns the spans in key order, disjoint. */
export function spansOfQuery(rules: Rules, { table, filter }: Pick<QueryEntities, "table" | "filter">): KeySpan[] {
  const all = entitiesPrefix(rules, table);
  const spans = new Spans();
  const rowPieces = piecesOf(constantsOf(filter, "RowKey"));
  for (const partition of piecesOf(constantsOf(filter, "PartitionKey"))) {
    if (partition.at === undefined) {
      if (!rowPieces.some((row) => mayHold(filter, { PartitionKey: partition, RowKey: row }, same))) continue;
      const low = partition.after === undefined ? all : afterPrefix(partitionPrefix(rules, table, partition.after));
      spans.add(low, partition.before === undefined ? afterPrefix(all) : partitionPrefix(rules, table, partition.before));
      continue;
    }
    const prefix = partitionPrefix(rules, table, partition.at);
    for (const row of rowPieces) {
      if (!mayHold(filter, { PartitionKey: partition, RowKey: row }, same)) continue;
      const bounds = boundsOf(row, (rowKey) => entityKey(prefix, rowKey));
      spans.add(bounds.low ?? prefix, bounds.high ?? afterPrefix(prefix));
    }
  }
  return spans.list;
}

/** Returns the spans of table names that a query can match, without regard to case. */
export function spansOfTables({ account, filter }: Pick<ListTables, "account" | "filter">): KeySpan[] {
  const all = tablesPrefix(account);
  const spans = new Spans();
  for (const piece of piecesOf(constantsOf(filter, "TableName").map(foldedName))) {
    if (!mayHold(filter, { TableName: piece }, foldedName)) continue;
    const bounds = boundsOf(piece, (name) => tableKey(account, name));
    spans.add(bounds.low ?? all, bounds.high ?? afterPrefix(all));
  }
  return spans.list;
}

/** Returns the bounds of a piece of keys; undefined ends reach to the end of the table. */
function boundsOf(piece: Piece, keyOf: (text: string) => Uint8Array): { low?: Uint8Array; high?: Uint8Array } {
  if (piece.at !== undefined) return { low: keyOf(piece.at), high: successor(keyOf(piece.at)) };
  return {
    ...(piece.after === undefined ? {} : { low: successor(keyOf(piece.after)) }),
    ...(piece.before === undefined ? {} : { high: keyOf(piece.before) }),
  };
}

/** Returns the first key after this one. */
export const successor = (key: Uint8Array): Uint8Array => concatBytes([key, Uint8Array.of(0)]);

/** Spans of keys; neighbouring ones are joined. */
class Spans {
  readonly list: KeySpan[] = [];

  add(low: Uint8Array, high: Uint8Array): void {
    const last = this.list.at(-1);
    if (last && equalBytes(last.high, low)) this.list[this.list.length - 1] = { low: last.low, high };
    else if (compareBytes(low, high) < 0) this.list.push({ low, high });
  }
}

/** Returns the parts of the spans that are not before `from`. */
export function spansFrom(spans: readonly KeySpan[], from: Uint8Array): KeySpan[] {
  const left: KeySpan[] = [];
  for (const span of spans) {
    if (compareBytes(span.high, from) <= 0) continue;
    left.push(compareBytes(span.low, from) < 0 ? { low: from, high: span.high } : span);
  }
  return left;
}
