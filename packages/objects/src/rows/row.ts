/**
 * The value of a row of an object table: properties by id, each with its type. Ids and types are for ever (schemas.ts); a reader skips
 * ids it does not know, so that a newer writer's rows stay readable. Format: docs/formats/row.md.
 *
 *   version u8 | count varint | count × ( id varint | type u8 | length varint | value )      ids ascend
 *
 * The version is the least one whose readers take the row for what it is: 2 for one with encrypted places, else the latest of which one of its
 * properties is `since`, else 1. So a release that knows version 1 refuses encrypted bytes instead of serving them, and one that knows version 2
 * does not write a row anew without the name of its encryption scope; one that knows version 3 takes no sealed account for one without keys,
 * and one that knows version 4 no copy of an account for its primary.
 *
 * Checksums belong to the layers below (commit records, checkpoint blocks). A truncated row is always refused, and so is whatever is
 * not of this form; a flipped bit inside a value is caught below.
 */
import { assert, type Failed, fromUtf8, newerFormat, type Outcome, ok, refused } from "@stamp/base";
import { type Place, readPlaces, spanOf, writePlaces } from "./places.ts";
import { RepeatedTexts } from "./repeated-texts.ts";
import { Scratch, Slabs } from "./slabs.ts";
import { ByteReader, ByteWriter, DecodeError } from "./varint.ts";

export type { Cipher, CipherUnits, Place } from "./places.ts";

/** A name, type, value triple of a DictionaryType. */
export interface DictionaryEntry {
  readonly name: string;
  readonly type: ScalarType;
  readonly value: ScalarTypes[ScalarType];
}

interface ScalarTypes {
  bool: boolean;
  binary: Uint8Array;
  string: string;
  /** Counted in 100 ns since 1970-01-01 UTC, so that the seven digits of a table entity's DateTime fit. */
  DateTime: bigint;
  double: number;
  /** GUID, 16 bytes. */
  GUID: Uint8Array;
  int32: number;
  int64: bigint;
}

export interface PropertyTypes extends ScalarTypes {
  DictionaryType: readonly DictionaryEntry[];
  BlobType: readonly Place[];
}

export type ScalarType = keyof ScalarTypes;
export type PropertyType = keyof PropertyTypes;

export interface Property<T extends PropertyType = PropertyType> {
  readonly id: number;
  readonly type: T;
  /** Version of rows from which on they may have the property; readers of earlier versions must not skip it. Default 1. */
  readonly since?: number;
}

export type Schema = Readonly<Record<string, Property>>;
export type RowOf<S extends Schema> = { readonly [K in keyof S]?: PropertyTypes[S[K]["type"]] | undefined };

const firstVersion = 1;
/** The first that has places with a cipher. */
const cipherVersion = 2;
/** The first that has places with units. Versions between: a row that names an encryption scope, sealed secrets and roles of accounts. */
const unitsVersion = 6;
const newestVersion = unitsVersion;

/** Returns the version of what `encodeRow` made. */
export const versionOfRow = (bytes: Uint8Array): number => bytes[0] ?? firstVersion;

const typeNames = ["bool", "binary", "string", "DateTime", "double", "GUID", "int32", "int64", "DictionaryType", "BlobType"] as const;
/** Number of types, from the first on, that are scalars. */
const scalarTypes = 8;
const typeCodes = new Map<PropertyType, number>(typeNames.map((name, index) => [name, index + 1]));
/** Returns the type with this code; undefined if it is none that a dictionary may hold. */
export const scalarTypeOf = (code: number): ScalarType | undefined =>
  code > scalarTypes ? undefined : (typeNames[code - 1] as ScalarType | undefined);

/** Returns the code of a type in rows; 1 and more. */
export const typeCodeOf = (type: PropertyType): number => typeCodes.get(type) as number;

// Rows are encoded by the thousand each second and live until their commit: a few buffers for all of them instead of some for each.
const rowScratch = new Scratch();
/** Scratch for a value in a row that is itself a list. */
const valueScratch = new Scratch();
const slabs = new Slabs();
/** Names in dictionaries: those of one table's entities are mostly the same. */
const repeated = new RepeatedTexts();

/** Returns the bytes of extents that a row refers to, whatever its schema: the spans of its properties of BlobType. Refused with `damaged`. */
export function placesOfRow(bytes: Uint8Array): Outcome<readonly Place[]> {
  try {
    const reader = new ByteReader(bytes);
    const version = reader.byte();
    if (!isKnownVersion(version)) return otherVersion(version);
    const places: Place[] = [];
    for (let count = reader.varint(); count > 0; count--) {
      reader.varint();
      const type = reader.byte();
      const value = reader.sized();
      if (type === typeCodes.get("BlobType")) places.push(...decodePlaces(value, version).map(spanOf));
    }
    return ok(places);
  } catch (error) {
    if (error instanceof DecodeError) return damagedRow(error.message);
    throw error;
  }
}

/**
 * Returns the row with its bytes elsewhere; all else is as it was, also properties that are not known here. `placeFor` takes a span
 * (`placesOfRow`) and returns where the same bytes lie. A place keeps its cipher.
 */
export function withPlaces(bytes: Uint8Array, placeFor: (place: Place) => Place): Outcome<Uint8Array> {
  try {
    const reader = new ByteReader(bytes);
    const version = reader.byte();
    if (!isKnownVersion(version)) return otherVersion(version);
    const out = new ByteWriter(bytes.length + 64);
    out.byte(version);
    const count = reader.varint();
    out.varint(count);
    let changed = false;
    for (let i = 0; i < count; i++) {
      out.varint(reader.varint());
      const type = reader.byte();
      out.byte(type);
      const value = reader.sized();
      if (type !== typeCodes.get("BlobType")) {
        out.sized(value);
        continue;
      }
      const places = decodePlaces(value, version);
      const mapped = places.map((place) => movedTo(place, placeFor));
      if (mapped.every((place, at) => place === places[at])) out.sized(value);
      else {
        changed = true;
        out.sized(encodePlaces(mapped));
      }
    }
    if (reader.left !== 0) return damagedRow("bytes after the last property");
    return ok(changed ? out.finish() : bytes);
  } catch (error) {
    if (error instanceof DecodeError) return damagedRow(error.message);
    throw error;
  }
}

function movedTo(place: Place, placeFor: (span: Place) => Place): Place {
  const span = spanOf(place);
  const to = placeFor(span);
  if (to === span) return place;
  assert(to.lengthBytes === span.lengthBytes, "places of the same length");
  return { ...place, extentId: to.extentId, offsetBytes: to.offsetBytes + (place.offsetBytes - span.offsetBytes) };
}

/** Properties that are undefined are left out. The answer is a part of a larger buffer: a row that is kept for long is copied first. */
export function encodeRow<S extends Schema>(schema: S, row: RowOf<S>): Uint8Array<ArrayBuffer> {
  const held = byId(schema).filter(([name]) => row[name] !== undefined);
  const out = rowScratch.cleared();
  out.byte(held.reduce((version, [name, property]) => Math.max(version, versionOf(property, row[name])), firstVersion));
  out.varint(held.length);
  for (const [name, { id, type }] of held) {
    out.varint(id);
    out.byte(typeCodes.get(type) as number);
    writeValue(out, type, row[name] as PropertyTypes[PropertyType]);
  }
  return slabs.copy(out.written);
}

/** Returns the first version of rows that have this property with this value. */
function versionOf({ type, since = firstVersion }: Property, value: unknown): number {
  if (type !== "BlobType") return since;
  const places = value as readonly Place[];
  if (places.some(({ cipher }) => cipher?.units !== undefined)) return unitsVersion;
  return places.some(({ cipher }) => cipher !== undefined) ? cipherVersion : since;
}

/** Writes the length of a value, and the value. */
function writeValue(out: ByteWriter, type: PropertyType, value: PropertyTypes[PropertyType]): void {
  switch (type) {
    case "bool":
      out.byte(1);
      out.byte(value ? 1 : 0);
      return;
    case "binary":
    case "GUID":
      assert(value instanceof Uint8Array && (type === "binary" || value.length === 16), `not a ${type}`);
      out.sized(value);
      return;
    case "string":
      out.text(value as string);
      return;
    case "DateTime":
    case "int64":
      out.byte(8);
      out.int64(value as bigint);
      return;
    case "double":
      out.byte(8);
      out.float64(value as number);
      return;
    case "int32":
      out.byte(4);
      out.int32(value as number);
      return;
    case "DictionaryType":
      writeDictionary(out, value as readonly DictionaryEntry[]);
      return;
    case "BlobType":
      out.sized(encodePlaces(value as readonly Place[]));
  }
}

function writeDictionary(out: ByteWriter, entries: readonly DictionaryEntry[]): void {
  const inner = valueScratch.cleared();
  inner.varint(entries.length);
  for (const { name, type, value } of entries) {
    inner.text(name);
    inner.byte(typeCodes.get(type) as number);
    writeValue(inner, type, value);
  }
  out.sized(inner.written);
}

/** Returns a view, good until the next value is encoded. */
function encodePlaces(places: readonly Place[]): Uint8Array {
  const out = valueScratch.cleared();
  writePlaces(out, places);
  return out.written;
}

export const isKnownVersion = (version: number): boolean => version >= firstVersion && version <= newestVersion;

/** Returns the failure for another version of a row. What holds rows has checksums, so a higher version is a newer format. */
export const otherVersion = (version: number): Failed =>
  version > newestVersion ? newerFormat("a row", { format: "row", version }) : damagedRow(`version ${version}`);

export const damagedRow = (what: string): Failed => refused("dataLoss", "damaged", `row: ${what}`);

/** Decodes a row; binary values are views of `bytes`. Refuses with `damaged` what encodeRow never makes, and a known id with another type. */
export function decodeRow<S extends Schema>(schema: S, bytes: Uint8Array): Outcome<RowOf<S>> {
  const [version = 0] = bytes;
  if (version > newestVersion) return otherVersion(version);
  try {
    return ok(readRow(schema, new ByteReader(bytes)));
  } catch (error) {
    if (error instanceof DecodeError || error instanceof TypeError) return damagedRow(error.message);
    throw error;
  }
}

function readRow<S extends Schema>(schema: S, reader: ByteReader): RowOf<S> {
  const version = reader.byte();
  if (!isKnownVersion(version)) throw new DecodeError(`unknown version ${version}`);
  const names = namesById(schema);
  const row: Record<string, unknown> = {};
  const count = reader.varint();
  let lastId = -1;
  for (let i = 0; i < count; i++) {
    const id = reader.varint();
    if (id <= lastId) throw new DecodeError("ids do not ascend");
    lastId = id;
    const code = reader.byte();
    const value = reader.sized();
    const name = names.get(id);
    if (name === undefined) continue;
    const property = schema[name] as Property;
    if (typeNames[code - 1] !== property.type) throw new DecodeError(`property ${id} has type ${code}, not ${property.type}`);
    row[name] = decodeValue(property.type, value, version);
  }
  if (reader.left !== 0) throw new DecodeError("bytes after the last property");
  return row as RowOf<S>;
}

const sorted = new WeakMap<Schema, readonly (readonly [string, Property])[]>();

function byId(schema: Schema): readonly (readonly [string, Property])[] {
  let entries = sorted.get(schema);
  if (!entries) {
    entries = Object.entries(schema).sort(([, a], [, b]) => a.id - b.id);
    sorted.set(schema, entries);
  }
  return entries;
}

const nameMaps = new WeakMap<Schema, Map<number, string>>();

function namesById(schema: Schema): Map<number, string> {
  let names = nameMaps.get(schema);
  if (!names) {
    names = new Map(Object.entries(schema).map(([name, property]) => [property.id, name]));
    nameMaps.set(schema, names);
  }
  return names;
}

function decodeValue(type: PropertyType, bytes: Uint8Array, version: number): PropertyTypes[PropertyType] {
  switch (type) {
    case "bool": {
      const byte = sizedView(bytes, 1).getUint8(0);
      if (byte > 1) throw new DecodeError("a bool is 0 or 1");
      return byte === 1;
    }
    case "binary":
      return bytes;
    case "GUID":
      sizedView(bytes, 16);
      return bytes;
    case "string":
      return fromUtf8(bytes);
    case "DateTime":
    case "int64":
      return sizedView(bytes, 8).getBigInt64(0);
    case "double":
      return sizedView(bytes, 8).getFloat64(0);
    case "int32":
      return sizedView(bytes, 4).getInt32(0);
    case "DictionaryType":
      return decodeDictionary(bytes, version);
    case "BlobType":
      return decodePlaces(bytes, version);
  }
}

function sizedView(bytes: Uint8Array, length: number): DataView {
  if (bytes.length !== length) throw new DecodeError(`a value of ${bytes.length} bytes where ${length} are due`);
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function decodeDictionary(bytes: Uint8Array, version: number): DictionaryEntry[] {
  const reader = new ByteReader(bytes);
  const count = reader.varint();
  const entries: DictionaryEntry[] = [];
  for (let i = 0; i < count; i++) {
    const nameBytes = reader.sized();
    const name = repeated.get(nameBytes, 0, nameBytes.length);
    const type = typeNames[reader.byte() - 1];
    if (type === undefined || type === "DictionaryType" || type === "BlobType") throw new DecodeError("a dictionary holds scalars only");
    entries.push({ name, type, value: decodeValue(type, reader.sized(), version) as ScalarTypes[ScalarType] });
  }
  if (reader.left !== 0) throw new DecodeError("bytes after the last entry");
  return entries;
}

const decodePlaces = (bytes: Uint8Array, version: number): Place[] =>
  readPlaces(new ByteReader(bytes), { ciphers: version >= cipherVersion, units: version >= unitsVersion });

const ticksPerMs = 10_000n;

/** 9999-12-31 23:59:59.999 UTC, the last moment that a date of the service can name; an int64 holds later ones up to the year 31,197. */
export const timeMsMax = 253_402_300_799_999;

export const dateTimeOfMs = (ms: number): bigint => BigInt(Math.floor(ms)) * ticksPerMs;
/** Returns the whole milliseconds. */
export const msOfDateTime = (ticks: bigint): number => Number(ticks / ticksPerMs);
