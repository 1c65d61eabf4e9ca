/**
 * Expressions over the tags of a blob: the `where` of Find Blobs by Tags, and `x-ms-if-tags`.
 *
 *   expression = conjunction *( "OR" conjunction )          OR in conditions only
 *   conjunction = comparison *( "AND" comparison )
 *   comparison = name operator 'value'
 *   name       = "quoted" | identifier | @container         @container in searches of a whole account only
 *   operator   = "=" | ">" | ">=" | "<" | "<="              and "<>" in conditions only
 *
 * Words are of any case. Values are compared as texts, by code point; a tag that is not there compares as false, except to "<>". A tag may be
 * compared more than once, also on one side (docs/api/outcomes.md); the container may not. A search refuses keys and values that no tag can
 * have. The input is what anybody sent: it is read once, from left to right, and never throws.
 */
import { isTagKey, isTagValue } from "@stamp/base";
import type { Metadata } from "../object-keys.ts";
import { compareText } from "../rows/key.ts";

export type Operator = "=" | "<>" | ">" | ">=" | "<" | "<=";

export interface Comparison {
  /** `@container`, or a tag's name. */
  readonly name: string;
  readonly operator: Operator;
  readonly value: string;
}

/** Filter: groups of comparisons joined by AND, of which one group must hold. */
export type TagFilter = readonly (readonly Comparison[])[];

/** A search of an account, a search of one container, a condition of a request. */
export type WhereKind = "search" | "containerSearch" | "condition";

export const whereCharactersMax = 8192;
/** Number of tags that one expression speaks of, at most: as many as a blob has. `@container` is not one of them. */
const tagsMax = 10;
const containerName = "@container";
/** Words that the service does not take as names of tags unless they are quoted (reports of its users: docs/api/outcomes.md). */
const reservedWords: ReadonlySet<string> = new Set(["YEAR", "MONTH"]);

/** Parsed search; `reason`: message of the service for a search that it can't read. */
export type ParsedWhere = { readonly ok: true; readonly where: TagFilter } | { readonly ok: false; readonly reason: string };

const bad = (why: string): string => `Error parsing query: ${why}`;

/** Each alternative eats at least a character, so this is linear. */
const token = /\s*(?:"([^"]*)"|'((?:[^']|'')*)'|(<>|>=|<=|=|>|<)|(@?[A-Za-z_][A-Za-z0-9_]*))/y;

interface Token {
  readonly kind: "quoted" | "value" | "operator" | "word" | "other" | "end";
  readonly text: string;
  /** Position of the first character, counted from 1. */
  readonly position: number;
}

/** Returns the tokens, then what is none (one character), if anything, then the end. */
function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  const end = text.trimEnd().length;
  token.lastIndex = 0;
  while (token.lastIndex < end) {
    const from = token.lastIndex;
    const match = token.exec(text);
    const rest = (match === null ? text.slice(from) : match[0]).trimStart();
    const position = (match === null ? text.length : token.lastIndex) - rest.length + 1;
    if (!match) {
      tokens.push({ kind: "other", text: rest.slice(0, 1), position });
      break;
    }
    const [, quoted, value, operator, word] = match;
    if (quoted !== undefined) tokens.push({ kind: "quoted", text: quoted, position });
    else if (value !== undefined) tokens.push({ kind: "value", text: value.replaceAll("''", "'"), position });
    else if (operator !== undefined) tokens.push({ kind: "operator", text: operator, position });
    else tokens.push({ kind: "word", text: word ?? "", position });
  }
  tokens.push({ kind: "end", text: "", position: end + 1 });
  return tokens;
}

const unexpected = ({ kind, text, position }: Token): string =>
  `Error parsing query at or near character position ${position}: unexpected ${kind === "end" ? "end" : `'${text}'`}`;

export function parseWhere(text: string, kind: WhereKind): ParsedWhere {
  const where = readWhere(text, kind);
  return typeof where === "string" ? { ok: false, reason: where } : { ok: true, where };
}

function readWhere(text: string, kind: WhereKind): TagFilter | string {
  if (text.length > whereCharactersMax) return bad(`an expression has at most ${whereCharactersMax} characters`);
  const tokens = tokensOf(text);
  const last = tokens.at(-1) as Token;
  const at = (index: number): Token => tokens[index] ?? last;
  const where: Comparison[][] = [[]];
  const tags = new Set<string>();
  for (let next = 0; ; next += 4) {
    const comparison = comparisonOf(at(next), at(next + 1), at(next + 2), kind);
    if (typeof comparison === "string") return comparison;
    where.at(-1)?.push(comparison);
    if (comparison.name !== containerName && tags.add(comparison.name).size > tagsMax) return bad(`at most ${tagsMax} tags`);
    const join = at(next + 3);
    if (join.kind === "end") break;
    const word = join.kind === "word" ? join.text.toUpperCase() : "";
    if (word === "OR" && kind === "condition") where.push([]);
    else if (word !== "AND") return unexpected(join);
  }
  const containers = where.flat().filter(({ name }) => name === containerName).length;
  return containers > 1 ? bad(`${containerName} is compared more than once`) : where;
}

function comparisonOf(name: Token, operator: Token, value: Token, kind: WhereKind): Comparison | string {
  const searches = kind !== "condition";
  if (name.kind !== "quoted" && name.kind !== "word") return unexpected(name);
  if (searches && name.kind === "word" && reservedWords.has(name.text.toUpperCase())) return unexpected(name);
  if (operator.kind !== "operator" || (operator.text === "<>" && searches)) return unexpected(operator);
  if (value.kind !== "value") return unexpected(value);
  if (name.text.startsWith("@")) {
    if (!searches || name.text.toLowerCase() !== containerName) return unexpected(name);
    if (kind === "containerSearch") return bad("Cannot have container in both uri and query");
    return operator.text === "=" ? { name: containerName, operator: "=", value: value.text } : unexpected(operator);
  }
  if (name.text === "" || (searches && !isTagKey(name.text))) return unexpected(name);
  if (searches && !isTagValue(value.text)) return unexpected(value);
  return { name: name.text, operator: operator.text as Operator, value: value.text };
}

/** Returns the container that a search is limited to. */
export const containerOfWhere = (where: TagFilter): string | undefined =>
  where[0]?.find((comparison) => comparison.name === containerName)?.value;

/** True if the tags fulfil the search; the caller looks at `@container`. */
export const holds = (where: TagFilter, tags: Metadata): boolean =>
  where.some((comparisons) => comparisons.every((comparison) => comparison.name === containerName || compares(comparison, tags)));

function compares({ name, operator, value }: Comparison, tags: Metadata): boolean {
  const held = Object.hasOwn(tags, name) ? tags[name] : undefined;
  if (held === undefined) return operator === "<>";
  const order = compareText(held, value);
  switch (operator) {
    case "=":
      return order === 0;
    case "<>":
      return order !== 0;
    case ">":
      return order > 0;
    case ">=":
      return order >= 0;
    case "<":
      return order < 0;
    case "<=":
      return order <= 0;
  }
}

/** Returns the tags that an expression speaks of. */
export function tagsOfWhere(where: TagFilter, tags: Metadata): Metadata {
  const shown: Record<string, string> = Object.create(null);
  for (const { name } of where.flat()) if (Object.hasOwn(tags, name)) shown[name] = tags[name] as string;
  return shown;
}
