/** Head, staging and block rows of a blob, and container rows: between what is stored and what operations speak of. */
import { concatBytes, emptyBytes, ok, present, refused } from "@stamp/base";
import { etagOf } from "../etag.ts";
import type { Blob, BlobHeaders, BlobType, Container, Metadata } from "../operation.ts";
import { intact } from "../plan.ts";
import { type DictionaryEntry, dateTimeOfMs, decodeRow, encodeRow, msOfDateTime, type Place, type RowOf } from "../rows/row.ts";
import { blobSchema } from "../rows/schemas.ts";
import { decodeSignedIdentifiers, encodeSignedIdentifiers, type SignedIdentifier } from "../signed-identifiers.ts";
import { decodePieceStarts, encodePieceStarts } from "./content.ts";

type BlobRow = RowOf<typeof blobSchema>;

export interface ContainerState {
  readonly etagSequence: number;
  readonly lastModifiedMs: number;
  readonly metadata: Metadata;
  readonly incarnation: number;
  readonly publicAccess: string;
  readonly signedIdentifiers: readonly SignedIdentifier[];
}

export interface HeadState {
  readonly etagSequence: number;
  readonly lastModifiedMs: number;
  readonly createdMs: number;
  readonly contentLengthBytes: number;
  readonly headers: BlobHeaders;
  readonly metadata: Metadata;
  /** Which content rows are its own. */
  readonly generation: number;
  /** Bytes before each content row. */
  readonly pieceStarts: readonly number[];
  readonly blobType: BlobType;
  /** Of an append blob. */
  readonly appendBlockCount: number;
  readonly sealed: boolean;
  /** Of a page blob. */
  readonly sequenceNumber: number;
  /** Of a page blob: which layer is written (pages.ts). Whoever keeps this state (a snapshot) gives the blob a new one. */
  readonly pageLayer: number;
}

/** Of a blob with uncommitted blocks. */
export interface StagingState {
  /** Which block rows count; never used again, so what is left of older ones is never met. */
  readonly generation: number;
  readonly blockIdLength: number;
  readonly blockCount: number;
  readonly createdMs: number;
}

export interface StagedBlock {
  readonly sizeBytes: number;
  readonly places: readonly Place[];
}

const int = (value: bigint | undefined): number => Number(value ?? 0n);
const ms = (value: bigint | undefined): number => (value === undefined ? 0 : msOfDateTime(value));
const text = (value: string): string | undefined => (value === "" ? undefined : value);

export const dictionaryOf = (metadata: Metadata): DictionaryEntry[] | undefined => {
  const entries = Object.entries(metadata).map(([name, value]): DictionaryEntry => ({ name, type: "string", value }));
  return entries.length > 0 ? entries : undefined;
};

/** Without a prototype: a name may be anything. */
export function metadataOf(entries: readonly DictionaryEntry[] | undefined): Metadata {
  const metadata: Record<string, string> = Object.create(null);
  for (const entry of entries ?? []) metadata[entry.name] = String(entry.value);
  return metadata;
}

export const encodeContainer = (state: ContainerState): Uint8Array =>
  encodeRow(blobSchema, {
    etag: BigInt(state.etagSequence),
    lastModified: dateTimeOfMs(state.lastModifiedMs),
    metadata: dictionaryOf(state.metadata),
    incarnation: BigInt(state.incarnation),
    publicAccess: text(state.publicAccess),
    signedIdentifiers: encodeSignedIdentifiers(state.signedIdentifiers),
  });

export function decodeContainer(bytes: Uint8Array): ContainerState {
  const row = intact(decodeRow(blobSchema, bytes));
  return {
    etagSequence: int(row.etag),
    lastModifiedMs: ms(row.lastModified),
    metadata: metadataOf(row.metadata),
    incarnation: int(row.incarnation),
    publicAccess: row.publicAccess ?? "",
    signedIdentifiers: decodeSignedIdentifiers(row.signedIdentifiers),
  };
}

export const containerOf = (name: string, state: ContainerState): Container => ({
  name,
  etag: etagOf(state.etagSequence),
  lastModifiedMs: state.lastModifiedMs,
  metadata: state.metadata,
  incarnation: state.incarnation,
  publicAccess: state.publicAccess,
  signedIdentifiers: state.signedIdentifiers,
});

/** As stored. */
const typeCodes = { BlockBlob: 1, PageBlob: 2, AppendBlob: 3 } as const;

function typeOfCode(code: number | undefined): BlobType {
  const found = (Object.keys(typeCodes) as BlobType[]).find((type) => typeCodes[type] === (code ?? typeCodes.BlockBlob));
  return intact(found ? ok(found) : refused("dataLoss", "damaged", `a blob of type ${code}`));
}

export const encodeHead = (state: HeadState): Uint8Array =>
  encodeRow(blobSchema, {
    etag: BigInt(state.etagSequence),
    lastModified: dateTimeOfMs(state.lastModifiedMs),
    created: dateTimeOfMs(state.createdMs),
    metadata: dictionaryOf(state.metadata),
    blobType: typeCodes[state.blobType],
    contentLength: BigInt(state.contentLengthBytes),
    contentType: text(state.headers.contentType),
    contentEncoding: text(state.headers.contentEncoding),
    contentLanguage: text(state.headers.contentLanguage),
    contentMd5: state.headers.contentMd5.length > 0 ? state.headers.contentMd5 : undefined,
    cacheControl: text(state.headers.cacheControl),
    contentDisposition: text(state.headers.contentDisposition),
    generation: BigInt(state.generation),
    pieces: encodePieceStarts(state.pieceStarts),
    appendBlockCount: state.blobType === "AppendBlob" ? state.appendBlockCount : undefined,
    sealed: state.sealed || undefined,
    sequenceNumber: state.blobType === "PageBlob" ? BigInt(state.sequenceNumber) : undefined,
    pageLayer: state.blobType === "PageBlob" ? BigInt(state.pageLayer) : undefined,
  });

export function decodeHead(bytes: Uint8Array): HeadState {
  const row = intact(decodeRow(blobSchema, bytes));
  return {
    etagSequence: int(row.etag),
    lastModifiedMs: ms(row.lastModified),
    createdMs: ms(row.created),
    contentLengthBytes: int(row.contentLength),
    headers: headersOf(row),
    metadata: metadataOf(row.metadata),
    generation: int(row.generation),
    pieceStarts: intact(decodePieceStarts(row.pieces ?? Uint8Array.of(0))),
    blobType: typeOfCode(row.blobType),
    appendBlockCount: row.appendBlockCount ?? 0,
    sealed: row.sealed ?? false,
    sequenceNumber: int(row.sequenceNumber),
    pageLayer: int(row.pageLayer),
  };
}

const headersOf = (row: BlobRow): BlobHeaders => ({
  contentType: row.contentType ?? "",
  contentEncoding: row.contentEncoding ?? "",
  contentLanguage: row.contentLanguage ?? "",
  contentMd5: row.contentMd5 ? concatBytes([row.contentMd5]) : emptyBytes,
  cacheControl: row.cacheControl ?? "",
  contentDisposition: row.contentDisposition ?? "",
});

export const noHeaders: BlobHeaders = {
  contentType: "",
  contentEncoding: "",
  contentLanguage: "",
  contentMd5: emptyBytes,
  cacheControl: "",
  contentDisposition: "",
};

export const blobOf = (name: string, state: HeadState): Blob => ({
  name,
  etag: etagOf(state.etagSequence),
  lastModifiedMs: state.lastModifiedMs,
  createdMs: state.createdMs,
  contentLengthBytes: state.contentLengthBytes,
  headers: state.headers,
  metadata: state.metadata,
  blobType: state.blobType,
  uncommitted: false,
  committedBlockCount: state.appendBlockCount,
  sealed: state.sealed,
  sequenceNumber: state.sequenceNumber,
});

/** A blob that has uncommitted blocks only, as it is listed. */
export const uncommittedBlobOf = (name: string, staging: StagingState): Blob => ({
  name,
  etag: "",
  lastModifiedMs: staging.createdMs,
  createdMs: staging.createdMs,
  contentLengthBytes: 0,
  headers: noHeaders,
  metadata: {},
  blobType: "BlockBlob",
  uncommitted: true,
  committedBlockCount: 0,
  sealed: false,
  sequenceNumber: 0,
});

export const encodeStaging = (state: StagingState): Uint8Array =>
  encodeRow(blobSchema, {
    generation: BigInt(state.generation),
    blockIdLength: state.blockIdLength,
    blockCount: state.blockCount,
    created: dateTimeOfMs(state.createdMs),
  });

export function decodeStaging(bytes: Uint8Array): StagingState {
  const row = intact(decodeRow(blobSchema, bytes));
  return {
    generation: int(row.generation),
    blockIdLength: present(row.blockIdLength, "the block id length of a staging row"),
    blockCount: row.blockCount ?? 0,
    createdMs: ms(row.created),
  };
}

export const encodeStagedBlock = (block: StagedBlock, wallMs: number): Uint8Array =>
  encodeRow(blobSchema, { size: BigInt(block.sizeBytes), places: block.places, created: dateTimeOfMs(wallMs) });

export function decodeStagedBlock(bytes: Uint8Array): StagedBlock {
  const row = intact(decodeRow(blobSchema, bytes));
  return { sizeBytes: int(row.size), places: row.places ?? [] };
}
