/** Put and get of a blob, and of its metadata and headers. */
import { emptyBytes } from "@stamp/base";
import { checkReadConditions } from "../conditions.ts";
import { contentKey, doorEntriesOf } from "../object-keys.ts";
import type { OperationValue } from "../operation.ts";
import { answer, type Decision, errorAnswer, fail, getRow, intact, type Plan, type PlanContext, type RowWrite, refuse } from "../plan.ts";
import type { BlobContent } from "../results.ts";
import type { Place } from "../rows/row.ts";
import { checkKeyIfGiven, checkKeyOrScope, keyNameOf, unusableUnderKey } from "./encryption.ts";
import { pageBytes } from "./pages/page-runs.ts";
import { pageBlobBytesMax, readPages } from "./pages/pages.ts";
import { checkLeaseOfRead } from "./protect/leases.ts";
import {
  becomesVersion,
  changeHead,
  checkPlaces,
  checkReplace,
  checkWrite,
  findState,
  isArchived,
  readBlob,
  replaceContent,
  retireAsVersion,
  sizeOfBody,
  stampOfNow,
} from "./state/blob-state.ts";
import { type ContentPiece, clipPiece, clipPlaces, decodePiece, inlineBytesMax, placesPerBlockMax } from "./state/content.ts";
import { ContentUsers } from "./state/content-users.ts";
import { blobOf, type HeadState } from "./state/head-row.ts";

export function* putBlob(value: OperationValue<"putBlob">, context: PlanContext): Plan {
  const { name, conditions, body, headers, metadata } = value;
  if (body.inline.length > inlineBytesMax) return refuse("badRequest", `at most ${inlineBytesMax} bytes inside a message`);
  if (body.places.length > placesPerBlockMax) return refuse("badRequest", `at most ${placesPerBlockMax} places`);
  const unusable = unusableUnderKey(conditions, body);
  if (unusable !== undefined) return refuse("badRequest", unusable);
  const state = yield* readBlob(context, name);
  const { blobType = "BlockBlob", sequenceNumber = 0, pageBlobBytes = 0 } = value;
  const error = yield* checkReplace(context, conditions, state, blobType);
  if (error) return errorAnswer(error);
  const refusal = checkPlaces(context, body);
  if (refusal) return refuse(refusal.reason, refusal.message);
  const sizeBytes = sizeOfBody(body);
  if (blobType !== "BlockBlob" && sizeBytes > 0) return refuse("badRequest", `a new ${blobType} is empty`);
  const unitBytes = context.policy.hierarchical === true ? 1 : pageBytes;
  if (pageBlobBytes % unitBytes !== 0 || pageBlobBytes > pageBlobBytesMax) return refuse("badRequest", "not a size of a page blob");
  const lengthBytes = blobType === "PageBlob" ? pageBlobBytes : sizeBytes;
  const pieces = piecesOfBody(value, sizeBytes);
  const key = keyNameOf(conditions);
  const content = {
    pieces,
    lengthBytes,
    headers,
    metadata,
    blobType,
    sequenceNumber,
    state: value.state,
    pathAccess: value.pathAccess,
    key,
  };
  return yield* replaceContent(context, name, state, content);
}

function piecesOfBody({ body }: OperationValue<"putBlob">, sizeBytes: number): ContentPiece[] {
  if (sizeBytes === 0) return [];
  if (body.places.length === 0) return [{ blocks: [], inline: body.inline }];
  return [{ blocks: [{ blockId: emptyBytes, sizeBytes, places: body.places }], inline: undefined }];
}

/** Replaces the metadata. With versioning the earlier state becomes a version with the same content. */
export function* setBlobMetadata(value: OperationValue<"setBlobMetadata">, context: PlanContext): Plan {
  const { name, conditions } = value;
  const state = yield* readBlob(context, name);
  const { prefix, head } = state;
  if (!head) return fail("BlobNotFound");
  const metadata = { ...doorEntriesOf(head.metadata), ...value.metadata };
  const error = checkWrite(context, conditions, head, false) ?? checkKeyOrScope(conditions, head);
  if (error) return errorAnswer(error);
  if (isArchived(head)) return fail("BlobArchived");
  if (!becomesVersion(context, head)) return changeHead(context, name, prefix, head, { metadata });
  const stamp = context.policy.versioning ? yield* stampOfNow(context, state) : 0;
  const users = new ContentUsers();
  users.add(head);
  const writes: RowWrite[] = [yield* retireAsVersion(prefix, head, [stamp]), ...(yield* users.writes(prefix))];
  const fresh: Partial<HeadState> = {
    metadata,
    versionStamp: stamp,
    lastStamp: Math.max(stamp, head.lastStamp),
    immutability: undefined,
    legalHold: false,
    pageLayer: context.sequence,
  };
  return changeHead(context, name, prefix, head, fresh, writes);
}

export function* setBlobHeaders(value: OperationValue<"setBlobHeaders">, context: PlanContext): Plan {
  const { prefix, head } = yield* readBlob(context, value.name);
  if (!head) return fail("BlobNotFound");
  const error = checkWrite(context, value.conditions, head, false) ?? checkKeyIfGiven(value.conditions, head);
  if (error) return errorAnswer(error);
  if (isArchived(head)) return fail("BlobArchived");
  return changeHead(context, value.name, prefix, head, { headers: value.headers, copy: undefined });
}

/**
 * Number of places in one answer; a reader of more asks again from where it ended, under the same ETag. So small that neither side takes
 * long to encode, decode or look up one answer.
 */
export const contentPlacesMax = 4_096;

export function* getBlob(value: OperationValue<"getBlob">, context: PlanContext): Plan {
  const found = yield* findState(context, value.name);
  if (!found) return fail("BlobNotFound");
  const { prefix, head, stamp } = found;
  const error =
    checkLeaseOfRead("Blob", value.conditions.leaseId, head.lease, context.leases) ??
    checkReadConditions(value.conditions, head) ??
    (value.withoutKey ? undefined : checkKeyOrScope(value.conditions, head));
  if (error) return errorAnswer(error);
  const blob = blobOf(context, value.name.blob, head, stamp);
  if (value.withoutContent) return answer({ case: "blob", value: blob });
  if (isArchived(head)) return fail("BlobArchived");
  const ranged = value.startBytes !== undefined || value.endBytes !== undefined;
  const start = value.startBytes ?? 0;
  const end = Math.min(value.endBytes ?? head.contentLengthBytes, head.contentLengthBytes);
  if (ranged && start >= end) return invalidRange(head);
  return answer({ case: "content", value: { blob, startBytes: start, ...(yield* readContent(prefix, head, start, end)) } });
}

const invalidRange = (head: HeadState): Decision => fail("InvalidRange", { contentLength: String(head.contentLengthBytes) });

export function* readContent(
  prefix: Uint8Array,
  head: HeadState,
  start: number,
  end: number,
): Plan<Pick<BlobContent, "lengthBytes" | "inline" | "places">> {
  if (head.blobType === "PageBlob") {
    const places = (yield* readPages(prefix, head, start, end, contentPlacesMax)).slice(0, contentPlacesMax);
    return { lengthBytes: places.reduce((sum, place) => sum + place.lengthBytes, 0), inline: emptyBytes, places };
  }
  const places: Place[] = [];
  for (let piece = 0; piece < head.pieceStarts.length; piece++) {
    const before = head.pieceStarts[piece] as number;
    const after = head.pieceStarts[piece + 1] ?? head.contentLengthBytes;
    if (after <= start) continue;
    if (before >= end || places.length >= contentPlacesMax) break;
    const content = yield* readPiece(prefix, head, piece);
    const from = Math.max(start, before) - before;
    const to = Math.min(end, after) - before;
    if (content.inline) return { lengthBytes: to - from, inline: content.inline.subarray(from, to), places: [] };
    const all = content.blocks.flatMap((block) => block.places);
    for (const place of clipPlaces(all, from, to, contentPlacesMax - places.length)) places.push(place);
  }
  return { lengthBytes: places.reduce((sum, place) => sum + place.lengthBytes, 0), inline: emptyBytes, places };
}

/**
 * Returns a piece as this head shows it. The row may hold more: a snapshot or an earlier version of an append blob shares its last row with
 * the live head, which appends to it.
 */
export function* readPiece(prefix: Uint8Array, head: HeadState, piece: number): Plan<ContentPiece> {
  const row = yield* getRow(contentKey(prefix, head.generation, piece));
  if (!row) return intact({ ok: false, failure: missingPiece(piece) });
  const before = head.pieceStarts[piece] ?? 0;
  return clipPiece(intact(decodePiece(row)), (head.pieceStarts[piece + 1] ?? head.contentLengthBytes) - before);
}

const missingPiece = (piece: number) =>
  ({ code: "dataLoss", reason: "damaged", message: `content row ${piece} of a blob is missing`, applied: "no" }) as const;
