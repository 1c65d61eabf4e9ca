/** Conversions between messages and plain values by the names that are there: for types that are converted seldom, and where no code may be made. */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { assert } from "@stamp/base";
import { fromWire, toWire } from "./numbers.ts";
import { longs } from "./plain-compiled.ts";

export function plainByName(value: unknown): unknown {
  if (typeof value === "bigint") return fromWire(value);
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  if (Array.isArray(value)) return value.map(plainByName);
  const result: Record<string, unknown> = {};
  for (const name in value) {
    if (name === "$typeName" || name === "$unknown") continue;
    const held = plainByName((value as Record<string, unknown>)[name]);
    // Keys of maps are what users sent; this one would be lost otherwise.
    if (name === "__proto__") Object.defineProperty(result, name, { value: held, enumerable: true });
    else result[name] = held;
  }
  return result;
}

type Convert = (value: unknown) => unknown;

const converters = new WeakMap<DescMessage, ReadonlyMap<string, Convert>>();

/** Converters of fields that need one, by field name. */
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

function converterOf(field: DescField): Convert | undefined {
  switch (field.fieldKind) {
    case "scalar":
      return longs.has(field.scalar) ? (value) => toWire(value as number) : undefined;
    case "message":
      return (value) => initByName(field.message, value as object);
    case "list":
      return field.listKind === "message" ? (values) => (values as object[]).map((value) => initByName(field.message, value)) : undefined;
    case "map":
      return (value) => ({ ...(value as object) });
    default:
      return undefined;
  }
}

export function initByName(schema: DescMessage, value: object): object {
  const known = convertersOf(schema);
  const result: Record<string, unknown> = {};
  for (const [name, held] of Object.entries(value)) {
    if (held !== undefined) result[name] = known.get(name)?.(held) ?? held;
  }
  return result;
}
