/**
 * The things of an account, as they pass from a source (an account, or an archive) to a sink (an archive, or an account). A source gives steps
 * in one order; each has the position at which a later run goes on behind it.
 */

export interface StoredPolicy {
  readonly id: string;
  readonly permissions: string;
  /** Times in ISO 8601; empty: not set. */
  readonly startsOn: string;
  readonly expiresOn: string;
}

export type Texts = Readonly<Record<string, string>>;

/** A blob, snapshot or version: everything but its bytes. */
export interface BlobFacts {
  readonly container: string;
  readonly name: string;
  readonly type: "block" | "append" | "page";
  /** Number of bytes. */
  readonly length: number;
  /** Time of the snapshot; empty: none. */
  readonly snapshot: string;
  /** Time of the version; empty: the account keeps no versions, or it is a snapshot. */
  readonly version: string;
  /** True for the blob itself. */
  readonly current: boolean;
  /** contentType, contentEncoding, contentLanguage, contentDisposition, cacheControl, contentMd5 (in base64), where they are set. */
  readonly headers: Texts;
  readonly metadata: Texts;
  readonly tags: Texts;
  /** Access tier that was set; empty: none. */
  readonly tier: string;
  /** Sequence number of a page blob; 0 for others. */
  readonly sequenceNumber: number;
  /** True for an append blob that takes no more; absent for others. */
  readonly sealed?: boolean;
  readonly modifiedOn: string;
  readonly etag: string;
}

/** Bytes of a blob. What no chunk holds is zeros, which only page blobs have. */
export interface BlobChunk {
  /** Offset in the blob. */
  readonly at: number;
  readonly bytes: Uint8Array;
  /** In hexadecimal digits. */
  readonly sha256: string;
}

export interface BlobItem {
  readonly facts: BlobFacts;
  /** Chunks in the order of their offsets, from `from` on, which is the end of a chunk. May throw BlobChanged or LeftOut. */
  chunks(from?: number): AsyncGenerator<BlobChunk, void, undefined>;
  /** Throws if bytes that are here already are damaged; absent: the bytes are at a service. */
  verify?(): Promise<void>;
}

/** All of one name: snapshots and versions from the oldest on, the blob itself last. */
export interface BlobGroup {
  readonly kind: "blobs";
  readonly container: string;
  readonly name: string;
  readonly blobs: readonly BlobItem[];
  /** Looks at the source again after BlobChanged; undefined: the blob is gone. */
  again(): Promise<BlobGroup | undefined>;
}

export interface StoredMessage {
  readonly text: string;
  readonly insertedOn: string;
  readonly expiresOn: string;
  readonly dequeueCount: number;
}

export type StoredService = "blob" | "queue" | "table";

/** An entity as the REST API takes it. */
export type EntityJson = Readonly<Record<string, unknown>>;

export interface LeftOutItem {
  readonly kind: "leftOut";
  readonly what: string;
  readonly why: string;
  /** True: nobody asked for it, so that it is no failure. */
  readonly chosen: boolean;
}

/** Things that are a line of an archive as they come. */
export type LineItem =
  | { readonly kind: "service"; readonly service: StoredService; readonly properties: Readonly<Record<string, unknown>> }
  | {
      readonly kind: "container";
      readonly name: string;
      /** "blob" or "container"; empty: none. */
      readonly access: string;
      readonly metadata: Texts;
      readonly policies: readonly StoredPolicy[];
    }
  | { readonly kind: "table"; readonly name: string; readonly policies: readonly StoredPolicy[] }
  | { readonly kind: "queue"; readonly name: string; readonly metadata: Texts; readonly policies: readonly StoredPolicy[] }
  | LeftOutItem;

export type Item =
  | LineItem
  | BlobGroup
  | { readonly kind: "entities"; readonly table: string; readonly entities: readonly EntityJson[] }
  | { readonly kind: "messages"; readonly queue: string; readonly messages: readonly StoredMessage[] };

/** A position in a source, which only the source can read. */
export type SourcePosition = Readonly<Record<string, string | number>>;

export interface Step {
  readonly item: Item;
  /** A source that begins here gives what follows. */
  readonly next: SourcePosition;
  /** True: `next` has to be on disk before the source is asked for more. */
  readonly isDurable?: boolean;
}

/** The blob is no longer as it was listed. */
export class BlobChanged extends Error {}

/** Something can't be read or put back, and the rest goes on without it. The message says why. */
export class LeftOut extends Error {}

/** Number of things by kind, for people and for the archive. */
export const countedKinds = [
  "containers",
  "blobs",
  "snapshots",
  "versions",
  "bytes",
  "tables",
  "entities",
  "queues",
  "messages",
  "leftOut",
] as const;
export type ItemCounts = Record<(typeof countedKinds)[number], number>;

export const noCounts = (): ItemCounts => Object.fromEntries(countedKinds.map((kind) => [kind, 0])) as ItemCounts;

export const countBlob = (counts: ItemCounts, { current, snapshot }: BlobFacts): void => {
  if (current) counts.blobs++;
  else if (snapshot !== "") counts.snapshots++;
  else counts.versions++;
};

const words: Readonly<Record<keyof ItemCounts, string>> = {
  containers: "container",
  blobs: "blob",
  snapshots: "snapshot",
  versions: "older version",
  bytes: "byte",
  tables: "table",
  entities: "entity",
  queues: "queue",
  messages: "message",
  leftOut: "thing left out",
};
const plurals: Readonly<Record<string, string>> = { entity: "entities", "thing left out": "things left out" };

export const countsText = (counts: ItemCounts): string => {
  const shown = countedKinds.filter((kind) => counts[kind] > 0);
  const text = shown.map((kind) => {
    const word = words[kind];
    return `${counts[kind].toLocaleString("en-US")} ${counts[kind] === 1 ? word : (plurals[word] ?? `${word}s`)}`;
  });
  return text.length === 0 ? "nothing" : text.join(", ");
};
