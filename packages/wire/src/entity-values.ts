/** Values of entities' properties, from and to the wire. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { EntityProperty, EntityPropertySchema, EntityValue, EntityValueSchema } from "./gen/stamp/v1/entities_pb.ts";

/** Value of a row with its type; a DateTime in 100 ns since 1970-01-01 UTC. */
export interface TypedValue {
  readonly type: "bool" | "binary" | "string" | "DateTime" | "double" | "GUID" | "int32" | "int64";
  readonly value: boolean | Uint8Array | string | bigint | number;
}

export interface NamedValue extends TypedValue {
  readonly name: string;
}

const kinds = {
  bool: "boolean",
  binary: "binary",
  string: "text",
  DateTime: "dateTime",
  double: "number",
  GUID: "guid",
  int32: "int32",
  int64: "int64",
} as const;

const types = Object.fromEntries(Object.entries(kinds).map(([type, kind]) => [kind, type])) as Record<string, TypedValue["type"]>;

export const valueToWire = ({ type, value }: TypedValue): MessageInitShape<typeof EntityValueSchema> =>
  ({ kind: { case: kinds[type], value } }) as MessageInitShape<typeof EntityValueSchema>;

/** Returns undefined for a value without a kind, and for a GUID that is not 16 bytes. */
export function valueFromWire(wire: EntityValue | undefined): TypedValue | undefined {
  const kind = wire?.kind;
  if (kind?.case === undefined) return undefined;
  if (kind.case === "guid" && kind.value.length !== 16) return undefined;
  return { type: types[kind.case] as TypedValue["type"], value: kind.value };
}

export const propertyToWire = (property: NamedValue): MessageInitShape<typeof EntityPropertySchema> => ({
  name: property.name,
  value: valueToWire(property),
});

export function propertyFromWire({ name, value }: EntityProperty): NamedValue | undefined {
  const typed = valueFromWire(value);
  return typed && { name, ...typed };
}
