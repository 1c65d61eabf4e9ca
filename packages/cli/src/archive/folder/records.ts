/**
 * Lines of an archive (docs/formats/archive.md), and what an archive must be before anything of it is used: it may come from anybody.
 *
 * Invariant: no name in an archive becomes part of a path of a file.
 */
import type { BlobFacts, EntityJson, LineItem } from "../items.ts";

export const archiveFormat = "stamp-archive";
export const archiveVersion = 1;

/** Longest line, in characters: an entity of 1 MiB with escapes. */
export const lineMax = 16 * 1024 * 1024;
/** Largest chunk of a blob, in bytes: a block of the largest blob. */
export const chunkMax = 100 * 1024 * 1024;
/** Most lines about one name, which are in memory together. */
export const groupLinesMax = 1_000_000;

export type ArchiveLine =
  | LineItem
  /** `item`: number among those of its name, from 1 on. */
  | ({ readonly kind: "blob"; readonly item: number } & BlobFacts)
  | DataLine
  | { readonly kind: "end" }
  | { readonly kind: "entity"; readonly table: string; readonly entity: EntityJson }
  | {
      readonly kind: "message";
      readonly queue: string;
      readonly text: string;
      readonly insertedOn: string;
      readonly expiresOn: string;
      readonly dequeueCount: number;
    };

/** Bytes of the blob of the line before. */
export interface DataLine {
  readonly kind: "data";
  /** Offset in the blob. */
  readonly at: number;
  readonly length: number;
  /** Offset in the file of bytes beside the file of lines. */
  readonly offset: number;
  readonly sha256: string;
}

/** Something in an archive is not as the format says. The message says where and what. */
export class DamagedArchive extends Error {}

type Fields = Readonly<Record<string, unknown>>;
type Check = (value: unknown) => boolean;

const text: Check = (value) => typeof value === "string";
const whole: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const flag: Check = (value) => typeof value === "boolean";
const object: Check = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const texts: Check = (value) => object(value) && Object.values(value as Fields).every(text);
const like =
  (shape: RegExp): Check =>
  (value) =>
    typeof value === "string" && shape.test(value);
const oneOf =
  (...words: string[]): Check =>
  (value) =>
    words.includes(value as string);
const policies: Check = (value) =>
  Array.isArray(value) &&
  value.every(
    (each: unknown) => object(each) && ["id", "permissions", "startsOn", "expiresOn"].every((name) => text((each as Fields)[name])),
  );

const container = like(/^(\$root|\$web|\$logs|[a-z0-9](-?[a-z0-9]){2,62})$/);
const queue = like(/^[a-z0-9](-?[a-z0-9]){2,62}$/);
const table = like(/^[A-Za-z][A-Za-z0-9]{2,62}$/);
const blobName: Check = (value) => typeof value === "string" && value !== "" && value.length <= 1_024 && value.isWellFormed();
const sha256 = like(/^[0-9a-f]{64}$/);
const entity: Check = (value) => object(value) && text((value as Fields).PartitionKey) && text((value as Fields).RowKey);

const checks: Readonly<Record<ArchiveLine["kind"], Readonly<Record<string, Check>>>> = {
  service: { service: oneOf("blob", "queue", "table"), properties: object },
  container: { name: container, access: oneOf("", "blob", "container"), metadata: texts, policies },
  blob: {
    item: whole,
    container,
    name: blobName,
    type: oneOf("block", "append", "page"),
    length: whole,
    snapshot: text,
    version: text,
    current: flag,
    headers: texts,
    metadata: texts,
    tags: texts,
    tier: text,
    sequenceNumber: whole,
    sealed: (value) => value === undefined || flag(value),
    modifiedOn: text,
    etag: text,
  },
  data: { at: whole, length: whole, offset: whole, sha256 },
  end: {},
  table: { name: table, policies },
  entity: { table, entity },
  queue: { name: queue, metadata: texts, policies },
  message: { queue, text, insertedOn: text, expiresOn: text, dequeueCount: whole },
  leftOut: { what: text, why: text, chosen: flag },
};

/** Reads a line. Throws DamagedArchive. */
export function lineOf(line: string, where: string): ArchiveLine {
  const value = jsonOf(line, where);
  const kind = value.kind as ArchiveLine["kind"];
  const known = typeof kind === "string" && Object.hasOwn(checks, kind) ? checks[kind] : undefined;
  if (known === undefined) throw new DamagedArchive(`${where}: ${JSON.stringify(kind)?.slice(0, 40)} is no kind of line of this format`);
  for (const [name, check] of Object.entries(known))
    if (!check(value[name]))
      throw new DamagedArchive(`${where}: ${name} of ${kind} is ${shown(value[name])}, which the format does not allow`);
  return value as unknown as ArchiveLine;
}

export function jsonOf(line: string, where: string): Fields {
  try {
    const value: unknown = JSON.parse(line);
    if (object(value)) return value as Fields;
  } catch {
    // Said below.
  }
  throw new DamagedArchive(`${where}: is no JSON object`);
}

const shown = (value: unknown): string => (value === undefined ? "not there" : JSON.stringify(value).slice(0, 80));
