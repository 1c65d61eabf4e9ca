/** Reads the fields that the page sends with a change. Nothing is known of a field before one of these functions has looked at it. */

export type Fields = Readonly<Record<string, unknown>>;

/** Returns the fields in a text of JSON; undefined if it is none. */
export function fieldsOf(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns a text of at least one character. Throws if the page left it out. */
export function wordIn(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value === "string" && value !== "") return value;
  throw new Error(`the request names no ${name}`);
}

/** Returns a text that may be empty, as keys of entities may. */
export function textIn(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value === "string") return value;
  throw new Error(`the request has no ${name}`);
}

export function listIn<T>(fields: Fields, name: string): readonly T[] {
  const value = fields[name];
  if (Array.isArray(value)) return value as readonly T[];
  throw new Error(`the request has no list ${name}`);
}
