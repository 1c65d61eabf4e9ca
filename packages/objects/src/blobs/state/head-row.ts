/** Head rows of blobs, and the kept rows of their snapshots and versions: between what is stored and what operations speak of. */
import { type BlobHeaders, emptyBytes, refused } from "@stamp/base";
import { etagOf } from "../../etag.ts";
import type { Metadata } from "../../object-keys.ts";
import type { BlobType, CopyState } from "../../operation.ts";
import { intact, type PlanContext } from "../../plan.ts";
import type { Blob } from "../../results.ts";
import { dateTimeOfMs, encodeRow } from "../../rows/row.ts";
import { RowCursor } from "../../rows/row-cursor.ts";
import { blobSchema } from "../../rows/schemas.ts";
import { type Lease, viewOf } from "../protect/leases.ts";
import { daysLeft, type SoftDeletion } from "../protect/retention.ts";
import { decodePieceStarts, encodePieceStarts } from "./content.ts";
import { decodeCopy, encodeCopy } from "./copy-state.ts";
import { bigCount, count, decodeLease, dictionaryOf, encodeLease, flag, metadataOf, noTexts, optionalTime, text } from "./row-values.ts";

/** The blob itself has the head row; the others have kept rows. */
export type BlobRole = "base" | "snapshot" | "version";
const roles = ["base", "snapshot", "version"] as const;

export interface Immutability {
  readonly untilMs: number;
  readonly mode: string;
}

/** Tier that was set; without one the blob is Hot, inferred. */
export interface Tier {
  readonly name: string;
  readonly changedMs: number;
}

export interface HeadState {
  readonly role: BlobRole;
  readonly etagSequence: number;
  readonly lastModifiedMs: number;
  readonly createdMs: number;
  readonly contentLengthBytes: number;
  readonly headers: BlobHeaders;
  readonly metadata: Metadata;
  /** Generation of the state's content rows; snapshots and versions may share them. */
  readonly generation: number;
  /** Bytes before each content row. */
  readonly pieceStarts: readonly number[];
  /** Stamp of this state as a version; 0 if it was written without versioning. */
  readonly versionStamp: number;
  /** The last that was given to a version or snapshot of this blob. */
  readonly lastStamp: number;
  /** Number of snapshots of the blob that are not deleted. */
  readonly snapshotCount: number;
  readonly lease: Lease | undefined;
  readonly tags: Metadata;
  readonly tier: Tier | undefined;
  readonly expiresMs: number | undefined;
  readonly immutability: Immutability | undefined;
  readonly legalHold: boolean;
  readonly deleted: SoftDeletion | undefined;
  readonly blobType: BlobType;
  /** Number of committed blocks of an append blob. */
  readonly appendBlockCount: number;
  readonly sealed: boolean;
  /** Sequence number of a page blob. */
  readonly sequenceNumber: number;
  /**
   * Layer of a page blob that is written (pages.ts). A snapshot or version that keeps this state gives the blob a new
   * layer.
   */
  readonly pageLayer: number;
  /** The copy that made this content, or makes it. */
  readonly copy: CopyState | undefined;
  /** SHA-256 of the customer's key that the content is encrypted under. With neither it nor a scope, the content is not encrypted. */
  readonly encryptionKeySha256: Uint8Array | undefined;
  /** Name of the encryption scope that the content is encrypted under. */
  readonly encryptionScope: string | undefined;
  /** Owner and access control of a file or directory (docs/formats/tree.md). Undefined: it has none of its own. */
  readonly pathAccess: string | undefined;
}

/** Head of a blob without special properties. */
export const plainHead: Pick<
  HeadState,
  | "role"
  | "versionStamp"
  | "lastStamp"
  | "snapshotCount"
  | "lease"
  | "tags"
  | "tier"
  | "expiresMs"
  | "immutability"
  | "legalHold"
  | "deleted"
  | "copy"
  | "encryptionKeySha256"
  | "encryptionScope"
  | "pathAccess"
> = {
  role: "base",
  versionStamp: 0,
  lastStamp: 0,
  snapshotCount: 0,
  lease: undefined,
  tags: {},
  tier: undefined,
  expiresMs: undefined,
  immutability: undefined,
  legalHold: false,
  deleted: undefined,
  copy: undefined,
  encryptionScope: undefined,
  encryptionKeySha256: undefined,
  pathAccess: undefined,
};

/** Stored codes of the types of blobs. */
const typeCodes = { BlockBlob: 1, PageBlob: 2, AppendBlob: 3 } as const;

const typesByCode: readonly (BlobType | undefined)[] = [undefined, "BlockBlob", "PageBlob", "AppendBlob"];

export function typeOfCode(code: number | undefined): BlobType {
  const type = typesByCode[code ?? typeCodes.BlockBlob];
  return type ?? intact(refused("dataLoss", "damaged", `a blob of type ${code}`));
}

export const encodeHead = (state: HeadState): Uint8Array =>
  encodeRow(blobSchema, {
    etag: BigInt(state.etagSequence),
    lastModified: dateTimeOfMs(state.lastModifiedMs),
    created: dateTimeOfMs(state.createdMs),
    metadata: dictionaryOf(state.metadata),
    ...encodeLease(state.lease),
    blobType: typeCodes[state.blobType],
    contentLength: BigInt(state.contentLengthBytes),
    contentType: state.headers.contentTypeCleared === true ? state.headers.contentType : text(state.headers.contentType),
    contentEncoding: text(state.headers.contentEncoding),
    contentLanguage: text(state.headers.contentLanguage),
    contentMd5: state.headers.contentMd5.length > 0 ? state.headers.contentMd5 : undefined,
    cacheControl: text(state.headers.cacheControl),
    contentDisposition: text(state.headers.contentDisposition),
    generation: BigInt(state.generation),
    pieces: encodePieceStarts(state.pieceStarts),
    role: count(roles.indexOf(state.role)),
    versionStamp: bigCount(state.versionStamp),
    lastStamp: bigCount(state.lastStamp),
    snapshotCount: count(state.snapshotCount),
    tags: dictionaryOf(state.tags),
    tier: state.tier?.name,
    tierChanged: optionalTime(state.tier?.changedMs),
    expires: optionalTime(state.expiresMs),
    immutableUntil: optionalTime(state.immutability?.untilMs),
    immutabilityMode: state.immutability?.mode,
    legalHold: flag(state.legalHold),
    deletedAt: optionalTime(state.deleted?.atMs),
    purgeAt: optionalTime(state.deleted?.purgeMs),
    appendBlockCount: state.blobType === "AppendBlob" ? state.appendBlockCount : undefined,
    sealed: flag(state.sealed),
    sequenceNumber: state.blobType === "PageBlob" ? BigInt(state.sequenceNumber) : undefined,
    pageLayer: state.blobType === "PageBlob" ? BigInt(state.pageLayer) : undefined,
    copy: encodeCopy(state.copy),
    encryptionKeySha256: state.encryptionKeySha256,
    encryptionScope: state.encryptionScope,
    pathAccess: state.pathAccess,
  });

const cursor = new RowCursor(blobSchema);
const p = blobSchema;

/** Throws FailureError for a row that is damaged, or of a newer format. */
export const decodeHead = (bytes: Uint8Array): HeadState => cursor.read(bytes, headOf);

function headOf(row: RowCursor): HeadState {
  const tier = row.word(p.tier);
  const { role, lease, expiresMs, immutability, legalHold, deleted } = factsOf(row);
  const key = row.bytes(p.encryptionKeySha256);
  const pieces = row.bytes(p.pieces);
  return {
    role,
    etagSequence: row.int64(p.etag),
    lastModifiedMs: row.ms(p.lastModified) ?? 0,
    createdMs: row.ms(p.created) ?? 0,
    contentLengthBytes: row.int64(p.contentLength),
    headers: headersOf(row),
    metadata: metadataOf(row.dictionary(p.metadata)),
    generation: row.int64(p.generation),
    pieceStarts: pieces === undefined ? [] : intact(decodePieceStarts(pieces)),
    versionStamp: row.int64(p.versionStamp),
    lastStamp: row.int64(p.lastStamp),
    snapshotCount: row.int32(p.snapshotCount) ?? 0,
    lease,
    tags: metadataOf(row.dictionary(p.tags)),
    tier: tier === undefined ? undefined : { name: tier, changedMs: row.ms(p.tierChanged) ?? 0 },
    expiresMs,
    immutability,
    legalHold,
    deleted,
    blobType: typeOfCode(row.int32(p.blobType)),
    appendBlockCount: row.int32(p.appendBlockCount) ?? 0,
    sealed: row.flag(p.sealed),
    sequenceNumber: row.int64(p.sequenceNumber),
    pageLayer: row.int64(p.pageLayer),
    copy: decodeCopy(row.dictionary(p.copy)),
    encryptionKeySha256: key && new Uint8Array(key),
    encryptionScope: row.word(p.encryptionScope),
    pathAccess: row.word(p.pathAccess),
  };
}

/** The parts of a state that a listing decides by. */
export type HeadFacts = Pick<HeadState, "role" | "expiresMs" | "deleted" | "legalHold" | "immutability" | "lease">;

/** Reads only these parts of a row. Throws FailureError for a row that is damaged, or of a newer format. */
export const decodeFacts = (bytes: Uint8Array): HeadFacts => cursor.read(bytes, factsOf);

export const factsOf = (row: RowCursor): HeadFacts => {
  const immutableUntil = row.ms(p.immutableUntil);
  const deletedAt = row.ms(p.deletedAt);
  return {
    role: roles[row.int32(p.role) ?? 0] ?? "base",
    lease: leaseOf(row),
    expiresMs: row.ms(p.expires),
    immutability: immutableUntil === undefined ? undefined : { untilMs: immutableUntil, mode: row.word(p.immutabilityMode) ?? "" },
    legalHold: row.flag(p.legalHold),
    deleted: deletedAt === undefined ? undefined : { atMs: deletedAt, purgeMs: row.ms(p.purgeAt) ?? 0 },
  };
};

function leaseOf(row: RowCursor): Lease | undefined {
  const leaseState = row.int32(p.leaseState);
  if (leaseState === undefined) return undefined;
  const [leaseId, durationMs, grant] = [row.guid(p.leaseId), row.int64(p.leaseDurationMs), row.int64(p.leaseGrant)];
  return decodeLease({ leaseState, leaseId, leaseDurationMs: BigInt(durationMs), leaseGrant: BigInt(grant) });
}

function headersOf(row: RowCursor): BlobHeaders {
  const contentType = row.word(p.contentType);
  const md5 = row.bytes(p.contentMd5);
  return {
    contentType: contentType ?? "",
    contentTypeCleared: contentType === "",
    contentEncoding: row.word(p.contentEncoding) ?? "",
    contentLanguage: row.word(p.contentLanguage) ?? "",
    contentMd5: md5 === undefined ? emptyBytes : new Uint8Array(md5),
    cacheControl: row.word(p.cacheControl) ?? "",
    contentDisposition: row.word(p.contentDisposition) ?? "",
  };
}

export const noHeaders: BlobHeaders = {
  contentType: "",
  contentEncoding: "",
  contentLanguage: "",
  contentMd5: emptyBytes,
  cacheControl: "",
  contentDisposition: "",
};

/** A listed blob without any property. */
export const notListed: Blob = {
  name: "",
  etag: "",
  lastModifiedMs: 0,
  createdMs: 0,
  contentLengthBytes: 0,
  headers: noHeaders,
  metadata: {},
  blobType: "BlockBlob",
  uncommitted: false,
  committedBlockCount: 0,
  sealed: false,
  sequenceNumber: 0,
  snapshotStamp: 0,
  versionStamp: 0,
  isCurrentVersion: false,
  lease: { state: "available", status: "unlocked", duration: "" },
  tags: {},
  tagCount: 0,
  accessTier: "",
  accessTierInferred: false,
  legalHold: false,
};

export const defaultTier = "Hot";

/** Texts with which a blob is shown. */
export interface ShownOfBlob {
  readonly metadata: boolean;
  readonly tags: boolean;
}

const shownWhole: ShownOfBlob = { metadata: true, tags: true };

/** Returns what clients see of a blob; `stamp` is the time of a snapshot or version. */
export const blobOf = (
  context: Pick<PlanContext, "leases" | "wallMs">,
  name: string,
  state: HeadState,
  stamp = 0,
  shown: ShownOfBlob = shownWhole,
): Blob => ({
  name,
  etag: etagOf(state.etagSequence),
  lastModifiedMs: state.lastModifiedMs,
  createdMs: state.createdMs,
  contentLengthBytes: state.contentLengthBytes,
  headers: state.headers,
  metadata: shown.metadata ? state.metadata : notListed.metadata,
  blobType: state.blobType,
  uncommitted: false,
  committedBlockCount: state.appendBlockCount,
  sealed: state.sealed,
  sequenceNumber: state.sequenceNumber,
  copy: state.copy,
  encryptionKeySha256: state.encryptionKeySha256,
  encryptionScope: state.encryptionScope,
  pathAccess: state.pathAccess,
  snapshotStamp: state.role === "snapshot" ? stamp : 0,
  versionStamp: state.role === "version" ? stamp : state.role === "base" ? state.versionStamp : 0,
  isCurrentVersion: state.role === "base" && state.versionStamp > 0 && state.deleted === undefined,
  lease: viewOf(state.lease, context.leases),
  tags: shown.tags ? state.tags : notListed.tags,
  tagCount: state.tags === noTexts ? 0 : Object.keys(state.tags).length,
  accessTier: state.tier?.name ?? defaultTier,
  accessTierInferred: state.tier === undefined,
  accessTierChangedMs: state.tier?.changedMs,
  expiresMs: state.expiresMs,
  immutableUntilMs: state.immutability?.untilMs,
  immutabilityMode: state.immutability?.mode,
  legalHold: state.legalHold,
  deletedMs: state.deleted?.atMs,
  remainingRetentionDays: state.deleted === undefined ? undefined : daysLeft(state.deleted, context.wallMs),
});
