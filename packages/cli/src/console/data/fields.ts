/** Reads the fields that the page sends with a change. Nothing is known of a field before one of these functions has looked at it. */

export type Fields = Readonly<Record<string, unknown>>;

/** A field that is missing or wrong. The message may have content of the field: it is for the page, and not for the audit log. */
export class FieldError extends Error {}

/** Returns the fields in a text of JSON; undefined if it is none. */
export function fieldsOf(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns a text of at least one character. Throws if the page left it out. */
export function wordIn(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value === "string" && value !== "") return value;
  throw new FieldError(`the request names no ${name}: load the page again`);
}

/** Returns a text that may be empty, as keys of entities may. */
export function textIn(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value === "string") return value;
  throw new FieldError(`the request has no ${name}: load the page again`);
}

/** Returns a whole number, which a query has as decimal digits. No other value counts as a number: not null, true, "" or a list. */
export function wholeIn(fields: Fields, name: string, min: number, max: number): number {
  const value = fields[name];
  const number = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
  if (typeof number === "number" && Number.isInteger(number) && number >= min && number <= max) return number;
  throw new FieldError(`${name} is a whole number, ${min} to ${max}`);
}

/** Returns a list of objects. Throws if the list is longer than `max`. */
export function objectsIn(fields: Fields, name: string, max: number): readonly Fields[] {
  const value = fields[name];
  if (!Array.isArray(value)) throw new FieldError(`the request has no list ${name}: load the page again`);
  if (value.length > max) throw new FieldError(`${value.length} ${name} are too many: the service takes ${max} at most`);
  return value.map((each: unknown) => (isObject(each) ? each : {}));
}

/** Returns a list of objects that have these fields, each a text. Throws if the list is longer than `max`. */
export const listIn = <K extends string>(fields: Fields, name: string, keys: readonly K[], max: number): readonly Record<K, string>[] =>
  objectsIn(fields, name, max).map((item) => Object.fromEntries(keys.map((key) => [key, textIn(item, key)])) as Record<K, string>);

/** A text in the words of an error, at most 100 characters of it. */
export const shown = (text: string): string => JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
