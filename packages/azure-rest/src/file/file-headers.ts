/**
 * Headers of files, directories and shares: SMB attributes and times, the length of a file, the range of a write, quota. What a request
 * leaves out is undefined; what of it stays as it is depends on the operation.
 */
import { parseIso } from "../dates.ts";
import { type ByteRange, byteRangeOf, type ContentProperties, type HttpHeaders, parseDigest, rangeHeaderOf } from "../headers.ts";
import { badHeader, type Parsed, parsed, rejected } from "../rest-error.ts";

export const fileBytesMax: number = 4 * 1024 ** 4;
export const putRangeBytesMax: number = 4 * 1024 ** 2;
export const shareQuotaGibMax = 102_400;
const permissionKeyCharactersMax = 128;

/** Names of Win32 attributes as the service writes them, in its order. */
const attributeNames = [
  "None",
  "ReadOnly",
  "Hidden",
  "System",
  "Directory",
  "Archive",
  "Temporary",
  "Offline",
  "NotContentIndexed",
  "NoScrubData",
] as const;
const attributesByName: ReadonlyMap<string, string> = new Map(attributeNames.map((name) => [name.toLowerCase(), name]));

/** Properties that a request sets. Times have 100 ns: ISO 8601 with seven digits. */
export interface SmbProperties {
  readonly attributes?: string;
  readonly creationTime?: string;
  readonly lastWriteTime?: string;
  readonly changeTime?: string;
  /** SDDL or binary text of a permission. */
  readonly permission?: string;
  readonly permissionKey?: string;
}

/** Values of time headers that name no time: they leave or take the time of the operation. */
export const now = "now";
export const preserve = "preserve";

const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,7})?Z$/;

/** Returns a time as the service writes it; undefined: none. */
export function fileTime(text: string): string | undefined {
  if (!time.test(text) || parseIso(`${text.slice(0, 19)}Z`) === undefined) return undefined;
  const [seconds = "", digits = ""] = text.slice(0, -1).split(".");
  return `${seconds}.${digits.padEnd(7, "0")}Z`;
}

function timeOf(headers: HttpHeaders, name: string): Parsed<string | undefined> {
  const text = headers[name];
  if (text === undefined) return parsed(undefined);
  const word = text.toLowerCase();
  if (word === now || word === preserve) return parsed(word);
  const value = fileTime(text);
  return value === undefined ? badHeader(name, text, "A time as 2026-11-29T12:00:00.0000000Z, now, or preserve.") : parsed(value);
}

function attributesOf(text: string | undefined, isDirectory: boolean): Parsed<string | undefined> {
  if (text === undefined || text.toLowerCase() === preserve) return parsed(undefined);
  const found = new Set<string>();
  for (const item of text.split("|")) {
    const known = attributesByName.get(item.trim().toLowerCase());
    if (known === undefined || (known === "Directory" && !isDirectory)) {
      return badHeader("x-ms-file-attributes", text, `${item.trim()} is no attribute of a ${isDirectory ? "directory" : "file"}.`);
    }
    found.add(known);
  }
  if (found.size > 1 && found.has("None") && !isDirectory) return badHeader("x-ms-file-attributes", text, "None stands alone.");
  found.delete("None");
  if (isDirectory) found.add("Directory");
  return parsed(found.size === 0 ? "None" : attributeNames.filter((name) => found.has(name)).join(" | "));
}

/** `preserve`, or a header that is absent, is undefined; a time of `now` stays the word. */
export function parseSmbProperties(headers: HttpHeaders, isDirectory: boolean): Parsed<SmbProperties> {
  const attributes = attributesOf(headers["x-ms-file-attributes"], isDirectory);
  if (!attributes.ok) return attributes;
  const properties: { -readonly [Field in keyof SmbProperties]?: string } = {};
  if (attributes.value !== undefined) properties.attributes = attributes.value;
  for (const [field, name] of [
    ["creationTime", "x-ms-file-creation-time"],
    ["lastWriteTime", "x-ms-file-last-write-time"],
    ["changeTime", "x-ms-file-change-time"],
  ] as const) {
    const value = timeOf(headers, name);
    if (!value.ok) return value;
    if (value.value !== undefined && value.value !== preserve) properties[field] = value.value;
  }
  const permission = headers["x-ms-file-permission"];
  const key = headers["x-ms-file-permission-key"];
  if (permission !== undefined && key !== undefined) {
    return badHeader("x-ms-file-permission-key", key, "A request has a permission or the key of one, not both.");
  }
  if (key !== undefined && key.toLowerCase() !== preserve) {
    if (key.length > permissionKeyCharactersMax || !/^[\x21-\x7e]+$/.test(key)) return badHeader("x-ms-file-permission-key", key);
    properties.permissionKey = key;
  }
  const said = permission?.toLowerCase();
  if (permission !== undefined && said !== preserve && said !== "inherit") properties.permission = permission;
  return parsed(properties);
}

/** True if a write of content leaves the time of the last write as it is. */
export function parseKeepsWriteTime(headers: HttpHeaders): Parsed<boolean> {
  const text = headers["x-ms-file-last-write-time"];
  const word = text?.toLowerCase() ?? now;
  return word === now || word === preserve
    ? parsed(word === preserve)
    : badHeader("x-ms-file-last-write-time", text ?? "", "now or preserve.");
}

export function parseFileLength(headers: HttpHeaders): Parsed<number | undefined> {
  const text = headers["x-ms-content-length"];
  if (text === undefined) return parsed(undefined);
  const length = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(length)) return badHeader("x-ms-content-length", text);
  return length <= fileBytesMax ? parsed(length) : badHeader("x-ms-content-length", text, "A file has 4 TiB at most.");
}

export type FileWrite = "update" | "clear";

/** Range of a write: both ends are there. */
export function parseWriteRange(headers: HttpHeaders): Parsed<Required<ByteRange>> {
  const name = rangeHeaderOf(headers);
  const text = headers[name];
  if (text === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-range" });
  const range = byteRangeOf(text);
  if (range?.endBytes === undefined) return badHeader(name, text, "A range as bytes=0-511.");
  return parsed({ startBytes: range.startBytes, endBytes: range.endBytes });
}

export function parseFileWrite(headers: HttpHeaders): Parsed<FileWrite> {
  const text = headers["x-ms-write"];
  if (text === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-write" });
  const word = text.toLowerCase();
  return word === "update" || word === "clear" ? parsed(word) : badHeader("x-ms-write", text, "update or clear.");
}

/** Undefined: the request names none. */
export function parseQuota(headers: HttpHeaders): Parsed<number | undefined> {
  const text = headers["x-ms-share-quota"];
  if (text === undefined) return parsed(undefined);
  const gib = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  return gib >= 1 && gib <= shareQuotaGibMax ? parsed(gib) : badHeader("x-ms-share-quota", text, `1 to ${shareQuotaGibMax} GiB.`);
}

const tiers: ReadonlyMap<string, string> = new Map(
  ["TransactionOptimized", "Hot", "Cool", "Premium"].map((name) => [name.toLowerCase(), name]),
);

export function parseShareTier(headers: HttpHeaders): Parsed<string | undefined> {
  const text = headers["x-ms-access-tier"];
  if (text === undefined) return parsed(undefined);
  const tier = tiers.get(text.toLowerCase());
  return tier === undefined ? badHeader("x-ms-access-tier", text, `One of ${[...tiers.values()].join(", ")}.`) : parsed(tier);
}

/** Content headers of Create File and Set File Properties; undefined: the request has none of them. */
export function parseFileContent(headers: HttpHeaders): Parsed<ContentProperties | undefined> {
  const of = (name: string): string | undefined => headers[`x-ms-${name}`];
  const md5 = parseDigest(headers, "x-ms-content-md5", 16);
  if (!md5.ok) return md5;
  const names = ["content-type", "content-encoding", "content-language", "cache-control", "content-disposition"];
  if (md5.value === undefined && names.every((name) => of(name) === undefined)) return parsed(undefined);
  return parsed({
    contentType: of("content-type") ?? "",
    contentEncoding: of("content-encoding") ?? "",
    contentLanguage: of("content-language") ?? "",
    cacheControl: of("cache-control") ?? "",
    contentDisposition: of("content-disposition") ?? "",
    contentMd5: md5.value ?? new Uint8Array(0),
  });
}
