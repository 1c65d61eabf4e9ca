/**
 * Shared by operations on one blob: finding the state that they name, and keeping or dropping a replaced state.
 *
 * The head row is the blob itself; kept rows are its snapshots and its earlier versions, by stamp. A blob that was deleted softly stays in
 * the head row, hidden, until another takes its place. What is hidden, deleted or purged is found by nobody; the next write that meets
 * it takes it away.
 */
import type { BlobHeaders } from "@stamp/base";
import { checkWriteConditions } from "../../conditions.ts";
import { type ServiceError, serviceError } from "../../errors.ts";
import { lastModifiedMs } from "../../etag.ts";
import type { BlobName, BlobReference } from "../../object-keys.ts";
import { afterPrefix, blobPrefix, blocksPrefix, contentKey, headKey, keptKey, type Metadata, stagingKey } from "../../object-keys.ts";
import { type BlobType, type Body, type Conditions, type CopyState, type NewBlobState, plainState } from "../../operation.ts";
import {
  answer,
  type Decision,
  getRow,
  type Plan,
  type PlanContext,
  type PlanRefusal,
  put,
  type RowWrite,
  remove,
  scanRows,
} from "../../plan.ts";
import type { KeyName } from "../encryption.ts";
import { afterWrite, checkLeaseOfWrite } from "../protect/leases.ts";
import { isOver } from "../protect/protection.ts";
import { deletedAt, nextStamp, stampOfMs } from "../protect/retention.ts";
import { type ContentPiece, encodePiece, sizeOfPiece } from "./content.ts";
import { ContentUsers } from "./content-users.ts";
import { blobOf, decodeHead, encodeHead, type HeadState, plainHead } from "./head-row.ts";
import { text } from "./row-values.ts";
import { decodeStaging, isGivenUp, type StagingState } from "./staging-rows.ts";

export interface BlobState {
  /** Prefix of all keys of the blob. */
  readonly prefix: Uint8Array;
  readonly head: HeadState | undefined;
  /** State of a blob that is hidden because it was deleted softly or has expired. */
  readonly hidden: HeadState | undefined;
}

export function* readBlob(context: PlanContext, name: BlobName): Plan<BlobState> {
  const prefix = blobPrefix(context.rules, name);
  const row = yield* getRow(headKey(prefix));
  const state = row ? decodeHead(row) : undefined;
  const hidden = state && (state.deleted !== undefined || isOver(state, context));
  return hidden ? { prefix, head: undefined, hidden: state } : { prefix, head: state, hidden: undefined };
}

/** State of a blob, with the row that holds it. */
export interface FoundState {
  readonly prefix: Uint8Array;
  readonly key: Uint8Array;
  readonly head: HeadState;
  /** Stamp of a kept row; 0 for the head row. */
  readonly stamp: number;
}

/** Returns the blob, or the named snapshot or version, if it exists. */
export function* findState(context: PlanContext, name: BlobReference): Plan<FoundState | undefined> {
  const { snapshotStamp = 0, versionStamp = 0 } = name;
  if (snapshotStamp === 0) {
    const { prefix, head } = yield* readBlob(context, name);
    if (head && (versionStamp === 0 || head.versionStamp === versionStamp)) return { prefix, key: headKey(prefix), head, stamp: 0 };
    if (versionStamp === 0) return undefined;
  }
  const found = yield* findKept(context, name);
  return found && found.head.deleted === undefined ? found : undefined;
}

/** Returns a kept row, also a softly deleted one, unless its retention is over. */
export function* findKept(
  context: PlanContext,
  { snapshotStamp = 0, versionStamp = 0, ...name }: BlobReference,
): Plan<FoundState | undefined> {
  const prefix = blobPrefix(context.rules, name);
  const stamp = snapshotStamp || versionStamp;
  const key = keptKey(prefix, stamp);
  const row = yield* getRow(key);
  const head = row && decodeHead(row);
  if (!head || head.role !== (snapshotStamp > 0 ? "snapshot" : "version") || isOver(head, context)) return undefined;
  return { prefix, key, head, stamp };
}

export function* readStaging(prefix: Uint8Array): Plan<StagingState | undefined> {
  const row = yield* getRow(stagingKey(prefix));
  return row ? decodeStaging(row) : undefined;
}

/** Returns the uncommitted blocks that were not given up. */
export function* readLiveStaging(context: PlanContext, prefix: Uint8Array): Plan<StagingState | undefined> {
  const staging = yield* readStaging(prefix);
  return staging && isGivenUp(staging, context.wallMs) ? undefined : staging;
}

export const isPending = (head: HeadState): boolean => head.copy?.status === "pending";

/** Refuses a change while a copy into the blob is pending. */
export const checkNotPending = (head: HeadState | undefined): ServiceError | undefined =>
  head && isPending(head) ? serviceError("PendingCopyOperation") : undefined;

/** Checks lease and conditions of a write; `creates`: the write makes an absent blob. */
export const checkWrite = (
  context: PlanContext,
  conditions: Conditions,
  head: HeadState | undefined,
  creates: boolean,
): ServiceError | undefined =>
  checkLeaseOfWrite("Blob", conditions.leaseId, head?.lease, context.leases) ??
  checkWriteConditions(conditions, head, creates) ??
  checkNotPending(head);

export const isArchived = (head: HeadState): boolean => head.tier?.name === "Archive";

/**
 * Checks a write that makes the blob or replaces its content. A blob keeps its type, and an archived one its content. A blob that has
 * uncommitted blocks only is a block blob, too: nothing of another type takes them away.
 */
export function* checkReplace(
  context: PlanContext,
  conditions: Conditions,
  { prefix, head }: BlobState,
  blobType: BlobType,
): Plan<ServiceError | undefined> {
  const error = checkWrite(context, conditions, head, true);
  if (error) return error;
  const staged = !head && blobType !== "BlockBlob" && (yield* readLiveStaging(context, prefix)) !== undefined;
  const type = staged ? "BlockBlob" : (head?.blobType ?? blobType);
  return type === blobType ? checkNotArchived(head) : serviceError("InvalidBlobType");
}

export const checkNotArchived = (head: HeadState | undefined): ServiceError | undefined =>
  head && isArchived(head) ? serviceError("BlobArchived") : undefined;

/** True if a state becomes a version when it is replaced or deleted. */
export const becomesVersion = (context: PlanContext, head: HeadState): boolean => context.policy.versioning || head.versionStamp > 0;

/** Checks that the places of a body are in the blob data stream and stay there. Called in row order. */
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
  return [remove(stagingKey(prefix)), ...rows.map((row) => remove(row.key))];
}

/** Returns a stamp from `from` on that no kept row of the blob has. */
export function* freeStamp(prefix: Uint8Array, from: number): Plan<number> {
  for (let stamp = from; ; stamp++) if ((yield* getRow(keptKey(prefix, stamp))) === undefined) return stamp;
}

/** Returns the time of a snapshot or version that is made now. */
export function stampOfNow(context: PlanContext, { prefix, head, hidden }: BlobState): Plan<number> {
  const last = head ?? hidden;
  return freeStamp(prefix, nextStamp(context.wallMs, Math.max(last?.lastStamp ?? 0, last?.versionStamp ?? 0)));
}

/** Returns a state in a kept row: it has no lease and no snapshots of its own. */
export const keep = (prefix: Uint8Array, stamp: number, head: HeadState, change: Pick<HeadState, "role"> & Partial<HeadState>): RowWrite =>
  put(keptKey(prefix, stamp), encodeHead({ ...head, lease: undefined, snapshotCount: 0, lastStamp: 0, versionStamp: 0, ...change }));

/**
 * Keeps the blob's state as an earlier version. Its users stay as many as they are. `given`: stamps that the same commit gives to others, so that
 * a state that was written without versioning takes none of them.
 */
export function* retireAsVersion(prefix: Uint8Array, head: HeadState, given: readonly number[]): Plan<RowWrite> {
  let stamp = head.versionStamp || (yield* freeStamp(prefix, stampOfMs(head.lastModifiedMs)));
  while (given.includes(stamp)) stamp = yield* freeStamp(prefix, stamp + 1);
  return keep(prefix, stamp, head, { role: "version" });
}

/** Keeps a replaced state as a version or a soft-deleted snapshot, or drops it. */
function* retire(
  context: PlanContext,
  prefix: Uint8Array,
  head: HeadState,
  users: ContentUsers,
  stamp: number,
  versionStamp: number,
): Plan<RowWrite[]> {
  const { policy, wallMs } = context;
  if (becomesVersion(context, head)) return [yield* retireAsVersion(prefix, head, [versionStamp])];
  if (policy.deleteRetentionDays > 0) {
    return [keep(prefix, stamp, head, { role: "snapshot", deleted: deletedAt(wallMs, policy.deleteRetentionDays) })];
  }
  users.drop(head);
  return [];
}

/** Moves a hidden state out of the head row: it is kept as a soft-deleted snapshot until its time is over. */
function retireHidden(context: PlanContext, prefix: Uint8Array, hidden: HeadState, users: ContentUsers, stamp: number): RowWrite[] {
  if (hidden.deleted && !isOver(hidden, context)) return [keep(prefix, stamp, hidden, { role: "snapshot" })];
  users.drop(hidden);
  return [];
}

export interface NewContent {
  readonly pieces: readonly ContentPiece[];
  readonly lengthBytes: number;
  readonly headers: BlobHeaders;
  readonly metadata: Metadata;
  readonly blobType: BlobType;
  /** Sequence number of a page blob. */
  readonly sequenceNumber: number;
  readonly state?: NewBlobState | undefined;
  readonly copy?: CopyState | undefined;
  /** Number of committed blocks of an append blob. */
  readonly appendBlockCount?: number | undefined;
  readonly sealed?: boolean | undefined;
  /** Access control of the path; undefined: the blob keeps what it has. */
  readonly pathAccess?: string | undefined;
  /** Key under which all content is encrypted. */
  readonly key: KeyName;
  /** Writes after which a part of the uncommitted blocks stays; undefined: all are dropped. */
  readonly stagingWrites?: readonly RowWrite[] | undefined;
}

/** Returns the blob with new content; its uncommitted blocks are dropped, if nothing else is said. */
export function* replaceContent(context: PlanContext, name: BlobName, state: BlobState, content: NewContent): Plan {
  const { prefix, head, hidden } = state;
  const starts: number[] = [];
  let before = 0;
  for (const piece of content.pieces) {
    starts.push(before);
    before += piece.inline ? piece.inline.length : sizeOfPiece(piece);
  }
  const users = new ContentUsers();
  const writes: RowWrite[] = content.stagingWrites ? [...content.stagingWrites] : yield* dropStaging(prefix, yield* readStaging(prefix));
  const { versioning, deleteRetentionDays } = context.policy;
  const stamp = versioning || deleteRetentionDays > 0 || hidden ? yield* stampOfNow(context, state) : 0;
  const versionStamp = versioning ? yield* freeStamp(prefix, stamp + 1) : 0;
  if (head) writes.push(...(yield* retire(context, prefix, head, users, stamp, versionStamp)));
  if (hidden) writes.push(...retireHidden(context, prefix, hidden, users, stamp));
  writes.push(...(yield* users.writes(prefix)));
  const { tags, accessTier, immutableUntilMs, immutabilityMode, legalHold } = content.state ?? plainState;
  const next: HeadState = {
    ...plainHead,
    etagSequence: context.sequence,
    lastModifiedMs: lastModifiedMs(context.wallMs, head?.lastModifiedMs),
    createdMs: head && !versioning ? head.createdMs : lastModifiedMs(context.wallMs, undefined),
    contentLengthBytes: content.lengthBytes,
    headers: content.headers,
    metadata: content.metadata,
    generation: context.sequence,
    pieceStarts: starts,
    blobType: content.blobType,
    appendBlockCount: content.appendBlockCount ?? 0,
    sealed: content.sealed ?? false,
    copy: content.copy,
    encryptionKeySha256: content.key.encryptionKeySha256,
    encryptionScope: content.key.encryptionScope,
    sequenceNumber: content.sequenceNumber,
    pageLayer: context.sequence,
    versionStamp,
    lastStamp: Math.max(stamp, versionStamp, (head ?? hidden)?.lastStamp ?? 0),
    snapshotCount: (head ?? hidden)?.snapshotCount ?? 0,
    lease: afterWrite(head?.lease, context.leases),
    tags,
    tier: accessTier === "" ? undefined : { name: accessTier, changedMs: lastModifiedMs(context.wallMs, undefined) },
    immutability: immutableUntilMs === undefined ? undefined : { untilMs: immutableUntilMs, mode: immutabilityMode },
    legalHold,
    pathAccess: content.pathAccess === undefined ? head?.pathAccess : text(content.pathAccess),
  };
  for (const [index, piece] of content.pieces.entries()) {
    // A piece has up to some thousand blocks.
    yield { kind: "pause" };
    writes.push(put(contentKey(prefix, next.generation, index), encodePiece(piece)));
  }
  writes.push(put(headKey(prefix), encodeHead(next)));
  return answer({ case: "blob", value: blobOf(context, name.blob, next) }, writes);
}

/** Returns the head after a change at this moment. */
export const changedHead = (context: PlanContext, head: HeadState): HeadState => ({
  ...head,
  etagSequence: context.sequence,
  lastModifiedMs: lastModifiedMs(context.wallMs, head.lastModifiedMs),
  lease: afterWrite(head.lease, context.leases),
});

/** Changes the head and gives the blob a new ETag; the content stays. */
export function changeHead(
  context: PlanContext,
  name: BlobName,
  prefix: Uint8Array,
  head: HeadState,
  change: Partial<HeadState>,
  writes: readonly RowWrite[] = [],
): Decision {
  const next: HeadState = { ...changedHead(context, head), ...change };
  return answer({ case: "blob", value: blobOf(context, name.blob, next) }, [...writes, put(headKey(prefix), encodeHead(next))]);
}
