/**
 * A reader of the part of PromQL that the rules for alerts use. It refuses what Prometheus would refuse of it: unknown
 * functions, a range where a moment is needed and the other way round, parentheses and braces that do not fit.
 */

export interface Selector {
  readonly metric: string;
  /** Labels that its matchers name. */
  readonly labels: readonly string[];
  /** Labels by which an aggregation around it groups, each aggregation apart. */
  readonly groupedBy: readonly (readonly string[])[];
}

type Type = "scalar" | "vector" | "range";

const functions: Readonly<Record<string, readonly Type[]>> = {
  abs: ["vector"],
  absent: ["vector"],
  changes: ["range"],
  count_over_time: ["range"],
  histogram_quantile: ["scalar", "vector"],
  increase: ["range"],
  max_over_time: ["range"],
  min_over_time: ["range"],
  rate: ["range"],
  time: [],
  timestamp: ["vector"],
  vector: ["scalar"],
};
const aggregations = new Set(["sum", "count", "max", "min"]);
/** Operators, from the loosest to the tightest. */
const operators = [["or"], ["and", "unless"], ["==", "!=", ">=", "<=", ">", "<"], ["+", "-"], ["*", "/", "%"], ["^"]];
const token = /\s*(?:(\d+(?:\.\d+)?(?:e\d+)?)|([a-zA-Z_:][\w:]*)|("[^"\n]*")|(==|!=|>=|<=|=~|!~|[-+*/%^<>=(){}[\],]))/y;

export function selectorsOf(expression: string): Selector[] {
  const reader = new Reader(expression);
  const type = reader.binary(0, []);
  reader.end();
  if (type !== "vector") throw new Error(`it gives a ${type}`);
  return reader.selectors;
}

class Reader {
  readonly selectors: Selector[] = [];
  readonly #tokens: string[] = [];
  #at = 0;

  constructor(expression: string) {
    token.lastIndex = 0;
    while (token.lastIndex < expression.trimEnd().length) {
      const from = token.lastIndex;
      const found = token.exec(expression);
      if (found === null) throw new Error(`not understood: ${expression.slice(from)}`);
      this.#tokens.push(found[0].trim());
    }
  }

  end(): void {
    if (this.#at < this.#tokens.length) throw new Error(`not expected: ${this.#tokens.slice(this.#at).join(" ")}`);
  }

  binary(level: number, groups: Selector["groupedBy"]): Type {
    const known = operators[level];
    if (known === undefined) return this.#primary(groups);
    let left = this.binary(level + 1, groups);
    while (known.includes(this.#peek())) {
      const operator = this.#take();
      const right = this.binary(level + 1, groups);
      const isSet = level < 2;
      if (left === "range" || right === "range" || (isSet && (left === "scalar" || right === "scalar")))
        throw new Error(`${left} ${operator} ${right}`);
      left = left === "vector" || right === "vector" ? "vector" : "scalar";
    }
    return left;
  }

  #primary(groups: Selector["groupedBy"]): Type {
    const first = this.#take();
    if (/^\d/.test(first)) return "scalar";
    if (first === "(") {
      const type = this.binary(0, groups);
      this.#take(")");
      return type;
    }
    if (!/^[a-zA-Z_:]/.test(first)) throw new Error(`not expected: ${first}`);
    if (aggregations.has(first)) return this.#aggregation(groups);
    if (this.#peek() === "(") return this.#call(first, groups);
    return this.#selector(first, groups);
  }

  #aggregation(groups: Selector["groupedBy"]): Type {
    const before = this.#by();
    this.#take("(");
    const first = this.selectors.length;
    const type = this.binary(0, groups);
    this.#take(")");
    const by = before ?? this.#by();
    if (type !== "vector") throw new Error(`an aggregation of a ${type}`);
    if (by !== undefined)
      for (const [at, selector] of this.selectors.entries())
        if (at >= first) this.selectors[at] = { ...selector, groupedBy: [...selector.groupedBy, by] };
    return "vector";
  }

  #by(): string[] | undefined {
    if (this.#peek() !== "by") return undefined;
    this.#take("by");
    this.#take("(");
    const labels = [this.#take()];
    while (this.#peek() === ",") labels.push(this.#takeAfter(","));
    this.#take(")");
    return labels;
  }

  #call(name: string, groups: Selector["groupedBy"]): Type {
    const wanted = functions[name];
    if (wanted === undefined) throw new Error(`no function ${name}`);
    this.#take("(");
    for (const [at, type] of wanted.entries()) {
      if (at > 0) this.#take(",");
      const given = this.binary(0, groups);
      if (given !== type) throw new Error(`${name} takes a ${type}, not a ${given}`);
    }
    this.#take(")");
    return wanted.length === 0 ? "scalar" : "vector";
  }

  #selector(metric: string, groupedBy: Selector["groupedBy"]): Type {
    const labels: string[] = [];
    if (this.#peek() === "{") {
      this.#take("{");
      while (this.#peek() !== "}") {
        labels.push(this.#take());
        if (!["=", "!=", "=~", "!~"].includes(this.#take())) throw new Error(`${metric}: no matcher`);
        if (!this.#take().startsWith('"')) throw new Error(`${metric}: a value is in quotes`);
        if (this.#peek() === ",") this.#take(",");
      }
      this.#take("}");
    }
    this.selectors.push({ metric, labels, groupedBy });
    if (this.#peek() !== "[") return "vector";
    this.#take("[");
    const [count, unit] = [this.#take(), this.#take()];
    if (!/^\d+$/.test(count) || !/^[smhd]$/.test(unit)) throw new Error(`${metric}: no time: ${count}${unit}`);
    this.#take("]");
    return "range";
  }

  #peek(): string {
    return this.#tokens[this.#at] ?? "";
  }

  #take(wanted?: string): string {
    const found = this.#tokens[this.#at++];
    if (found === undefined || (wanted !== undefined && found !== wanted))
      throw new Error(`${wanted ?? "more"} is missing before ${found ?? "the end"}`);
    return found;
  }

  #takeAfter(wanted: string): string {
    this.#take(wanted);
    return this.#take();
  }
}
