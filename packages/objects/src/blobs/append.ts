/**
 * Append blobs: blocks are only ever added at the end. Their content rows are small, so that an append rewrites little: the last one and
 * the head. What is there already never changes, so a reader of an older length reads on undisturbed.
 */
import { emptyBytes } from "@stamp/base";
import { contentKey, headKey } from "../object-keys.ts";
import type { OperationValue } from "../operation.ts";
import { answer, errorAnswer, fail, getRow, intact, type Plan, type PlanContext, type RowWrite, refuse } from "../plan.ts";
import { checkKey, unusableUnderKey } from "./encryption.ts";
import { changedHead, changeHead, checkPlaces, checkWrite, readBlob, sizeOfBody } from "./state/blob-state.ts";
import { type ContentBlock, type ContentPiece, decodePiece, encodePiece, placesBytesGuess, placesPerBlockMax } from "./state/content.ts";
import { blobOf, encodeHead, type HeadState } from "./state/head-row.ts";

export const appendedBlocksMax = 50_000;
/** Largest content row of an append blob, in bytes. A block that is larger by itself has its own row. */
export const appendPieceBytesMax: number = 8 * 1024;

export function* appendBlock(value: OperationValue<"appendBlock">, context: PlanContext): Plan {
  const { name, conditions, body } = value;
  if (body.inline.length > 0) return refuse("badRequest", "the bytes of a block are put into the blob data stream first");
  if (body.places.length > placesPerBlockMax) return refuse("badRequest", `at most ${placesPerBlockMax} places`);
  const unusable = unusableUnderKey(conditions, body);
  if (unusable !== undefined) return refuse("badRequest", unusable);
  const { prefix, head } = yield* readBlob(context, name);
  if (!head) return fail("BlobNotFound");
  const error = checkWrite(context, conditions, head, false) ?? checkKey(conditions, head);
  if (error) return errorAnswer(error);
  if (head.blobType !== "AppendBlob") return fail("InvalidBlobType");
  if (head.sealed) return fail("BlobIsSealed");
  const sizeBytes = sizeOfBody(body);
  const offsetBytes = head.contentLengthBytes;
  if (value.appendPosition !== undefined && value.appendPosition !== offsetBytes) return fail("AppendPositionConditionNotMet");
  if (value.maxSize !== undefined && offsetBytes + sizeBytes > value.maxSize) return fail("MaxBlobSizeConditionNotMet");
  if (head.appendBlockCount >= appendedBlocksMax) {
    return fail("BlockCountExceedsLimit", { Reason: `An append blob has at most ${appendedBlocksMax} blocks.` });
  }
  const refusal = checkPlaces(context, body);
  if (refusal) return refuse(refusal.reason, refusal.message);
  const { piece, index } = yield* lastPiece(prefix, head, placesBytesGuess(body.places));
  const block: ContentBlock = { blockId: emptyBytes, sizeBytes, places: body.places };
  const next: HeadState = {
    ...changedHead(context, head),
    contentLengthBytes: offsetBytes + sizeBytes,
    pieceStarts: index < head.pieceStarts.length ? head.pieceStarts : [...head.pieceStarts, offsetBytes],
    appendBlockCount: head.appendBlockCount + 1,
  };
  const writes: RowWrite[] = [
    { kind: "put", key: contentKey(prefix, head.generation, index), value: encodePiece({ ...piece, blocks: [...piece.blocks, block] }) },
    { kind: "put", key: headKey(prefix), value: encodeHead(next) },
  ];
  return answer({ case: "appended", value: { blob: blobOf(context, name.blob, next), offsetBytes } }, writes);
}

/** Returns the content row for a block whose places take about this many bytes. */
function* lastPiece(prefix: Uint8Array, head: HeadState, placesBytes: number): Plan<{ piece: ContentPiece; index: number }> {
  const fresh = { piece: { blocks: [], inline: undefined }, index: head.pieceStarts.length };
  const index = head.pieceStarts.length - 1;
  const row = index < 0 ? undefined : yield* getRow(contentKey(prefix, head.generation, index));
  if (!row || row.length + placesBytes > appendPieceBytesMax) return fresh;
  const piece = intact(decodePiece(row));
  return piece.inline ? fresh : { piece, index };
}

/**
 * Seals an append blob. After that nothing is appended; properties, metadata and tags may still change, and the blob
 * may be deleted or replaced.
 */
export function* sealBlob(value: OperationValue<"sealBlob">, context: PlanContext): Plan {
  const { prefix, head } = yield* readBlob(context, value.name);
  if (!head) return fail("BlobNotFound");
  const error = checkWrite(context, value.conditions, head, false);
  if (error) return errorAnswer(error);
  if (head.blobType !== "AppendBlob") return fail("InvalidBlobType");
  if (value.appendPosition !== undefined && value.appendPosition !== head.contentLengthBytes) return fail("AppendPositionConditionNotMet");
  if (head.sealed) return answer({ case: "blob", value: blobOf(context, value.name.blob, head) });
  return changeHead(context, value.name, prefix, head, { sealed: true });
}
