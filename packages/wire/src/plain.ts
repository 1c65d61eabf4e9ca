/**
 * Messages whose fields are the domain's, name by name, become plain values and back without a line per field. 64-bit numbers are bigint
 * in messages and safe integers in plain values. What has a oneof, or is not the same on both sides, is converted by hand.
 */
import { type DescField, type DescMessage, type MessageInitShape, ScalarType } from "@bufbuild/protobuf";
import { assert } from "@stamp/base";
import { fromWire, toWire } from "./numbers.ts";

/** What a message holds, without what makes it a message. */
export type Plain<T> = T extends bigint
  ? number
  : T extends Uint8Array | string | number | boolean | undefined
    ? T
    : T extends readonly (infer E)[]
      ? readonly Plain<E>[]
      : { readonly [K in keyof T as K extends "$typeName" | "$unknown" ? never : K]: Plain<T[K]> };

/** Bytes are shared with the message. Throws FailureError `badRequest` for a number that is not a safe integer. */
export function plainOf<T>(message: T): Plain<T> {
  return plain(message) as Plain<T>;
}

function plain(value: unknown): unknown {
  if (typeof value === "bigint") return fromWire(value);
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  if (Array.isArray(value)) return value.map(plain);
  const result: Record<string, unknown> = {};
  for (const name in value) {
    if (name === "$typeName" || name === "$unknown") continue;
    const held = plain((value as Record<string, unknown>)[name]);
    // Keys of maps are what users sent; this one would be lost otherwise.
    if (name === "__proto__") Object.defineProperty(result, name, { value: held, enumerable: true });
    else result[name] = held;
  }
  return result;
}

type Convert = (value: unknown) => unknown;

const converters = new WeakMap<DescMessage, ReadonlyMap<string, Convert>>();

/** By field, those that are not taken as they are. */
function convertersOf(schema: DescMessage): ReadonlyMap<string, Convert> {
  let known = converters.get(schema);
  if (!known) {
    const made = new Map<string, Convert>();
    for (const field of schema.fields) {
      assert(field.oneof === undefined, `${schema.typeName} has no oneof`);
      const convert = converterOf(field);
      if (convert) made.set(field.localName, convert);
    }
    known = made;
    converters.set(schema, known);
  }
  return known;
}

const longs: ReadonlySet<ScalarType> = new Set([
  ScalarType.INT64,
  ScalarType.UINT64,
  ScalarType.SINT64,
  ScalarType.FIXED64,
  ScalarType.SFIXED64,
]);

function converterOf(field: DescField): Convert | undefined {
  switch (field.fieldKind) {
    case "scalar":
      return longs.has(field.scalar) ? (value) => toWire(value as number) : undefined;
    case "message":
      return (value) => message(field.message, value as object);
    case "list":
      return field.listKind === "message" ? (values) => (values as object[]).map((value) => message(field.message, value)) : undefined;
    case "map":
      return (value) => ({ ...(value as object) });
    default:
      return undefined;
  }
}

function message(schema: DescMessage, value: object): object {
  const known = convertersOf(schema);
  const result: Record<string, unknown> = {};
  for (const [name, held] of Object.entries(value)) {
    if (held !== undefined) result[name] = known.get(name)?.(held) ?? held;
  }
  return result;
}

/** What `create(schema, …)` takes; undefined is left out. */
export const initOf = <S extends DescMessage>(schema: S, value: object): MessageInitShape<S> =>
  message(schema, value) as MessageInitShape<S>;
