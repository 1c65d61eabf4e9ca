/**
 * Values of entities ("Understanding the Table service data model") and their texts in URLs and JSON, to the last digit: a DateTime counts
 * 100 ns and has seven digits, an Int64 is a bigint, an integral Double is not an Int32.
 */
import { fromHex, toHex } from "@stamp/base";
import { civilMs, civilTime } from "../dates.ts";
import { decodePercent } from "../target.ts";

export interface EdmValue {
  readonly type: EdmType;
  readonly value: boolean | Uint8Array | string | bigint | number;
}

export interface EdmProperty extends EdmValue {
  readonly name: string;
}

export type EdmType = "bool" | "binary" | "string" | "DateTime" | "double" | "GUID" | "int32" | "int64";

/** Names of the types in OData. */
export const edmNames: Readonly<Record<EdmType, string>> = {
  bool: "Edm.Boolean",
  binary: "Edm.Binary",
  string: "Edm.String",
  DateTime: "Edm.DateTime",
  double: "Edm.Double",
  GUID: "Edm.Guid",
  int32: "Edm.Int32",
  int64: "Edm.Int64",
};
export const edmTypes: ReadonlyMap<string, EdmType> = new Map(Object.entries(edmNames).map(([type, name]) => [name, type as EdmType]));

const ticksPerMs = 10_000n;
const earliest = BigInt(civilMs(1601, 1, 1)) * ticksPerMs;
const latest = BigInt(civilMs(9999, 12, 31) + 86_400_000) * ticksPerMs - 1n;

/** True if the service can store this time. */
export const isDateTime = (ticks: bigint): boolean => ticks >= earliest && ticks <= latest;

const dateTime = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,7})\d{0,25})?)?(Z|[+-]\d{2}:\d{2})?$/;

/**
 * Parses a time as 100 ns since 1970-01-01 UTC; without a zone it is UTC. Digits behind the seventh are cut: clients with finer clocks send
 * them (Java: nine). "range": a time that exists and that the service does not keep.
 */
export function parseDateTime(text: string): bigint | "range" | undefined {
  const match = dateTime.exec(text);
  if (!match) return undefined;
  const [, year, month, day, hour, minute, second = "0", fraction = "", zone = "Z"] = match;
  const [h, m, s] = [Number(hour), Number(minute), Number(second)];
  const midnightMs = civilMs(Number(year), Number(month), Number(day));
  const back = civilTime(midnightMs);
  if (back.month !== Number(month) || back.day !== Number(day) || h > 23 || m > 59 || s > 59) return undefined;
  const offsetMinutes = zone === "Z" ? 0 : (zone.startsWith("-") ? -1 : 1) * (Number(zone.slice(1, 3)) * 60 + Number(zone.slice(4)));
  const ms = midnightMs + ((h * 60 + m - offsetMinutes) * 60 + s) * 1000;
  const ticks = BigInt(ms) * ticksPerMs + BigInt(fraction.padEnd(7, "0"));
  return isDateTime(ticks) ? ticks : "range";
}

const twoDigits: readonly string[] = Array.from({ length: 100 }, (_, value) => String(value).padStart(2, "0"));
/** Returns the text of 0 to 99 in two digits. */
const two = (value: number): string => twoDigits[value] as string;

/** Returns a text such as "2013-08-22T01:12:06.2608595Z"; zeros at the end of the fraction are left out, as the service does. */
export function formatDateTime(ticks: bigint): string {
  const ms = ticks / ticksPerMs;
  const rest = Number(ticks - ms * ticksPerMs);
  // Rounded down, also before 1970.
  const t = civilTime(rest < 0 ? Number(ms) - 1 : Number(ms));
  const fraction = t.millisecond * 10_000 + (rest < 0 ? rest + 10_000 : rest);
  const date = `${String(t.year).padStart(4, "0")}-${two(t.month)}-${two(t.day)}`;
  return `${date}T${two(t.hour)}:${two(t.minute)}:${two(t.second)}${fraction === 0 ? "" : fractionText(fraction)}Z`;
}

function fractionText(ticks: number): string {
  const text = `.${String(ticks).padStart(7, "0")}`;
  let end = text.length;
  while (text[end - 1] === "0") end--;
  return text.slice(0, end);
}

/** Returns `W/"datetime'…'"`, the time percent-encoded. */
export const entityEtag = (timestamp: bigint): string => etagOfTime(formatDateTime(timestamp));

/** `time` is what formatDateTime gave: of its characters only the colon is encoded. */
export const etagOfTime = (time: string): string => `W/"datetime'${time.replaceAll(":", "%3A")}'"`;

/** Returns the timestamp in an ETag of a client; undefined for an ETag that Stamp never gives. */
export function timestampOfEtag(etag: string): bigint | undefined {
  const match = /^W\/"datetime'([^'"]+)'"$/.exec(etag.trim());
  const text = match && decodePercent(match[1] as string);
  // Every ETag has seven digits at most: a longer one would be cut to that of another state.
  const ticks = text && !/\.\d{8}/.test(text) ? parseDateTime(text) : undefined;
  return typeof ticks === "bigint" ? ticks : undefined;
}

const guid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Returns 16 bytes in the order of the text. */
export const parseGuid = (text: string): Uint8Array | undefined => (guid.test(text) ? fromHex(text.replaceAll("-", "")) : undefined);

export function formatGuid(bytes: Uint8Array): string {
  const hex = toHex(bytes);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

export function parseInt32(text: string): number | undefined {
  if (!/^-?\d{1,11}$/.test(text)) return undefined;
  const value = Number(text);
  return value >= -(2 ** 31) && value < 2 ** 31 ? value | 0 : undefined;
}

export function parseInt64(text: string): bigint | undefined {
  if (!/^-?\d{1,20}$/.test(text)) return undefined;
  const value = BigInt(text);
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

const specialDoubles: ReadonlyMap<string, number> = new Map([
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
  ["INF", Number.POSITIVE_INFINITY],
  ["-INF", Number.NEGATIVE_INFINITY],
]);

/** Parses a double. A finite number that a double can't hold is undefined, not infinite. */
export function parseDouble(text: string): number | undefined {
  const special = specialDoubles.get(text);
  if (special !== undefined) return special;
  if (!/^-?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/** Returns a text in quotes for what JSON has no number for; else a number that is seen not to be an integer's. */
export function doubleJson(value: number): string {
  if (!Number.isFinite(value)) return `"${value}"`;
  const text = Object.is(value, -0) ? "-0" : String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}
