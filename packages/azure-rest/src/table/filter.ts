/**
 * `$filter` of queries ("Querying tables and entities"): a property against a constant, either side first, `true` and `false`, with `and`,
 * `or`, `not` and parentheses, by precedence climbing. The result is a program in postfix order. What OData has and the service does not (functions,
 * arithmetic, null, properties against properties) is refused.
 */
import { fromHex } from "@stamp/base";
import { fromBase64 } from "../base64.ts";
import { notImplemented, type Parsed, parsed, type RestError, rejected } from "../rest-error.ts";
import { type EdmValue, parseDateTime, parseDouble, parseGuid, parseInt32, parseInt64 } from "./edm.ts";

/** Bound of comparisons in a filter. The reference says 15; clients send hundreds, which the service takes. */
export const comparisonsMax = 500;
/** Depth of parentheses and `not` inside each other at most. */
export const filterDepthMax = 250;
/** Number of steps of one program. A partition server takes 2,048 (`filterTermsMax`): a SAS's range of keys adds some. */
export const filterStepsMax = 2_000;

export type FilterOperator = "eq" | "ne" | "gt" | "ge" | "lt" | "le";

/** The program of `false`: no text is less than the empty one. */
const never: readonly FilterStep[] = [
  { kind: "compare", property: "PartitionKey", operator: "lt", constant: { type: "string", value: "" } },
];

export type FilterStep =
  | { readonly kind: "compare"; readonly property: string; readonly operator: FilterOperator; readonly constant: EdmValue }
  | { readonly kind: "and" | "or" | "not" };

/** Parses a filter. The empty filter has no steps. */
export function parseFilter(text: string): Parsed<readonly FilterStep[]> {
  if (text.trim() === "") return parsed([]);
  try {
    return parsed(new FilterParser(text).whole());
  } catch (error) {
    if (error instanceof FilterProblem) return { ok: false, error: error.error };
    throw error;
  }
}

/** Thrown inside the parser only. */
class FilterProblem extends Error {
  readonly error: RestError;
  constructor(answer: { readonly error: RestError }) {
    super(answer.error.message);
    this.error = answer.error;
  }
}

type Expression =
  | { readonly kind: "property"; readonly name: string }
  | { readonly kind: "constant"; readonly value: EdmValue }
  | { readonly kind: "condition"; readonly steps: readonly FilterStep[] };

type Token =
  | { readonly kind: "end" | "(" | ")" }
  | { readonly kind: "word"; readonly text: string }
  | { readonly kind: "constant"; readonly value: EdmValue };

const precedences: Readonly<Record<string, number>> = { or: 1, and: 2, eq: 3, ne: 3, gt: 3, ge: 3, lt: 3, le: 3 };
/** Each operator with the sides exchanged. */
const mirrored: Readonly<Record<FilterOperator, FilterOperator>> = { eq: "eq", ne: "ne", gt: "lt", ge: "le", lt: "gt", le: "ge" };

class FilterParser {
  readonly #text: string;
  #at = 0;
  #token: Token;
  #comparisons = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
    this.#token = this.#read();
  }

  whole(): readonly FilterStep[] {
    const expression = this.#climb(1);
    if (this.#token.kind !== "end") throw this.#wrong("something behind its end");
    const condition = this.#condition(expression);
    if (condition === true) return [];
    if (condition === false) return never;
    if (condition.length > filterStepsMax) throw this.#wrong(`more than ${filterStepsMax} comparisons and operators`);
    return condition;
  }

  /** Parses an expression that binds at least as strongly as `weakest`. */
  #climb(weakest: number): Expression {
    let left = this.#unary();
    for (;;) {
      const operator = this.#token.kind === "word" ? this.#token.text : "";
      const precedence = precedences[operator] ?? 0;
      if (precedence < weakest || precedence === 0) return left;
      this.#next();
      const right = this.#climb(precedence + 1);
      left =
        operator === "and" || operator === "or"
          ? combined(operator, this.#condition(left), this.#condition(right))
          : this.#comparison(left, operator as FilterOperator, right);
    }
  }

  #unary(): Expression {
    const token = this.#token;
    if (++this.#depth > filterDepthMax) throw this.#wrong(`more than ${filterDepthMax} parentheses inside each other`);
    try {
      this.#next();
      if (token.kind === "(") {
        const inner = this.#climb(1);
        if ((this.#token as Token).kind !== ")") throw this.#wrong("a parenthesis that is not closed");
        this.#next();
        return inner;
      }
      if (token.kind === "constant") return token;
      if (token.kind !== "word") throw this.#wrong("an operand missing");
      // Binds weaker than a comparison here: `not A eq 1` means what it says.
      if (token.text === "not") {
        const operand = this.#condition(this.#climb(3));
        if (typeof operand === "boolean") return truth(!operand);
        return { kind: "condition", steps: [...operand, { kind: "not" }] };
      }
      if (Object.hasOwn(precedences, token.text)) throw this.#wrong(`an operand missing before ${token.text}`);
      if (this.#token.kind === "(") throw new FilterProblem(notImplemented(`The function ${token.text} in $filter`));
      return { kind: "property", name: token.text };
    } finally {
      this.#depth--;
    }
  }

  #comparison(left: Expression, operator: FilterOperator, right: Expression): Expression {
    if (left.kind === "constant" && right.kind === "property") return this.#comparison(right, mirrored[operator], left);
    if (left.kind !== "property" || right.kind !== "constant")
      throw this.#wrong("a comparison that is not between a property and a constant");
    if (++this.#comparisons > comparisonsMax) throw this.#wrong(`more than ${comparisonsMax} comparisons`);
    return { kind: "condition", steps: [{ kind: "compare", property: left.name, operator, constant: right.value }] };
  }

  /** Returns the steps of a condition: a property alone is true when its value is, and `true` and `false` are conditions. */
  #condition(expression: Expression): readonly FilterStep[] | boolean {
    if (expression.kind === "condition") return expression.steps;
    if (expression.kind === "constant") {
      if (expression.value.type === "bool") return expression.value.value === true;
      throw this.#wrong("a constant where a condition belongs");
    }
    const isTrue = this.#comparison(expression, "eq", { kind: "constant", value: { type: "bool", value: true } });
    return isTrue.kind === "condition" ? isTrue.steps : [];
  }

  #next(): void {
    this.#token = this.#read();
  }

  #read(): Token {
    this.#match(/\s*/y);
    const first = this.#text[this.#at];
    if (first === undefined) return { kind: "end" };
    if (first === "(" || first === ")") {
      this.#at++;
      return { kind: first };
    }
    const quoted = this.#match(/([A-Za-z]*)'((?:[^']|'')*)'/y);
    if (quoted) return this.#literal(quoted[1] as string, (quoted[2] as string).replaceAll("''", "'"));
    const number = this.#match(/-?(?:(?:INF|NaN)|\d[\d.]*(?:[eE][+-]?\d+)?[A-Za-z]?)(?![\w'])/y);
    if (number) return this.#number(number[0]);
    const word = this.#match(/[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Nd}\p{Mn}\p{Mc}\p{Pc}\p{Cf}.]*/uy)?.[0];
    if (word !== undefined && /^(true|false)$/i.test(word)) return truth(word.toLowerCase() === "true");
    if (word === "null") throw this.#wrong("null, which no property is");
    if (word !== undefined) return { kind: "word", text: word };
    throw this.#wrong(`what is not understood: ${this.#text.slice(this.#at, this.#at + 20)}`);
  }

  #literal(prefix: string, text: string): Token {
    const value = this.#quoted(prefix, text);
    if (value === undefined) throw this.#wrong(`${prefix}'${text}', which is not a constant`);
    return { kind: "constant", value };
  }

  #quoted(prefix: string, text: string): EdmValue | undefined {
    switch (prefix) {
      case "":
        return text.isWellFormed() ? { type: "string", value: text } : undefined;
      case "datetime": {
        const value = parseDateTime(text);
        return typeof value === "bigint" ? { type: "DateTime", value } : undefined;
      }
      case "guid": {
        const value = parseGuid(text);
        return value && { type: "GUID", value };
      }
      case "X":
      case "x":
      case "binary": {
        // Hexadecimal by the protocol; base64 is what some clients write.
        const value = fromHex(text) ?? (prefix === "binary" ? fromBase64(text) : undefined);
        return value && { type: "binary", value };
      }
      default:
        return undefined;
    }
  }

  #number(text: string): Token {
    const suffix = /^[^A-Za-z]*[A-Za-z]$/.test(text) ? text.slice(-1).toUpperCase() : "";
    const value = numberOf(suffix === "" ? text : text.slice(0, -1), suffix);
    if (value === undefined) throw this.#wrong(`${text}, which is not a number of this service`);
    return { kind: "constant", value };
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (!match) return undefined;
    this.#at = pattern.lastIndex;
    return match;
  }

  #wrong(what: string): FilterProblem {
    return new FilterProblem(rejected("InvalidInput", { Reason: `$filter has ${what.toWellFormed()} (character ${this.#at}).` }));
  }
}

const truth = (value: boolean) => ({ kind: "constant", value: { type: "bool", value } }) as const;

/** Joins two conditions by `and` or `or`. A condition that always or never holds is a boolean, and is left out of the program. */
function combined(operator: "and" | "or", left: readonly FilterStep[] | boolean, right: readonly FilterStep[] | boolean): Expression {
  if (typeof left !== "boolean" && typeof right !== "boolean") return { kind: "condition", steps: [...left, ...right, { kind: operator }] };
  const [known, other] = typeof left === "boolean" ? [left, right] : [right as boolean, left];
  if (known === (operator === "or")) return truth(known);
  return typeof other === "boolean" ? truth(other) : { kind: "condition", steps: other };
}

function numberOf(digits: string, suffix: string): EdmValue | undefined {
  if (suffix === "L") {
    const value = parseInt64(digits);
    return value === undefined ? undefined : { type: "int64", value };
  }
  if (suffix !== "" && suffix !== "D") return undefined;
  if (suffix === "" && /^-?\d+$/.test(digits)) {
    const value = parseInt32(digits);
    return value === undefined ? undefined : { type: "int32", value };
  }
  const value = parseDouble(digits);
  return value === undefined ? undefined : { type: "double", value };
}
