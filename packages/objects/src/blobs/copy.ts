/**
 * Copying a blob. What is copied are parts: content rows of block and append blobs, chunks of page blobs. A front-end reads them at the
 * source and adds them here; where both lie in one range, a part's places are good for both and no byte is moved.
 *
 *   start ──> pending: head without content, and who copies ── add, add, … ──> end: success, all of it at once
 *                │                                        └── claim: by another, when the first one is no longer heard of
 *                └── abort, or end: failed ──> no content
 *
 * Parts of a pending copy are rows of the head's generation that the head does not show yet: nothing reads them. The state is in the row, so
 * a copy goes on wherever it stands when its copier, or this partition server, is gone.
 */
import { checkReadConditions } from "../conditions.ts";
import { contentKey, headKey, pageKey } from "../object-keys.ts";
import type { CopyPart, CopyState, OperationValue } from "../operation.ts";
import {
  answer,
  type Decision,
  done,
  errorAnswer,
  fail,
  type Plan,
  type PlanContext,
  put,
  type RowWrite,
  refuse,
  remove,
} from "../plan.ts";
import { readPiece } from "./blobs.ts";
import { checkKeyOrScope, type KeyName, keyNameOf, unusableUnderKey } from "./encryption.ts";
import { chunkBytes, encodePages, isOfPages } from "./pages/page-runs.ts";
import { type Chunks, readChunks } from "./pages/pages.ts";
import { checkLeaseOfCopy, checkLeaseOfRead, checkLeaseOfWrite } from "./protect/leases.ts";
import { changedHead, checkPlaces, checkReplace, findState, isArchived, isPending, readBlob, replaceContent } from "./state/blob-state.ts";
import { type ContentPiece, encodePiece, placesBytesGuess, sizeOfPiece } from "./state/content.ts";
import { blobOf, encodeHead, type HeadState } from "./state/head-row.ts";

/** Bound of the parts' bytes in one answer, and in one message that adds them. A single part may be larger. */
export const copyPartBytesMax: number = 1024 * 1024;
/** Time without a sign of the copier after which another one may take the copy over, in milliseconds. */
export const copyStaleMs = 60_000;

const weightOf = (part: CopyPart): number =>
  part.inline.length + part.blocks.reduce((sum, block) => sum + block.blockId.length + 16 + placesBytesGuess(block.places), 0);

/**
 * Reads the parts of a blob that may be copied: from `first` on, as many as fit into an answer. Refused for a blob
 * under a customer's key, whoever asks: the copy would have the bytes without their key.
 */
export function* readParts(value: OperationValue<"readParts">, context: PlanContext): Plan {
  const found = yield* findState(context, value.name);
  if (!found) return fail("BlobNotFound");
  const { prefix, head, stamp } = found;
  const error =
    checkLeaseOfRead("Blob", value.conditions.leaseId, head.lease, context.leases) ??
    checkReadConditions(value.conditions, head) ??
    checkKeyOrScope({}, head);
  if (error) return errorAnswer(error);
  if (isArchived(head) && value.archivedToo !== true) return fail("BlobArchived");
  if (isPending(head)) return fail("PendingCopyOperation");
  const read = head.blobType === "PageBlob" ? yield* pageParts(prefix, head, value.first) : yield* contentParts(prefix, head, value.first);
  return answer({ case: "copyParts", value: { blob: blobOf(context, value.name.blob, head, stamp), ...read } });
}

interface Parts {
  readonly parts: readonly CopyPart[];
  /** Offset of the next part in bytes; undefined: this is the last one. */
  readonly next: number | undefined;
}

function* contentParts(prefix: Uint8Array, head: HeadState, first: number): Plan<Parts> {
  const parts: CopyPart[] = [];
  let bytes = 0;
  for (let index = first; index < head.pieceStarts.length; index++) {
    const part = partOfPiece(index, yield* readPiece(prefix, head, index));
    bytes += weightOf(part);
    if (parts.length > 0 && bytes > copyPartBytesMax) return { parts, next: index };
    parts.push(part);
  }
  return { parts, next: undefined };
}

const partOfPiece = (index: number, piece: ContentPiece): CopyPart => ({
  index,
  inline: piece.inline ?? new Uint8Array(0),
  blocks: piece.blocks.map((block) => ({ ...block, startBytes: 0 })),
});

function* pageParts(prefix: Uint8Array, head: HeadState, first: number): Plan<Parts> {
  const parts: CopyPart[] = [];
  let bytes = 0;
  const end = Math.ceil(head.contentLengthBytes / chunkBytes);
  for (let at: number | undefined = first; at !== undefined; ) {
    const page: Chunks = yield* readChunks(prefix, head, at, end);
    for (const { index, runs } of page.chunks) {
      const blocks = runs.map((run) => ({
        blockId: new Uint8Array(0),
        startBytes: run.startBytes,
        sizeBytes: run.lengthBytes,
        places: run.places,
      }));
      const part: CopyPart = { index, inline: new Uint8Array(0), blocks };
      bytes += weightOf(part);
      if (parts.length > 0 && bytes > copyPartBytesMax) return { parts, next: index };
      if (blocks.length > 0) parts.push(part);
    }
    at = page.next;
  }
  return { parts, next: undefined };
}

const runsOf = (part: CopyPart) =>
  part.blocks.map((block) => ({ startBytes: block.startBytes, lengthBytes: block.sizeBytes, places: block.places }));

const pieceOfPart = (part: CopyPart): ContentPiece =>
  part.inline.length > 0
    ? { blocks: [], inline: part.inline }
    : { blocks: part.blocks.map(({ blockId, sizeBytes, places }) => ({ blockId, sizeBytes, places })), inline: undefined };

export const sizeOfPart = (part: CopyPart): number =>
  part.inline.length > 0 ? part.inline.length : part.blocks.reduce((sum, block) => sum + block.sizeBytes, 0);

/** Begins a copy. With `copy.status` success the parts are all content; else they are added later, and the blob has no content until then. */
export function* startCopy(value: OperationValue<"startCopy">, context: PlanContext): Plan {
  const { name, conditions, copy, headers, metadata, blobType, sequenceNumber, parts } = value;
  const complete = copy.status === "success";
  if (complete && blobType === "PageBlob") return refuse("badRequest", "pages are added part by part");
  const state = yield* readBlob(context, name);
  const error = (yield* checkReplace(context, conditions, state, blobType)) ?? checkLeaseOfCopy(state.head?.lease, context.leases);
  if (error) return errorAnswer(error);
  const key = keyNameOf(conditions);
  const refusal = checkParts(context, parts, key);
  if (refusal) return refusal;
  const pieces = complete ? parts.map(pieceOfPart) : [];
  return yield* replaceContent(context, name, state, {
    pieces,
    lengthBytes:
      blobType === "PageBlob" ? value.pageBlobBytes : pieces.reduce((sum, piece) => sum + (piece.inline?.length ?? sizeOfPiece(piece)), 0),
    headers,
    metadata,
    blobType,
    sequenceNumber,
    appendBlockCount: complete ? value.appendBlockCount : 0,
    sealed: complete && value.sealed,
    copy: complete
      ? { ...copy, completedMs: context.wallMs, work: undefined }
      : { ...copy, work: copy.work && { ...copy.work, beatMs: context.wallMs, next: 0 } },
    state: value.state,
    key,
  });
}

function checkParts(context: PlanContext, parts: readonly CopyPart[], key: KeyName): Decision | undefined {
  for (const part of parts) {
    const body = { inline: part.inline, places: part.blocks.flatMap((block) => block.places) };
    const unusable = unusableUnderKey(key, body);
    if (unusable !== undefined) return refuse("badRequest", unusable);
    const refusal = checkPlaces(context, body);
    if (refusal) return refuse(refusal.reason, refusal.message);
  }
  return undefined;
}

interface Copying {
  readonly prefix: Uint8Array;
  readonly head: HeadState;
  readonly copy: CopyState;
}

/** Returns the copy with this id, if it is pending. */
function* findCopy(
  context: PlanContext,
  { name, copyId }: { readonly name: OperationValue<"addToCopy">["name"]; readonly copyId: string },
): Plan<Copying | Decision> {
  const { prefix, head } = yield* readBlob(context, name);
  if (!head) return fail("BlobNotFound");
  if (!head.copy || !isPending(head)) return fail("NoPendingCopyOperation");
  return head.copy.copyId === copyId ? { prefix, head, copy: head.copy } : fail("CopyIdMismatch");
}

/** Adds parts in order, each once, by the copier only. Without parts it says that the copier is still there. */
export function* addToCopy(value: OperationValue<"addToCopy">, context: PlanContext): Plan {
  const found = yield* findCopy(context, value);
  if (!("head" in found)) return found;
  const { prefix, head, copy } = found;
  if (copy.work?.copier !== value.copier) return fail("CopyIdMismatch");
  // Said before: its answer was lost.
  if (copy.work.next === value.next && value.position < value.next)
    return answer({ case: "blob", value: blobOf(context, value.name.blob, head) });
  if (copy.work.next !== value.position) return refuse("badRequest", `the copy stands at ${copy.work.next}, not at ${value.position}`);
  const refusal = checkParts(context, value.parts, head);
  if (refusal) return refusal;
  const writes: RowWrite[] = [];
  const starts = [...head.pieceStarts];
  let copiedBytes = copy.copiedBytes;
  for (const part of value.parts) {
    if (head.blobType === "PageBlob") {
      if (!part.blocks.every(({ places }) => places.every(isOfPages))) return refuse("badRequest", "pages have tags of their own");
      writes.push(put(pageKey(prefix, head.generation, part.index, head.pageLayer), encodePages(runsOf(part))));
    } else {
      writes.push(put(contentKey(prefix, head.generation, starts.length), encodePiece(pieceOfPart(part))));
      starts.push(copiedBytes);
    }
    copiedBytes += sizeOfPart(part);
  }
  const work = { ...copy.work, next: value.next, beatMs: context.wallMs };
  const next: HeadState = { ...head, pieceStarts: starts, copy: { ...copy, copiedBytes, work } };
  return answer({ case: "blob", value: blobOf(context, value.name.blob, next) }, [...writes, put(headKey(prefix), encodeHead(next))]);
}

export function* endCopy(value: OperationValue<"endCopy">, context: PlanContext): Plan {
  const found = yield* findCopy(context, value);
  if (!("head" in found)) return found;
  const { prefix, head, copy } = found;
  if (copy.work?.copier !== value.copier) return fail("CopyIdMismatch");
  if (value.description !== "") return emptied(context, value.name.blob, found, { status: "failed", description: value.description });
  const isPages = head.blobType === "PageBlob";
  const next: HeadState = {
    ...changedHead(context, head),
    contentLengthBytes: isPages ? head.contentLengthBytes : copy.copiedBytes,
    appendBlockCount: value.appendBlockCount,
    sealed: value.sealed,
    copy: { ...copy, status: "success", copiedBytes: copy.totalBytes, completedMs: context.wallMs, work: undefined },
  };
  return answer({ case: "blob", value: blobOf(context, value.name.blob, next) }, [put(headKey(prefix), encodeHead(next))]);
}

/** Returns the head without content, as the service leaves a failed copy. Nobody meets page rows of the old generation. */
function emptied(
  context: PlanContext,
  blob: string,
  { prefix, head, copy }: Copying,
  outcome: Pick<CopyState, "status" | "description">,
): Decision {
  const next: HeadState = {
    ...changedHead(context, head),
    contentLengthBytes: 0,
    generation: context.sequence,
    pageLayer: context.sequence,
    pieceStarts: [],
    copy: { ...copy, ...outcome, completedMs: context.wallMs, work: undefined },
  };
  const dropped = head.pieceStarts.map((_, piece) => remove(contentKey(prefix, head.generation, piece)));
  return answer({ case: "blob", value: blobOf(context, blob, next) }, [...dropped, put(headKey(prefix), encodeHead(next))]);
}

export function* abortCopy(value: OperationValue<"abortCopy">, context: PlanContext): Plan {
  const { head } = yield* readBlob(context, value.name);
  if (!head) return fail("BlobNotFound");
  const error = checkLeaseOfWrite("Blob", value.conditions.leaseId, head.lease, context.leases);
  if (error) return errorAnswer(error);
  const found = yield* findCopy(context, value);
  if (!("head" in found)) return found;
  const { writes } = emptied(context, value.name.blob, found, { status: "aborted", description: "" });
  return answer(done, writes);
}

/** Gives the copy to another copier, if its present one gave no sign for a while. */
export function* claimCopy(value: OperationValue<"claimCopy">, context: PlanContext): Plan {
  const found = yield* findCopy(context, value);
  if (!("head" in found)) return found;
  const { prefix, head, copy } = found;
  if (!copy.work || !isStale(copy, context.wallMs)) return fail("PendingCopyOperation");
  const next: HeadState = { ...head, copy: { ...copy, work: { ...copy.work, copier: value.copier, beatMs: context.wallMs } } };
  return answer({ case: "blob", value: blobOf(context, value.name.blob, next) }, [put(headKey(prefix), encodeHead(next))]);
}

const isStale = ({ work }: CopyState, wallMs: number): boolean => work !== undefined && wallMs - work.beatMs >= copyStaleMs;
