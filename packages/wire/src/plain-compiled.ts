/**
 * The conversions of plain.ts as JavaScript that is made from a descriptor when a type is used first: each field is named in the text, so all values of a
 * type have one shape. (The compiled codec does the same for bytes.) They give what the conversions by name give, but for undefined fields of an init, which may
 * be there.
 */
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { file_stamp_v1_accounts } from "./gen/stamp/v1/accounts_pb.ts";
import { file_stamp_v1_common } from "./gen/stamp/v1/common_pb.ts";
import { file_stamp_v1_entities } from "./gen/stamp/v1/entities_pb.ts";
import { file_stamp_v1_messages } from "./gen/stamp/v1/messages_pb.ts";
import { file_stamp_v1_objects } from "./gen/stamp/v1/objects_pb.ts";
import { fromWire } from "./numbers.ts";

export type Conversion = (value: object) => object;

/** Types that are converted often: those of objects. */
const files = [file_stamp_v1_accounts, file_stamp_v1_common, file_stamp_v1_entities, file_stamp_v1_messages, file_stamp_v1_objects];
const schemas: ReadonlyMap<string, DescMessage> = new Map(
  files.flatMap((file) => file.messages.map((schema) => [schema.typeName, schema])),
);

export const longs: ReadonlySet<ScalarType> = new Set([
  ScalarType.INT64,
  ScalarType.UINT64,
  ScalarType.SINT64,
  ScalarType.FIXED64,
  ScalarType.SFIXED64,
]);

const implicit = 2;

/** Returns how a message of this type becomes a plain value; undefined for other types. `plain` converts the values of oneofs. */
export function compiledPlain(typeName: string, plain: (value: unknown) => unknown): Conversion | undefined {
  const known = plains.get(typeName);
  if (known !== undefined) return known;
  const schema = schemas.get(typeName);
  if (
    schema === undefined ||
    schema.members.some((member) => member.kind === "field" && member.fieldKind === "map" && member.mapKind !== "scalar")
  )
    return undefined;
  const literal: string[] = [];
  const optional: string[] = [];
  for (const member of schema.members) {
    const name = member.localName;
    if (member.kind === "oneof") literal.push(`${name}: plain(m.${name})`);
    else if (member.fieldKind !== "list" && member.fieldKind !== "map" && member.presence !== implicit)
      optional.push(`if (m.${name} !== undefined) o.${name} = ${plainText(member)};`);
    else literal.push(`${name}: ${plainText(member)}`);
  }
  const body = `"use strict"; return (m) => { const o = { ${literal.join(", ")} }; ${optional.join(" ")} return o; };\n//# sourceURL=stamp-plain/${typeName}`;
  const made = new Function("num", "plain", "record", body)(fromWire, plain, record) as Conversion;
  plains.set(typeName, made);
  return made;
}

const plains = new Map<string, Conversion>();

function plainText(field: DescField): string {
  const value = `m.${field.localName}`;
  const isLong = field.scalar !== undefined && longs.has(field.scalar);
  switch (field.fieldKind) {
    case "list":
      if (field.listKind === "message") return `${value}.map((e) => plain(e))`;
      return isLong ? `${value}.map((e) => num(e))` : `${value}.slice()`;
    case "map":
      return `record(${value}, ${isLong})`;
    case "message":
      return `plain(${value})`;
    default:
      return isLong ? `num(${value})` : value;
  }
}

/** Encodes a map, whose keys are what users sent. */
function record(map: Readonly<Record<string, unknown>>, isLong: boolean): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const key in map) {
    const value = isLong ? fromWire(map[key] as bigint) : map[key];
    // An assignment would set the prototype.
    if (key === "__proto__") Object.defineProperty(copy, key, { value, enumerable: true });
    else copy[key] = value;
  }
  return copy;
}

/** Returns how a plain value becomes an init of this type. It has no oneof. */
export function compiledInit(schema: DescMessage): Conversion {
  let made = inits.get(schema);
  if (made !== undefined) return made;
  const children: DescMessage[] = [];
  const childOf = (child: DescMessage): string => `c${children.push(child) - 1}`;
  const fields = schema.fields.map((field) => {
    const value = `v.${field.localName}`;
    const isLong = field.scalar !== undefined && longs.has(field.scalar);
    let text = value;
    if (field.fieldKind === "map") text = `{ ...${value} }`;
    else if (field.fieldKind === "list" && field.listKind === "message") text = `${value}.map((e) => ${childOf(field.message)}.init(e))`;
    else if (field.fieldKind === "message") text = `${childOf(field.message)}.init(${value})`;
    else if (field.fieldKind === "scalar" && isLong) text = `BigInt(${value})`;
    return `${field.localName}: ${text === value ? value : `${value} === undefined ? undefined : ${text}`}`;
  });
  const names = children.map((_, i) => `c${i}`);
  const body = `"use strict"; return (v) => ({ ${fields.join(", ")} });\n//# sourceURL=stamp-init/${schema.typeName}`;
  // Looked up when they are called: a type may hold itself.
  const inner = children.map((child) => ({ init: (value: object) => compiledInit(child)(value) }));
  made = new Function(...names, body)(...inner) as Conversion;
  inits.set(schema, made);
  return made;
}

const inits = new WeakMap<DescMessage, Conversion>();
