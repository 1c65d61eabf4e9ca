/**
 * Expressions over the tags of a blob: the `where` of Find Blobs by Tags, and `x-ms-if-tags`.
 *
 *   expression = conjunction *( "OR" conjunction )          OR in conditions only
 *   conjunction = comparison *( "AND" comparison )
 *   comparison = name operator 'value'
 *   name       = "quoted" | identifier | @container         @container in searches only
 *   operator   = "=" | ">" | ">=" | "<" | "<="              and "<>" in conditions only
 *
 * Words are of any case. Values are compared as texts, by code point; a tag that is not there compares as false, except to "<>". The input
 * is what anybody sent: it is read once, from left to right, and never throws.
 */
import type { Metadata } from "../operation.ts";
import { compareText } from "../rows/key.ts";

export type Operator = "=" | "<>" | ">" | ">=" | "<" | "<=";

export interface Comparison {
  /** `@container`, or a tag's name. */
  readonly name: string;
  readonly operator: Operator;
  readonly value: string;
}

/** Comparisons joined by AND, and those by OR. */
export type Where = readonly (readonly Comparison[])[];

export type WhereKind = "search" | "condition";

export const whereCharactersMax = 8192;
const comparisonsMax = 10;
const containerName = "@container";

export type ParsedWhere = { readonly ok: true; readonly where: Where } | { readonly ok: false; readonly reason: string };

const bad = (reason: string): ParsedWhere => ({ ok: false, reason });

/** Each alternative eats at least a character, so this is linear. */
const token = /\s*(?:"([^"]*)"|'((?:[^']|'')*)'|(<>|>=|<=|=|>|<)|(@?[A-Za-z_][A-Za-z0-9_]*))/y;

interface Token {
  readonly kind: "quoted" | "value" | "operator" | "word";
  readonly text: string;
}

function tokensOf(text: string): Token[] | undefined {
  const tokens: Token[] = [];
  const end = text.trimEnd().length;
  token.lastIndex = 0;
  while (token.lastIndex < end) {
    const match = token.exec(text);
    if (!match) return undefined;
    const [, quoted, value, operator, word] = match;
    if (quoted !== undefined) tokens.push({ kind: "quoted", text: quoted });
    else if (value !== undefined) tokens.push({ kind: "value", text: value.replaceAll("''", "'") });
    else if (operator !== undefined) tokens.push({ kind: "operator", text: operator });
    else tokens.push({ kind: "word", text: word ?? "" });
  }
  return tokens;
}

export function parseWhere(text: string, kind: WhereKind): ParsedWhere {
  if (text.length > whereCharactersMax) return bad(`An expression has at most ${whereCharactersMax} characters.`);
  const tokens = tokensOf(text);
  if (!tokens) return bad("It holds something that is neither a name, nor an operator, nor a value in single quotes.");
  const where: Comparison[][] = [[]];
  let comparisons = 0;
  for (let at = 0; ; at += 4) {
    const comparison = comparisonOf(tokens.slice(at, at + 3), kind);
    if (typeof comparison === "string") return bad(comparison);
    where.at(-1)?.push(comparison);
    if (++comparisons > comparisonsMax) return bad(`An expression has at most ${comparisonsMax} comparisons.`);
    const join = tokens[at + 3];
    if (join === undefined) break;
    const word = join.kind === "word" ? join.text.toUpperCase() : "";
    if (word === "OR" && kind === "condition") where.push([]);
    else if (word !== "AND") return bad(`${join.text} does not join two comparisons here.`);
  }
  const problem = kind === "search" ? contradiction(where[0] ?? []) : undefined;
  return problem === undefined ? { ok: true, where } : bad(problem);
}

function comparisonOf([name, operator, value]: readonly Token[], kind: WhereKind): Comparison | string {
  if (name === undefined || (name.kind !== "quoted" && name.kind !== "word")) return "A comparison begins with the name of a tag.";
  if (operator?.kind !== "operator") return `No operator follows ${name.text}.`;
  if (value?.kind !== "value") return `No value in single quotes follows ${name.text} ${operator.text}.`;
  if (operator.text === "<>" && kind === "search") return "<> is for conditions only.";
  if (name.text.startsWith("@")) {
    if (kind === "condition" || name.text.toLowerCase() !== containerName) return `${name.text} is not known here.`;
    if (operator.text !== "=") return `${containerName} can only be compared with =.`;
    return { name: containerName, operator: "=", value: value.text };
  }
  if (name.text === "") return "The name of a tag has at least one character.";
  return { name: name.text, operator: operator.text as Operator, value: value.text };
}

/** A search may bound one tag from below and from above, once each. */
function contradiction(comparisons: readonly Comparison[]): string | undefined {
  const seen = new Set<string>();
  for (const { name, operator } of comparisons) {
    const sides = operator === "=" ? ["low", "high"] : [operator.startsWith(">") ? "low" : "high"];
    for (const side of sides) {
      if (seen.has(`${side} ${name}`)) return `${name} is compared more than once.`;
      seen.add(`${side} ${name}`);
    }
  }
  return undefined;
}

/** The container that a search is limited to. */
export const containerOfWhere = (where: Where): string | undefined =>
  where[0]?.find((comparison) => comparison.name === containerName)?.value;

/** Whether tags fulfil it; `@container` is the caller's to look at. */
export const holds = (where: Where, tags: Metadata): boolean =>
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

/** The tags that an expression speaks of. */
export function tagsOfWhere(where: Where, tags: Metadata): Metadata {
  const shown: Record<string, string> = Object.create(null);
  for (const { name } of where.flat()) if (Object.hasOwn(tags, name)) shown[name] = tags[name] as string;
  return shown;
}
