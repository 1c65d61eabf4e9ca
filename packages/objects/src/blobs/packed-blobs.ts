/**
 * Entries of a listing as they are stored, in one field of bytes. As messages, a thousand blobs would be tens of thousands of objects in the
 * process that answers and in the process that asks. The field begins with the number of entries (u32 LE); the entries follow:
 *
 *      0        1        4              8               12             16              24
 *      +--------+--------+--------------+---------------+--------------+---------------+---------------+--------------+
 *      | kind   | lease  | days, u32 LE | name, u32 LE  | row, u32 LE  | stamp, f64 LE | bytes of name | bytes of row |
 *      +--------+--------+--------------+---------------+--------------+---------------+---------------+--------------+
 *
 * - kind: 0 a common prefix; 1 a blob, snapshot or version; 2 a blob with uncommitted blocks only; 3 a name with versions only.
 * - lease: a number of `leaseViews`. Only the server that has the row knows when a timed lease ends.
 * - days: until a state that was deleted softly is gone. Name and row: lengths in bytes; only kind 1 has a row (state/head-row.ts).
 * - stamp: of a kept row; of kind 2, its creation in milliseconds since 1970; else 0.
 */
import { assert, type BlobHeaders, FailureError, fromUtf8, utf8 } from "@stamp/base";
import { etagOf } from "../etag.ts";
import type { Metadata } from "../object-keys.ts";
import type { BlobType, CopyState } from "../operation.ts";
import type { PlanContext } from "../plan.ts";
import type { Blob } from "../results.ts";
import { damagedRow } from "../rows/row.ts";
import { RowCursor } from "../rows/row-cursor.ts";
import { blobSchema } from "../rows/schemas.ts";
import { type LeaseView, viewOf } from "./protect/leases.ts";
import { daysLeft } from "./protect/retention.ts";
import { decodeCopy } from "./state/copy-state.ts";
import {
  decodeFacts,
  decodeHead,
  defaultTier,
  encodeHead,
  type HeadFacts,
  notListed,
  type ShownOfBlob,
  typeOfCode,
} from "./state/head-row.ts";
import { metadataOf } from "./state/row-values.ts";
import type { StagingState } from "./state/staging-rows.ts";

const kinds = { prefix: 0, state: 1, uncommitted: 2, versionsOnly: 3 } as const;
const headerBytes = 24;
const countBytes = 4;
const firstBytes = 16 * 1024;
/** Longer rows are packed without what a listing does not show. */
const rowBytesWhole = 1024;

/** The views that `viewOf` gives. */
const leaseViews: readonly LeaseView[] = [
  notListed.lease as LeaseView,
  { state: "leased", status: "locked", duration: "infinite" },
  { state: "leased", status: "locked", duration: "fixed" },
  { state: "breaking", status: "locked", duration: "" },
  { state: "broken", status: "unlocked", duration: "" },
  { state: "expired", status: "unlocked", duration: "" },
];

/** Writes the entries of one page. */
export class BlobPacker {
  readonly #context: Pick<PlanContext, "leases" | "wallMs">;
  readonly #shown: ShownOfBlob;
  #bytes = new Uint8Array(firstBytes);
  #view = new DataView(this.#bytes.buffer);
  #at = countBytes;
  #count = 0;

  constructor(context: Pick<PlanContext, "leases" | "wallMs">, shown: ShownOfBlob) {
    this.#context = context;
    this.#shown = shown;
  }

  decode(row: Uint8Array): HeadFacts {
    return decodeFacts(row);
  }

  prefix(name: string): void {
    this.#entry(kinds.prefix, name);
  }

  uncommitted(name: string, { createdMs }: StagingState): void {
    this.#entry(kinds.uncommitted, name, undefined, createdMs);
  }

  versionsOnly(name: string): void {
    this.#entry(kinds.versionsOnly, name);
  }

  /** Packs a state; `row`: head row or kept row that `state` was decoded from. */
  state(name: string, { lease, deleted }: HeadFacts, row: Uint8Array, stamp: number): void {
    const start = this.#at;
    this.#entry(kinds.state, name, row.length > rowBytesWhole ? this.#shortened(row) : row, stamp);
    if (lease !== undefined) this.#bytes[start + 1] = numberOfView(viewOf(lease, this.#context.leases));
    if (deleted !== undefined) this.#view.setUint32(start + 4, daysLeft(deleted, this.#context.wallMs), true);
  }

  /** Returns the page. The packer is of no use any more. */
  finish(): Uint8Array<ArrayBuffer> {
    this.#view.setUint32(0, this.#count, true);
    return this.#bytes.subarray(0, this.#at);
  }

  #shortened(row: Uint8Array): Uint8Array {
    const state = decodeHead(row);
    return encodeHead({ ...state, metadata: this.#shown.metadata ? state.metadata : notListed.metadata, pieceStarts: [] });
  }

  #entry(kind: number, name: string, row: Uint8Array | undefined = undefined, stamp = 0): void {
    const nameBytes = utf8(name);
    const rowBytes = row?.length ?? 0;
    this.#reserve(headerBytes + nameBytes.length + rowBytes);
    const at = this.#at;
    this.#bytes[at] = kind;
    this.#view.setUint32(at + 8, nameBytes.length, true);
    this.#view.setUint32(at + 12, rowBytes, true);
    this.#view.setFloat64(at + 16, stamp, true);
    this.#bytes.set(nameBytes, at + headerBytes);
    if (row !== undefined) this.#bytes.set(row, at + headerBytes + nameBytes.length);
    this.#at += headerBytes + nameBytes.length + rowBytes;
    this.#count++;
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(2 * this.#bytes.length, this.#at + bytes));
    grown.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}

function numberOfView(view: LeaseView): number {
  const number = leaseViews.findIndex(({ state, duration }) => state === view.state && duration === view.duration);
  assert(number >= 0, "a view of a lease has a number");
  return number;
}

const damaged = (): FailureError => new FailureError(damagedRow("packed blobs are cut off").failure);

/** Returns the number of entries. Throws FailureError for bytes that are no packed blobs. */
export function countOfPacked(packed: Uint8Array): number {
  if (packed.length < countBytes) throw damaged();
  return viewOfBytes(packed).getUint32(0, true);
}

const viewOfBytes = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/**
 * Reads one entry after another. What it says of a blob is what the message would have said; it is read where it lies, when it is asked for. Good
 * until the next entry.
 */
export class PackedBlob implements Blob {
  readonly #packed: Uint8Array;
  readonly #view: DataView;
  readonly #showsTagCount: boolean;
  readonly #row = new RowCursor(blobSchema);
  #at = countBytes;
  #kind = 0;
  #lease = 0;
  #days = 0;
  #stamp = 0;
  #nameAt = 0;
  #rowAt = 0;
  readonly headers: BlobHeaders = new PackedHeaders(this.#row);

  constructor(packed: Uint8Array, showsTagCount = true) {
    this.#packed = packed;
    this.#view = viewOfBytes(packed);
    this.#showsTagCount = showsTagCount;
  }

  /** Goes to the next entry. False at the end. Throws FailureError for bytes that are no packed blobs. */
  next(): boolean {
    const at = this.#at;
    if (at === this.#packed.length) return false;
    const nameAt = at + headerBytes;
    if (nameAt > this.#packed.length) throw damaged();
    const rowAt = nameAt + this.#view.getUint32(at + 8, true);
    const end = rowAt + this.#view.getUint32(at + 12, true);
    if (end > this.#packed.length) throw damaged();
    this.#kind = this.#packed[at] as number;
    this.#lease = this.#packed[at + 1] as number;
    this.#days = this.#view.getUint32(at + 4, true);
    this.#stamp = this.#view.getFloat64(at + 16, true);
    this.#nameAt = nameAt;
    this.#rowAt = rowAt;
    this.#at = end;
    return true;
  }

  /** Opens the row and returns what `make` reads. Throws FailureError for a row that is damaged, or of a newer format. */
  read<T>(make: (blob: PackedBlob) => T): T {
    return this.#row.read(this.#kind === kinds.state ? this.#packed.subarray(this.#rowAt, this.#at) : emptyRow, () => make(this));
  }

  get isPrefix(): boolean {
    return this.#kind === kinds.prefix;
  }
  get name(): string {
    return fromUtf8(this.#packed.subarray(this.#nameAt, this.#rowAt));
  }
  get uncommitted(): boolean {
    return this.#kind === kinds.uncommitted;
  }
  get versionsOnly(): true | undefined {
    return this.#kind === kinds.versionsOnly ? true : undefined;
  }
  get etag(): string {
    return this.#kind === kinds.state ? etagOf(this.#row.int64(p.etag)) : "";
  }
  get lastModifiedMs(): number {
    return this.uncommitted ? this.#stamp : (this.#row.ms(p.lastModified) ?? 0);
  }
  get createdMs(): number {
    return this.uncommitted ? this.#stamp : (this.#row.ms(p.created) ?? 0);
  }
  get contentLengthBytes(): number {
    return this.#row.int64(p.contentLength);
  }
  get metadata(): Metadata {
    return metadataOf(this.#row.dictionary(p.metadata));
  }
  get blobType(): BlobType {
    return typeOfCode(this.#row.int32(p.blobType));
  }
  get committedBlockCount(): number {
    return this.#row.int32(p.appendBlockCount) ?? 0;
  }
  get sealed(): boolean {
    return this.#row.flag(p.sealed);
  }
  get sequenceNumber(): number {
    return this.#row.int64(p.sequenceNumber);
  }
  get copy(): CopyState | undefined {
    return decodeCopy(this.#row.dictionary(p.copy));
  }
  get snapshotStamp(): number {
    return this.#row.int32(p.role) === 1 ? this.#stamp : 0;
  }
  get versionStamp(): number {
    const role = this.#row.int32(p.role);
    return role === undefined ? this.#row.int64(p.versionStamp) : role === 2 ? this.#stamp : 0;
  }
  get isCurrentVersion(): boolean {
    const row = this.#row;
    return row.int32(p.role) === undefined && row.int64(p.versionStamp) > 0 && row.ms(p.deletedAt) === undefined;
  }
  get lease(): LeaseView {
    return leaseViews[this.#lease] ?? (notListed.lease as LeaseView);
  }
  get tags(): Metadata {
    return metadataOf(this.#row.dictionary(p.tags));
  }
  get tagCount(): number {
    return this.#showsTagCount ? this.#row.entries(p.tags) : 0;
  }
  get accessTier(): string {
    return this.#kind === kinds.state ? (this.#row.word(p.tier) ?? defaultTier) : "";
  }
  get accessTierInferred(): boolean {
    return this.#kind === kinds.state && this.#row.word(p.tier) === undefined;
  }
  get accessTierChangedMs(): number | undefined {
    return this.#row.word(p.tier) === undefined ? undefined : (this.#row.ms(p.tierChanged) ?? 0);
  }
  get expiresMs(): number | undefined {
    return this.#row.ms(p.expires);
  }
  get immutableUntilMs(): number | undefined {
    return this.#row.ms(p.immutableUntil);
  }
  get immutabilityMode(): string | undefined {
    return this.immutableUntilMs === undefined ? undefined : (this.#row.word(p.immutabilityMode) ?? "");
  }
  get legalHold(): boolean {
    return this.#row.flag(p.legalHold);
  }
  get deletedMs(): number | undefined {
    return this.#row.ms(p.deletedAt);
  }
  get remainingRetentionDays(): number | undefined {
    return this.deletedMs === undefined ? undefined : this.#days;
  }
  get encryptionKeySha256(): Uint8Array | undefined {
    return this.#row.bytes(p.encryptionKeySha256);
  }
  get encryptionScope(): string | undefined {
    return this.#row.word(p.encryptionScope);
  }
}

const p = blobSchema;

/** Encoded row without properties. */
const emptyRow = Uint8Array.of(1, 0);

class PackedHeaders implements BlobHeaders {
  readonly #row: RowCursor;

  constructor(row: RowCursor) {
    this.#row = row;
  }

  get contentType(): string {
    return this.#row.word(p.contentType) ?? "";
  }
  get contentTypeCleared(): boolean {
    return this.#row.word(p.contentType) === "";
  }
  get contentEncoding(): string {
    return this.#row.word(p.contentEncoding) ?? "";
  }
  get contentLanguage(): string {
    return this.#row.word(p.contentLanguage) ?? "";
  }
  get contentMd5(): Uint8Array {
    return this.#row.bytes(p.contentMd5) ?? notListed.headers.contentMd5;
  }
  get cacheControl(): string {
    return this.#row.word(p.cacheControl) ?? "";
  }
  get contentDisposition(): string {
    return this.#row.word(p.contentDisposition) ?? "";
  }
}
