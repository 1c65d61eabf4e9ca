/** What operations on one blob share: its rows, and replacing its content. */

import { type ServiceError, serviceError } from "../errors.ts";
import { lastModifiedMs } from "../etag.ts";
import type { BlobName } from "../object-keys.ts";
import { afterPrefix, blobPrefix, blocksPrefix, contentKey, headKey, stagingKey } from "../object-keys.ts";
import type { BlobHeaders, BlobType, Body, Conditions, Metadata } from "../operation.ts";
import { answer, type Decision, getRow, type Plan, type PlanContext, type PlanRefusal, type RowWrite, scanRows } from "../plan.ts";
import { blobOf, decodeHead, decodeStaging, encodeHead, type HeadState, type StagingState } from "./blob-rows.ts";
import { type ContentPiece, encodePiece, sizeOfPiece } from "./content.ts";

export interface BlobState {
  /** With which all its rows begin. */
  readonly prefix: Uint8Array;
  readonly head: HeadState | undefined;
}

export function* readBlob(context: PlanContext, name: BlobName): Plan<BlobState> {
  const prefix = blobPrefix(context.rules, name);
  const row = yield* getRow(headKey(prefix));
  return { prefix, head: row ? decodeHead(row) : undefined };
}

export function* readStaging(prefix: Uint8Array): Plan<StagingState | undefined> {
  const row = yield* getRow(stagingKey(prefix));
  return row ? decodeStaging(row) : undefined;
}

/** No blob is leased: a request that names a lease is told so. */
export const checkBlobLease = (conditions: Conditions): ServiceError | undefined =>
  conditions.leaseId === undefined ? undefined : serviceError("LeaseNotPresentWithBlobOperation");

/** Asked in row order: whatever this row will refer to is in the blob data stream and stays there. */
export function checkPlaces(context: PlanContext, body: Body): PlanRefusal | undefined {
  if (!context.rules.on("placesCheckedInRowOrder")) return undefined;
  for (const place of body.places) {
    if (!context.mayReferTo(place)) {
      return {
        reason: "badPlace",
        message: `extent ${place.extentId} is not in this partition's blob data, or is about to leave it: write the data again`,
      };
    }
  }
  return undefined;
}

export const sizeOfBody = (body: Body): number =>
  body.places.length > 0 ? body.places.reduce((sum, place) => sum + place.lengthBytes, 0) : body.inline.length;

/** Uncommitted block rows dropped together with their staging row; what is left of them can't be met and is collected later. */
const blockRowsDroppedMax = 256;

/** Drops the uncommitted blocks. */
export function* dropStaging(prefix: Uint8Array, staging: StagingState | undefined): Plan<RowWrite[]> {
  if (!staging) return [];
  const low = blocksPrefix(prefix, staging.generation);
  const { rows } = yield* scanRows(low, afterPrefix(low), { rowsMax: blockRowsDroppedMax, bytesMax: 1024 * 1024 });
  return [{ kind: "delete", key: stagingKey(prefix) }, ...rows.map((row): RowWrite => ({ kind: "delete", key: row.key }))];
}

export const dropContent = (prefix: Uint8Array, head: HeadState): RowWrite[] =>
  head.pieceStarts.map((_, piece): RowWrite => ({ kind: "delete", key: contentKey(prefix, head.generation, piece) }));

export interface NewContent {
  readonly pieces: readonly ContentPiece[];
  readonly lengthBytes: number;
  readonly headers: BlobHeaders;
  readonly metadata: Metadata;
  readonly blobType: BlobType;
  /** Of a page blob. */
  readonly sequenceNumber: number;
}

/** The blob with this content instead of what it had, its uncommitted blocks dropped. */
export function* replaceContent(context: PlanContext, name: BlobName, state: BlobState, content: NewContent): Plan {
  const { prefix, head } = state;
  const starts: number[] = [];
  let before = 0;
  for (const piece of content.pieces) {
    starts.push(before);
    before += piece.inline ? piece.inline.length : sizeOfPiece(piece);
  }
  const next: HeadState = {
    etagSequence: context.sequence,
    lastModifiedMs: lastModifiedMs(context.wallMs, head?.lastModifiedMs),
    createdMs: head?.createdMs ?? lastModifiedMs(context.wallMs, undefined),
    contentLengthBytes: content.lengthBytes,
    headers: content.headers,
    metadata: content.metadata,
    generation: context.sequence,
    pieceStarts: starts,
    blobType: content.blobType,
    appendBlockCount: 0,
    sealed: false,
    sequenceNumber: content.sequenceNumber,
    pageLayer: context.sequence,
  };
  const writes: RowWrite[] = yield* dropStaging(prefix, yield* readStaging(prefix));
  if (head) writes.push(...dropContent(prefix, head));
  content.pieces.forEach((piece, index) => {
    writes.push({ kind: "put", key: contentKey(prefix, next.generation, index), value: encodePiece(piece) });
  });
  writes.push({ kind: "put", key: headKey(prefix), value: encodeHead(next) });
  return answer({ case: "blob", value: blobOf(name.blob, next) }, writes);
}

/** The head as a change of this moment leaves it. */
export const changedHead = (context: PlanContext, head: HeadState): HeadState => ({
  ...head,
  etagSequence: context.sequence,
  lastModifiedMs: lastModifiedMs(context.wallMs, head.lastModifiedMs),
});

/** The same content under a new ETag. */
export function changeHead(
  context: PlanContext,
  name: BlobName,
  prefix: Uint8Array,
  head: HeadState,
  change: Partial<HeadState>,
): Decision {
  const next: HeadState = { ...changedHead(context, head), ...change };
  return answer({ case: "blob", value: blobOf(name.blob, next) }, [{ kind: "put", key: headKey(prefix), value: encodeHead(next) }]);
}
