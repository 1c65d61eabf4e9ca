/**
 * Page blobs. Pages lie in rows of 256 KiB (chunks) that name where the bytes are; a chunk of zeros has no row, so that an empty blob of
 * 8 TiB is one head row and a write touches the head and at most 17 chunks.
 *
 * Layers: a page row's key ends with the layer that it was written in; of a chunk, the newest one up to the reader's own layer counts.
 * The head says which layer is written. Taking a snapshot keeps the head with its layer and gives the blob a new one: so it copies no
 * page, and what changed since is what has rows in later layers.
 */
import { present } from "@stamp/base";
import { checkReadConditions } from "../../conditions.ts";
import { type ServiceError, serviceError } from "../../errors.ts";
import { headKey, type Metadata, pageKey, pagesFrom } from "../../object-keys.ts";
import type { Body, OperationValue, SequenceNumberConditions, SetPageBlobProperties } from "../../operation.ts";
import {
  answer,
  type Decision,
  errorAnswer,
  fail,
  intact,
  type Plan,
  type PlanContext,
  type RowWrite,
  refuse,
  scanRows,
} from "../../plan.ts";
import type { PageRange } from "../../results.ts";
import { decodeKey } from "../../rows/key.ts";
import type { Place } from "../../rows/row.ts";
import { checkKey, checkKeyIfGiven, checkKeyOrScope, unusableUnderKey } from "../encryption.ts";
import { checkLeaseOfRead } from "../protect/leases.ts";
import { changedHead, checkPlaces, checkWrite, findKept, findState, readBlob, sizeOfBody } from "../state/blob-state.ts";
import { clipPlaces, placesPerBlockMax } from "../state/content.ts";
import { blobOf, encodeHead, type HeadState } from "../state/head-row.ts";
import {
  type ChangedRange,
  chunkBytes,
  clipRuns,
  decodePages,
  differences,
  encodePages,
  isOfPages,
  overlay,
  type PageRun,
  pageBytes,
} from "./page-runs.ts";

export const pageBlobBytesMax: number = 8 * 1024 ** 4;
export const pageWriteBytesMax: number = 4 * 1024 * 1024;
export const pageRangesMax = 10_000;
export const sequenceNumberMax: number = Number.MAX_SAFE_INTEGER;
/** Number of the extent whose places stand for zeros. */
export const zeroExtentId = 0;
const zeroPlaceBytesMax = 1024 ** 3;
/** Page rows that one commit of a clear or a resize changes. */
const clearedRowsMax = 512;
const scanLimits = { rowsMax: 256, bytesMax: 1024 * 1024 } as const;

/** Chunk of pages that has rows. */
export interface Chunk {
  readonly index: number;
  /** Runs that the reader's layer sees. */
  readonly runs: readonly PageRun[];
  /** True if a layer before the reader's has a row of the chunk. */
  readonly layered: boolean;
  /** True if the reader's own layer has a row of the chunk. */
  readonly own: boolean;
  /** Runs that `beforeLayer` saw. */
  readonly before: readonly PageRun[];
}

export interface Chunks {
  readonly chunks: readonly Chunk[];
  /** Key to go on with; undefined: no more rows up to the wanted end. */
  readonly next: number | undefined;
}

interface StoredPages {
  readonly index: number;
  readonly layer: number;
  readonly value: Uint8Array;
}

/** Returns some of the chunks with rows, from `first` to before `end`, in order. */
export function* readChunks(prefix: Uint8Array, head: HeadState, first: number, end: number, beforeLayer = -1): Plan<Chunks> {
  const high = pagesFrom(prefix, head.generation, end);
  const rows: StoredPages[] = [];
  for (let low = pagesFrom(prefix, head.generation, first), more = true; more; ) {
    const page = yield* scanRows(low, high, scanLimits);
    for (const row of page.rows) {
      const [index, layer] = present(intact(decodeKey(row.key))[2], "an object name").slice(-2);
      rows.push({ index: Number(index), layer: Number(layer), value: row.value });
    }
    const last = rows.at(-1);
    more = page.more && last !== undefined;
    if (!more || !last) break;
    // The last chunk may have rows behind this page: it is left for the next one, when it is not the only one.
    const whole = rows.filter((row) => row.index !== last.index);
    if (whole.length > 0) return { chunks: chunksOfRows(whole, head.pageLayer, beforeLayer), next: last.index };
    low = pageKey(prefix, head.generation, last.index, last.layer + 1);
  }
  return { chunks: chunksOfRows(rows, head.pageLayer, beforeLayer), next: undefined };
}

function chunksOfRows(rows: readonly StoredPages[], layer: number, beforeLayer: number): Chunk[] {
  const chunks: Chunk[] = [];
  for (let at = 0; at < rows.length; ) {
    const { index } = rows[at] as StoredPages;
    let end = at;
    while (rows[end]?.index === index) end++;
    const visible = rows.slice(at, end).filter((row) => row.layer <= layer);
    at = end;
    const newest = visible.at(-1);
    if (!newest) continue;
    const before = visible.filter((row) => row.layer <= beforeLayer).at(-1);
    chunks.push({
      index,
      runs: intact(decodePages(newest.value)),
      layered: visible.some((row) => row.layer < layer),
      own: newest.layer === layer,
      before: before ? intact(decodePages(before.value)) : [],
    });
  }
  return chunks;
}

const chunkOf = (offsetBytes: number): number => Math.floor(offsetBytes / chunkBytes);
const chunkAfter = (endBytes: number): number => Math.ceil(endBytes / chunkBytes);

function checkSequence(conditions: SequenceNumberConditions, head: HeadState): ServiceError | undefined {
  const { lessOrEqual, less, equal } = conditions;
  const met =
    (lessOrEqual === undefined || head.sequenceNumber <= lessOrEqual) &&
    (less === undefined || head.sequenceNumber < less) &&
    (equal === undefined || head.sequenceNumber === equal);
  return met ? undefined : serviceError("SequenceNumberConditionNotMet");
}

type Ranged = OperationValue<"putPages"> | OperationValue<"clearPages">;

/** Bound of the places in a chunk: files of shares are written at any byte. */
const chunkPlacesMax = 1_024;

/** True if the Files service's attributes, an entry of the metadata, make the file read-only. */
const isReadOnly = ({ metadata }: HeadState): boolean => metadata[":attributes"]?.includes("ReadOnly") === true;
const takesBytes = ({ policy }: PlanContext): boolean => policy.hierarchical === true;
const placesOf = (runs: readonly PageRun[]): Place[] => runs.flatMap(({ places }) => places);
/** True if these are the same bytes of the same extents. */
const areSame = (places: readonly Place[], others: readonly Place[]): boolean =>
  places.length === others.length && places.every((place, at) => isSame(place, others[at]));
const isSame = (place: Place, other: Place | undefined): boolean =>
  place.extentId === other?.extentId && place.offsetBytes === other.offsetBytes && place.lengthBytes === other.lengthBytes;

/** Returns the head after a write that may set entries of the metadata. */
function writtenHead(
  context: PlanContext,
  head: HeadState,
  { setMetadata = {} }: { readonly setMetadata?: Metadata | undefined },
): HeadState {
  return { ...changedHead(context, head), metadata: { ...head.metadata, ...setMetadata } };
}

/** Checks the range and conditions of a write of pages; undefined: the write may go on. */
function checkRanged(context: PlanContext, value: Ranged, head: HeadState, endBytes: number): Decision | undefined {
  const check = "body" in value ? checkKey : checkKeyOrScope;
  const error = checkWrite(context, value.conditions, head, false) ?? check(value.conditions, head);
  if (error) return errorAnswer(error);
  if (head.blobType !== "PageBlob") return fail("InvalidBlobType");
  if (isReadOnly(head)) return fail("ReadOnlyAttribute");
  const sequence = checkSequence(value.sequence, head);
  if (sequence) return errorAnswer(sequence);
  return endBytes > head.contentLengthBytes || value.startBytes >= endBytes ? fail("InvalidPageRange") : undefined;
}

export function* putPages(value: OperationValue<"putPages">, context: PlanContext): Plan {
  const { name, body, startBytes, replaces = [] } = value;
  const bad = unusableBody(value, takesBytes(context)) ?? unusableUnderKey(value.conditions, body);
  if (bad !== undefined) return refuse("badRequest", bad);
  const { prefix, head } = yield* readBlob(context, name);
  if (!head) return fail("BlobNotFound");
  const endBytes = startBytes + sizeOfBody(body);
  const refused = checkRanged(context, value, head, endBytes);
  if (refused) return refused;
  const refusal = checkPlaces(context, body);
  if (refusal) return refuse(refusal.reason, refusal.message);
  const there = new Map<number, readonly PageRun[]>();
  for (let first: number | undefined = chunkOf(startBytes); first !== undefined; ) {
    const { chunks, next }: Chunks = yield* readChunks(prefix, head, first, chunkAfter(endBytes));
    for (const chunk of chunks) there.set(chunk.index, chunk.runs);
    first = next;
  }
  const writes: RowWrite[] = [];
  const replaced: Place[] = [];
  for (let index = chunkOf(startBytes); index < chunkAfter(endBytes); index++) {
    const base = index * chunkBytes;
    const [from, to] = [Math.max(startBytes, base), Math.min(endBytes, base + chunkBytes)];
    const held = there.get(index) ?? [];
    replaced.push(...placesOf(clipRuns(held, from - base, to - base)));
    const own = clipPlaces(body.places, from - startBytes, to - startBytes);
    const runs = overlay(held, from - base, to - base, own);
    // The front-end writes the chunk anew as one piece, then asks again.
    if (takesBytes(context) && placesOf(runs).length > Math.max(chunkPlacesMax, own.length)) return fail("BlockCountExceedsLimit");
    writes.push({ kind: "put", key: pageKey(prefix, head.generation, index, head.pageLayer), value: encodePages(runs) });
  }
  if (replaces.length > 0 && !areSame(replaces, replaced)) return fail("ConditionNotMet");
  const next = writtenHead(context, head, value);
  return answer({ case: "blob", value: blobOf(context, name.blob, next) }, [
    ...writes,
    { kind: "put", key: headKey(prefix), value: encodeHead(next) },
  ]);
}

/** Returns why the pages can't be written; undefined: they can. */
function unusableBody({ body, startBytes }: { readonly body: Body; readonly startBytes: number }, takesBytes: boolean): string | undefined {
  if (body.inline.length > 0) return "the bytes of pages are put into the blob data stream first";
  if (body.places.length > placesPerBlockMax) return `at most ${placesPerBlockMax} places`;
  const sizeBytes = sizeOfBody(body);
  const isOfWholePages = startBytes % pageBytes === 0 && sizeBytes % pageBytes === 0;
  if (!isOfWholePages && !takesBytes) return `pages are of ${pageBytes} bytes`;
  if (!body.places.every(isOfPages)) return `pages have tags for each ${pageBytes} bytes`;
  return sizeBytes > pageWriteBytesMax ? `at most ${pageWriteBytesMax} bytes in one write` : undefined;
}

export function* clearPages(value: OperationValue<"clearPages">, context: PlanContext): Plan {
  const { name, startBytes, endBytes } = value;
  const isOfWholePages = startBytes % pageBytes === 0 && endBytes % pageBytes === 0;
  if (!isOfWholePages && !takesBytes(context)) return refuse("badRequest", `pages are of ${pageBytes} bytes`);
  const { prefix, head } = yield* readBlob(context, name);
  if (!head) return fail("BlobNotFound");
  const refused = checkRanged(context, value, head, endBytes);
  if (refused) return refused;
  const { writes, nextBytes } = yield* cleared(prefix, head, startBytes, endBytes);
  const next = writtenHead(context, head, value);
  return answer({ case: "cleared", value: { blob: blobOf(context, name.blob, next), nextBytes } }, [
    ...writes,
    { kind: "put", key: headKey(prefix), value: encodeHead(next) },
  ]);
}

/** Plans one step: its writes, and the offset of the next one (0: nothing is left). */
function* cleared(
  prefix: Uint8Array,
  head: HeadState,
  startBytes: number,
  endBytes: number,
): Plan<{ readonly writes: RowWrite[]; readonly nextBytes: number }> {
  const writes: RowWrite[] = [];
  for (let first: number | undefined = chunkOf(startBytes); first !== undefined; ) {
    const { chunks, next }: Chunks = yield* readChunks(prefix, head, first, chunkAfter(endBytes));
    for (const chunk of chunks) {
      const base = chunk.index * chunkBytes;
      const from = Math.max(startBytes - base, 0);
      const to = Math.min(endBytes - base, chunkBytes);
      if (clipRuns(chunk.runs, from, to).length === 0) continue;
      if (writes.length === clearedRowsMax) return { writes, nextBytes: Math.max(base, startBytes) };
      const runs = overlay(chunk.runs, from, to, undefined);
      const key = pageKey(prefix, head.generation, chunk.index, head.pageLayer);
      // Under a row of an earlier layer the zeros must be said.
      if (runs.length > 0 || chunk.layered) writes.push({ kind: "put", key, value: encodePages(runs) });
      else if (chunk.own) writes.push({ kind: "delete", key });
    }
    first = next;
  }
  return { writes, nextBytes: 0 };
}

export function* setPageBlobProperties(value: SetPageBlobProperties, context: PlanContext): Plan {
  const { name, conditions, contentLengthBytes } = value;
  const { prefix, head } = yield* readBlob(context, name);
  if (!head) return fail("BlobNotFound");
  const error = checkWrite(context, conditions, head, false) ?? checkKeyIfGiven(conditions, head);
  if (error) return errorAnswer(error);
  if (head.blobType !== "PageBlob") return fail("InvalidBlobType");
  const sequenceNumber = nextSequenceNumber(value, head);
  if (sequenceNumber === undefined) return fail("SequenceNumberIncrementTooLarge");
  const length = contentLengthBytes ?? head.contentLengthBytes;
  // Pages behind the new end must not reappear when the blob grows.
  const dropped =
    length < head.contentLengthBytes ? yield* cleared(prefix, head, length, head.contentLengthBytes) : { writes: [], nextBytes: 0 };
  const next: HeadState =
    dropped.nextBytes > 0
      ? changedHead(context, head)
      : { ...writtenHead(context, head, value), headers: value.headers ?? head.headers, contentLengthBytes: length, sequenceNumber };
  return answer({ case: "cleared", value: { blob: blobOf(context, name.blob, next), nextBytes: dropped.nextBytes } }, [
    ...dropped.writes,
    { kind: "put", key: headKey(prefix), value: encodeHead(next) },
  ]);
}

/** Returns the new sequence number; undefined if it would be too large. */
function nextSequenceNumber({ action, sequenceNumber }: SetPageBlobProperties, head: HeadState): number | undefined {
  switch (action) {
    case undefined:
      return head.sequenceNumber;
    case "max":
      return Math.max(head.sequenceNumber, sequenceNumber);
    case "update":
      return sequenceNumber;
    case "increment":
      return head.sequenceNumber < sequenceNumberMax ? head.sequenceNumber + 1 : undefined;
  }
}

/** Returns where the bytes from `start` to `end` are; at most about `placesMax` places, and then fewer bytes. */
export function* readPages(prefix: Uint8Array, head: HeadState, start: number, end: number, placesMax: number): Plan<Place[]> {
  const places: Place[] = [];
  let at = start;
  for (let first: number | undefined = chunkOf(start); first !== undefined && places.length < placesMax; ) {
    const { chunks, next }: Chunks = yield* readChunks(prefix, head, first, chunkAfter(end));
    for (const chunk of chunks) {
      const base = chunk.index * chunkBytes;
      for (const run of clipRuns(chunk.runs, Math.max(start - base, 0), Math.min(end - base, chunkBytes))) {
        pushZeros(places, base + run.startBytes - at);
        places.push(...run.places);
        at = base + run.startBytes + run.lengthBytes;
      }
    }
    first = next;
    if (first === undefined) pushZeros(places, end - at);
  }
  return places;
}

function pushZeros(places: Place[], lengthBytes: number): void {
  for (let left = lengthBytes; left > 0; left -= zeroPlaceBytesMax) {
    places.push({ extentId: zeroExtentId, offsetBytes: 0, lengthBytes: Math.min(left, zeroPlaceBytesMax) });
  }
}

export function* getPageRanges(value: OperationValue<"getPageRanges">, context: PlanContext): Plan {
  const found = yield* findState(context, value.name);
  if (!found) return fail("BlobNotFound");
  const { prefix, head, stamp } = found;
  const error =
    checkLeaseOfRead("Blob", value.conditions.leaseId, head.lease, context.leases) ?? checkReadConditions(value.conditions, head);
  if (error) return errorAnswer(error);
  if (head.blobType !== "PageBlob") return fail("InvalidBlobType");
  const { startBytes } = value;
  const endBytes = Math.min(value.endBytes ?? head.contentLengthBytes, head.contentLengthBytes);
  if (startBytes > 0 && startBytes >= endBytes) return fail("InvalidRange", { contentLength: String(head.contentLengthBytes) });
  const max = Math.min(Math.max(value.rangesMax, 1), pageRangesMax);
  let before: number | undefined;
  if (value.previousStamp !== undefined) {
    const previous = yield* findKept(context, { ...value.name, snapshotStamp: value.previousStamp, versionStamp: 0 });
    if (!previous || previous.head.deleted !== undefined) return fail("PreviousSnapshotNotFound");
    if (previous.head.generation !== head.generation) return fail("BlobOverwritten");
    if (previous.head.pageLayer > head.pageLayer) return fail("PreviousSnapshotCannotBeNewer");
    before = previous.head.pageLayer;
  }
  const { ranges, nextBytes } = yield* findRanges(prefix, head, startBytes, endBytes, max, before);
  return answer({ case: "pageRanges", value: { blob: blobOf(context, value.name.blob, head, stamp), ranges, nextBytes } });
}

/** Returns the ranges that hold something, or that differ from what `beforeLayer` saw. */
function* findRanges(
  prefix: Uint8Array,
  head: HeadState,
  startBytes: number,
  endBytes: number,
  rangesMax: number,
  beforeLayer: number | undefined,
): Plan<{ readonly ranges: readonly PageRange[]; readonly nextBytes: number }> {
  const ranges: PageRange[] = [];
  for (let first: number | undefined = chunkOf(startBytes); first !== undefined; ) {
    const { chunks, next }: Chunks = yield* readChunks(prefix, head, first, chunkAfter(endBytes), beforeLayer);
    for (const chunk of chunks) {
      const base = chunk.index * chunkBytes;
      const from = Math.max(startBytes - base, 0);
      const to = Math.min(endBytes - base, chunkBytes);
      for (const found of beforeLayer === undefined ? held(chunk.runs) : differences(chunk.before, chunk.runs)) {
        const start = base + Math.max(found.startBytes, from);
        const end = base + Math.min(found.endBytes, to);
        if (start >= end) continue;
        const last = ranges.at(-1);
        if (last && last.endBytes === start && last.cleared === found.cleared) ranges[ranges.length - 1] = { ...last, endBytes: end };
        else if (ranges.length === rangesMax) return { ranges, nextBytes: start };
        else ranges.push({ startBytes: start, endBytes: end, cleared: found.cleared });
      }
    }
    first = next;
  }
  return { ranges, nextBytes: 0 };
}

const held = (runs: readonly PageRun[]): ChangedRange[] =>
  runs.map((run) => ({ startBytes: run.startBytes, endBytes: run.startBytes + run.lengthBytes, cleared: false }));
