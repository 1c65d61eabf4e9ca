/**
 * Entities in OData JSON ("Payload format for Table service operations"): what a request brings, and what answers show with no, minimal
 * or full metadata.
 */
import { fromBase64, toBase64 } from "../base64.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";
import {
  doubleJson,
  type EdmProperty,
  type EdmType,
  type EdmValue,
  edmNames,
  edmTypes,
  etagOfTime,
  formatDateTime,
  formatGuid,
  isDateTime,
  parseDateTime,
  parseDouble,
  parseGuid,
  parseInt32,
  parseInt64,
} from "./edm.ts";
import { type FlatObject, type JsonScalar, readFlatObject } from "./json-reader.ts";
import { checkKey, checkPropertyName } from "./names.ts";

/** Largest string or binary property, in bytes; strings are counted in UTF-16. */
export const propertyBytesMax: number = 64 * 1024;

export interface EntityBody {
  readonly partitionKey?: string;
  readonly rowKey?: string;
  /** Properties without null values: those are not stored, and a merge leaves what exists. */
  readonly properties: readonly EdmProperty[];
}

export const typeSuffix = "@odata.type";

export function parseEntity(text: string): Parsed<EntityBody> {
  const read = readObject(text);
  if (!read.ok) return read;
  const types = new Map<string, string>();
  const values = new Map<string, JsonScalar>();
  for (const [name, value] of read.value) {
    const into = name.endsWith(typeSuffix) ? types : values;
    const of = into === types ? name.slice(0, -typeSuffix.length) : name;
    if (into.has(of)) return rejected("DuplicatePropertiesSpecified", { PropertyName: of.toWellFormed() });
    if (into === values) values.set(of, value);
    else if (value.kind === "string") types.set(of, value.value);
    else return invalidInput(`${name} is not a text.`);
  }
  const keys: { partitionKey?: string; rowKey?: string } = {};
  const properties: EdmProperty[] = [];
  for (const [name, value] of values) {
    // Annotations, and what the service itself writes.
    if (name.startsWith("odata.") || name.includes("@odata.") || name === "Timestamp") continue;
    if (name === "PartitionKey" || name === "RowKey") {
      if (value.kind === "null") continue;
      if (value.kind !== "string" || (types.get(name) ?? edmNames.string) !== edmNames.string)
        return rejected("PrimaryKeyPropertyIsInvalidType");
      const key = checkKey(name, value.value);
      if (!key.ok) return key;
      keys[name === "PartitionKey" ? "partitionKey" : "rowKey"] = key.value;
      continue;
    }
    const known = checkPropertyName(name);
    if (!known.ok) return known;
    if (value.kind === "null") continue;
    const typed = typedValue(name, value, types.get(name));
    if (!typed.ok) return typed;
    properties.push({ name, ...typed.value });
  }
  return parsed({ ...keys, properties });
}

/** Parses the body of Create Table. */
export function parseTableName(text: string): Parsed<string> {
  const read = readObject(text);
  if (!read.ok) return read;
  const value = read.value.find(([name]) => name === "TableName")?.[1];
  if (value?.kind !== "string") return rejected("PropertiesNeedValue", { PropertyName: "TableName" });
  return parsed(value.value);
}

function readObject(text: string): Parsed<FlatObject> {
  const read = readFlatObject(text);
  if (read.ok) {
    // Whatever type a number is said to have, readers of JSON at the service get no further.
    const far = read.entries.find(([, value]) => value.kind === "number" && isTooLarge(value));
    return far === undefined ? parsed(read.entries) : invalidInput(`${far[0].toWellFormed()}: a double can't hold this number.`);
  }
  return read.tooMany ? rejected("TooManyProperties") : invalidInput(read.reason);
}

const invalidInput = (reason: string) => rejected("InvalidInput", { Reason: reason });

const isTooLarge = (scalar: JsonScalar): boolean =>
  Math.abs(Number(scalar.kind === "number" ? scalar.text : scalar.kind === "string" ? scalar.value : "")) === Number.POSITIVE_INFINITY;

function typedValue(name: string, value: JsonScalar, annotation: string | undefined): Parsed<EdmValue> {
  const type = annotation === undefined ? impliedType(value) : edmTypes.get(annotation);
  if (type === undefined) return invalidInput(`${name}: ${annotation} is not a type of this service.`);
  const result = valueAs(type, value);
  if (result === "range") return rejected("OutOfRangeInput", { PropertyName: name });
  if (result === undefined && type === "double" && isTooLarge(value)) return invalidInput(`${name}: a double can't hold this number.`);
  if (result === undefined) return rejected("InvalidValueType", { PropertyName: name });
  return checkSize(name, { type, value: result });
}

function checkSize(name: string, typed: EdmValue): Parsed<EdmValue> {
  const { value } = typed;
  const bytes = typeof value === "string" ? value.length * 2 : value instanceof Uint8Array ? value.length : 0;
  return bytes > propertyBytesMax ? rejected("PropertyValueTooLarge", { PropertyName: name }) : parsed(typed);
}

/** Checks an entity that did not come as JSON like `parseEntity` does. */
export function checkEntity({ partitionKey = "", rowKey = "", properties }: EntityBody): Parsed<void> {
  for (const key of [checkKey("PartitionKey", partitionKey), checkKey("RowKey", rowKey)]) if (!key.ok) return key;
  const seen = new Set<string>(systemProperties);
  for (const property of properties) {
    const { name, value } = property;
    if (seen.has(name)) return rejected("DuplicatePropertiesSpecified", { PropertyName: name });
    seen.add(name);
    const known = checkPropertyName(name);
    if (!known.ok) return known;
    if (typeof value === "string" && !value.isWellFormed()) return rejected("InvalidValueType", { PropertyName: name });
    if (property.type === "DateTime" && !isDateTime(value as bigint)) return rejected("OutOfRangeInput", { PropertyName: name });
    const sized = checkSize(name, property);
    if (!sized.ok) return sized;
  }
  return parsed(undefined);
}

const systemProperties = ["PartitionKey", "RowKey", "Timestamp"] as const;

/** Returns the type of a value without an annotation: a number without point and exponent is an Int32, if it fits. */
function impliedType(value: JsonScalar): EdmType {
  if (value.kind === "boolean") return "bool";
  if (value.kind !== "number") return "string";
  return parseInt32(value.text) === undefined ? "double" : "int32";
}

function valueAs(type: EdmType, scalar: JsonScalar): EdmValue["value"] | "range" | undefined {
  const text = scalar.kind === "string" ? scalar.value : scalar.kind === "number" ? scalar.text : undefined;
  switch (type) {
    case "bool":
      if (scalar.kind === "boolean") return scalar.value;
      return text !== undefined && /^(true|false)$/i.test(text) ? text.toLowerCase() === "true" : undefined;
    case "string":
      return scalar.kind === "string" && scalar.value.isWellFormed() ? scalar.value : undefined;
    case "int32":
      return text === undefined ? undefined : parseInt32(text);
    case "int64":
      return text === undefined ? undefined : parseInt64(text);
    case "double":
      return text === undefined ? undefined : parseDouble(text);
    case "binary":
      return scalar.kind === "string" ? fromBase64(scalar.value) : undefined;
    case "GUID":
      return scalar.kind === "string" ? parseGuid(scalar.value) : undefined;
    case "DateTime":
      return scalar.kind === "string" ? parseDateTime(scalar.value) : undefined;
  }
}

export type MetadataLevel = "none" | "minimal" | "full";

export interface ShownEntity {
  readonly partitionKey: string;
  readonly rowKey: string;
  readonly timestamp: bigint;
  readonly properties: readonly EdmProperty[];
}

/** Form in which entities are written as JSON: level of OData metadata, and names for the URLs in it. */
export interface JsonForm {
  readonly metadata: MetadataLevel;
  /** `http://host/account/`, with the slash. */
  readonly endpoint: string;
  readonly account: string;
}

/** Returns the text as JSON, in quotes. */
export const quoted = (text: string): string => JSON.stringify(text);

/** Returns a key as URLs of entities have it: quotes doubled, then encoded. */
const urlKey = (key: string): string => encodeURIComponent(key.replaceAll("'", "''"));

/** Returns `table(PartitionKey='…',RowKey='…')` */
export const entityPath = (table: string, { partitionKey, rowKey }: Pick<ShownEntity, "partitionKey" | "rowKey">): string =>
  `${table}(PartitionKey='${urlKey(partitionKey)}',RowKey='${urlKey(rowKey)}')`;

export const tablePath = (table: string): string => `Tables('${table}')`;

const metadataUrl = (form: JsonForm, of: string): string => `"odata.metadata":${quoted(`${form.endpoint}$metadata#${of}`)}`;

export function entityJson(form: JsonForm, table: string, entity: ShownEntity, select: readonly string[]): string {
  const head = form.metadata === "none" ? "" : metadataUrl(form, `${table}/@Element`);
  return `{${entityMembers(head, form, table, entity, wantedOf(select))}}`;
}

/** The JSON of one page of entities in pieces: `start`, each entity, `end`. */
export class EntitiesJson {
  readonly #form: JsonForm;
  readonly #table: string;
  readonly #wanted: Wanted;
  /** True until the first entity is written. */
  isFirst = true;
  readonly end = "]}";

  /** `select`: names of the properties that are shown; empty: all. */
  constructor(form: JsonForm, table: string, select: readonly string[]) {
    this.#form = form;
    this.#table = table;
    this.#wanted = wantedOf(select);
  }

  get start(): string {
    return this.#form.metadata === "none" ? '{"value":[' : `{${metadataUrl(this.#form, this.#table)},"value":[`;
  }

  /** Returns the next entity, with a comma before all but the first. */
  entity(entity: ShownEntity): string {
    const text = `${this.isFirst ? "{" : ",{"}${entityMembers("", this.#form, this.#table, entity, this.#wanted)}}`;
    this.isFirst = false;
    return text;
  }
}

type Wanted = ReadonlySet<string> | undefined;

const wantedOf = (select: readonly string[]): Wanted => (select.length === 0 ? undefined : new Set(select));

const joined = (members: string, more: string): string => (members === "" ? more : `${members},${more}`);

/** Returns the members of an entity's object, behind the members in `head`. */
function entityMembers(head: string, form: JsonForm, table: string, entity: ShownEntity, wanted: Wanted): string {
  const { metadata } = form;
  const time = formatDateTime(entity.timestamp);
  let members = head;
  if (metadata === "full") {
    const path = entityPath(table, entity);
    members = joined(members, `"odata.type":${quoted(`${form.account}.${table}`)},"odata.id":${quoted(form.endpoint + path)}`);
    members += `,"odata.etag":${quoted(etagOfTime(time))},"odata.editLink":${quoted(path)}`;
  } else if (metadata === "minimal") {
    members = joined(members, `"odata.etag":${quoted(etagOfTime(time))}`);
  }
  const shows = (name: string): boolean => wanted === undefined || wanted.has(name);
  if (shows("PartitionKey")) members = joined(members, `"PartitionKey":${quoted(entity.partitionKey)}`);
  if (shows("RowKey")) members = joined(members, `"RowKey":${quoted(entity.rowKey)}`);
  if (shows("Timestamp")) {
    if (metadata === "full") members = joined(members, `"Timestamp${typeSuffix}":"Edm.DateTime"`);
    members = joined(members, `"Timestamp":"${time}"`);
  }
  for (const property of entity.properties) {
    if (metadata !== "none" && annotated(property))
      members = joined(members, `${quoted(property.name + typeSuffix)}:"${edmNames[property.type]}"`);
    members = joined(members, `${quoted(property.name)}:${valueJson(property)}`);
  }
  if (wanted === undefined) return members;
  // Selected properties that are absent are shown as null.
  const held = new Set<string>([...systemProperties, ...entity.properties.map(({ name }) => name)]);
  for (const name of wanted) if (!held.has(name)) members = joined(members, `${quoted(name)}:null`);
  return members;
}

/** True if the JSON does not show the type already. */
export const annotated = ({ type, value }: EdmValue): boolean =>
  type === "binary" || type === "DateTime" || type === "GUID" || type === "int64" || (type === "double" && !Number.isFinite(value));

function valueJson({ type, value }: EdmValue): string {
  switch (type) {
    case "string":
      return quoted(value as string);
    case "int64":
      return `"${value}"`;
    case "double":
      return doubleJson(value as number);
    case "DateTime":
      return `"${formatDateTime(value as bigint)}"`;
    case "GUID":
      return `"${formatGuid(value as Uint8Array)}"`;
    case "binary":
      return `"${toBase64(value as Uint8Array)}"`;
    case "bool":
    case "int32":
      return String(value);
  }
}

export function tableJson(form: JsonForm, table: string): string {
  const head = form.metadata === "none" ? [] : [metadataUrl(form, "Tables/@Element")];
  return `{${[...head, ...tableParts(form, table)].join(",")}}`;
}

export function tablesJson(form: JsonForm, tables: readonly string[]): string {
  const head = form.metadata === "none" ? "" : `${metadataUrl(form, "Tables")},`;
  return `{${head}"value":[${tables.map((table) => `{${tableParts(form, table).join(",")}}`).join(",")}]}`;
}

function tableParts(form: JsonForm, table: string): string[] {
  const name = `"TableName":${quoted(table)}`;
  if (form.metadata !== "full") return [name];
  const path = tablePath(table);
  return [
    `"odata.type":${quoted(`${form.account}.Tables`)}`,
    `"odata.id":${quoted(form.endpoint + path)}`,
    `"odata.editLink":${quoted(path)}`,
    name,
  ];
}
