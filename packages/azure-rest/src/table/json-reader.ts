/**
 * One flat JSON object, as entities are: names with scalars. Not JSON.parse, because that loses what entities keep: whether a number was
 * written 5 or 5.0, digits beyond a double's, and names that come twice.
 */
export type JsonScalar =
  | { readonly kind: "string"; readonly value: string }
  /** Number, as the text spells it. */
  | { readonly kind: "number"; readonly text: string }
  | { readonly kind: "boolean"; readonly value: boolean }
  | { readonly kind: "null" };

export type FlatObject = readonly (readonly [name: string, value: JsonScalar])[];

/** Names in one object that are read; with more of them nothing behind is looked at. */
export const jsonNamesMax = 1_024;

/** Reads a JSON object of scalars; returns the reason, for people, when the text is none. */
export function readFlatObject(
  text: string,
): { readonly ok: true; readonly entries: FlatObject } | { readonly ok: false; readonly reason: string; readonly tooMany: boolean } {
  try {
    return { ok: true, entries: new Reader(text).object() };
  } catch (error) {
    if (error instanceof TooMany) return { ok: false, reason: error.message, tooMany: true };
    if (error instanceof SyntaxError) return { ok: false, reason: error.message, tooMany: false };
    throw error;
  }
}

class TooMany extends Error {}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text.startsWith("\ufeff") ? text.slice(1) : text;
  }

  object(): FlatObject {
    const entries: [string, JsonScalar][] = [];
    this.#expect("{");
    if (!this.#skip("}")) {
      do {
        this.#space();
        const name = this.#string();
        this.#expect(":");
        entries.push([name, this.#scalar()]);
        if (entries.length > jsonNamesMax) throw new TooMany(`JSON: an object of more than ${jsonNamesMax} names`);
      } while (this.#skip(","));
      this.#expect("}");
    }
    this.#space();
    if (this.#at < this.#text.length) throw this.#wrong("something behind the object");
    return entries;
  }

  #scalar(): JsonScalar {
    this.#space();
    const first = this.#text[this.#at];
    if (first === '"') return { kind: "string", value: this.#string() };
    if (first === "{" || first === "[") throw this.#wrong("a value that is an object or an array");
    const word = this.#match(/true|false|null/y);
    if (word !== undefined) return word === "null" ? { kind: "null" } : { kind: "boolean", value: word === "true" };
    const number = this.#match(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
    if (number !== undefined) return { kind: "number", text: number };
    throw this.#wrong("no value");
  }

  #string(): string {
    const start = this.#at;
    if (this.#text[start] !== '"') throw this.#wrong("no text in quotes");
    // Mostly the next quote ends the text.
    const quote = this.#text.indexOf('"', start + 1);
    const text = this.#text.slice(start, quote + 1);
    if (quote > 0 && !text.includes("\\")) {
      this.#at = quote + 1;
      return JSON.parse(text) as string;
    }
    for (let at = start + 1; ; at++) {
      const code = this.#text.charCodeAt(at);
      if (Number.isNaN(code)) throw this.#wrong("a text that does not end");
      if (code === 0x5c) at++;
      else if (code === 0x22) {
        this.#at = at + 1;
        return JSON.parse(this.#text.slice(start, at + 1)) as string;
      }
    }
  }

  #space(): void {
    this.#match(/[ \t\r\n]*/y);
  }

  #skip(character: string): boolean {
    this.#space();
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #expect(character: string): void {
    if (!this.#skip(character)) throw this.#wrong(`no ${character}`);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (!match) return undefined;
    this.#at = pattern.lastIndex;
    return match[0];
  }

  #wrong(what: string): SyntaxError {
    return new SyntaxError(`JSON: ${what} at character ${this.#at}`);
  }
}
