/**
 * Proof that a key-value store is complete (docs/formats/store-proof.md). LevelDB opens a log with a damaged record, drops it and what
 * follows, and says nothing; tables are read without their checksums. So the store carries a proof of its own content, and a mark of the last
 * acknowledged batch lies outside it.
 *
 *   proof, in the store under the key "proof", written in each batch:
 *     'D' | 1 | lineage 16 bytes | sequence u64 BE | count u64 BE | sum 4 × u32 BE | crc32c
 *   mark, a file of two slots of 4,096 bytes; batch n goes to slot n mod 2, synced after the batch and before its acknowledgement:
 *     'M' | 1 | the same fields | crc32c | zeros
 *
 * Invariants:
 *   - The sum is that of a hash of each (key, value), lane by lane modulo 2^32: equal content has an equal sum, whatever the order.
 *   - The mark never names a batch that the store did not have durably. The store may be ahead by what was never acknowledged.
 *   - A slot that is torn by a power cut leaves the other one, of the batch before, which is the last acknowledged one then.
 */
import { equalBytes, frameRecord, type Outcome, ok, refused, unframeRecord, utf8 } from "@stamp/base";
import type { Digest } from "../digest.ts";

export const proofKey: Uint8Array = utf8("proof");
export const markSlotBytes = 4_096;
export const markBytes: number = 2 * markSlotBytes;

export interface StoreProof {
  /** Lineage made when the store was; 16 bytes. A store that was restored or made anew is of another one. */
  readonly lineage: Uint8Array;
  /** Number of the last batch, from 1; 0 before the first. */
  readonly sequence: number;
  /** Number of keys, without that of the proof. */
  readonly count: number;
  readonly sum: Sum;
}

export type Sum = readonly [number, number, number, number];
export const emptySum: Sum = [0, 0, 0, 0];

const proofKind = 0x44;
const markKind = 0x4d;
const version = 1;
const lineageBytes = 16;
const payloadBytes = lineageBytes + 8 + 8 + 16;
const framedBytes = payloadBytes + 6;

/** Returns the hash of one entry, to be added to a sum. Borrows both. */
export function entryHash(digest: Digest, key: Uint8Array, value: Uint8Array): Sum {
  const bytes = new Uint8Array(4 + key.length + value.length);
  new DataView(bytes.buffer).setUint32(0, key.length);
  bytes.set(key, 4);
  bytes.set(value, 4 + key.length);
  const hash = digest.sha256(bytes);
  const view = new DataView(hash.buffer, hash.byteOffset, 16);
  return [view.getUint32(0), view.getUint32(4), view.getUint32(8), view.getUint32(12)];
}

export const addedToProof = (a: Sum, b: Sum): Sum => [(a[0] + b[0]) >>> 0, (a[1] + b[1]) >>> 0, (a[2] + b[2]) >>> 0, (a[3] + b[3]) >>> 0];
export const removedFromProof = (a: Sum, b: Sum): Sum => [
  (a[0] - b[0]) >>> 0,
  (a[1] - b[1]) >>> 0,
  (a[2] - b[2]) >>> 0,
  (a[3] - b[3]) >>> 0,
];
export const sameContent = (a: Pick<StoreProof, "count" | "sum">, b: Pick<StoreProof, "count" | "sum">): boolean =>
  a.count === b.count && a.sum.every((lane, i) => lane === b.sum[i]);

export const encodeProof = (digest: Digest, proof: StoreProof): Uint8Array => encode(digest, proofKind, proof);
export const decodeProof = (digest: Digest, bytes: Uint8Array): Outcome<StoreProof> => decode(digest, proofKind, bytes);
/** Encodes a mark for one slot, without the zeros behind it. */
export const encodeMark = (digest: Digest, proof: StoreProof): Uint8Array => encode(digest, markKind, proof);
export const markOffset = (sequence: number): number => (sequence % 2) * markSlotBytes;

/** Returns a whole mark file whose two slots say the same. */
export function encodeMarkFile(digest: Digest, proof: StoreProof): Uint8Array {
  const file = new Uint8Array(markBytes);
  const slot = encodeMark(digest, proof);
  for (const offset of [0, markSlotBytes]) file.set(slot, offset);
  return file;
}

/** Returns the newest readable slot. Refused with `damaged` when there is none, or when both are of different stores. */
export function decodeMarkFile(digest: Digest, file: Uint8Array): Outcome<StoreProof> {
  const slots = [0, markSlotBytes].map((offset) => decode(digest, markKind, file.subarray(offset, offset + framedBytes)));
  const found = slots.flatMap((slot) => (slot.ok ? [slot.value] : []));
  const [first, second] = found;
  if (first === undefined) return refused("dataLoss", "damaged", "neither of its two slots can be read");
  if (second === undefined) return ok(first);
  if (!equalBytes(first.lineage, second.lineage)) return refused("dataLoss", "damaged", "its two slots are of different stores");
  return ok(first.sequence > second.sequence ? first : second);
}

function encode(digest: Digest, kind: number, { lineage, sequence, count, sum }: StoreProof): Uint8Array {
  const payload = new Uint8Array(payloadBytes);
  const view = new DataView(payload.buffer);
  payload.set(lineage);
  view.setBigUint64(lineageBytes, BigInt(sequence));
  view.setBigUint64(lineageBytes + 8, BigInt(count));
  for (const [i, lane] of sum.entries()) view.setUint32(lineageBytes + 16 + 4 * i, lane);
  return frameRecord(kind, version, payload, (bytes) => digest.crc32c(bytes));
}

function decode(digest: Digest, kind: number, bytes: Uint8Array): Outcome<StoreProof> {
  const framed = unframeRecord("store-proof", kind, version, bytes, (content) => digest.crc32c(content));
  if (!framed.ok) return framed;
  const payload = framed.value;
  if (payload.length !== payloadBytes) return refused("dataLoss", "damaged", `a proof has ${payloadBytes} bytes, not ${payload.length}`);
  const view = new DataView(payload.buffer, payload.byteOffset, payload.length);
  const lane = (i: number): number => view.getUint32(lineageBytes + 16 + 4 * i);
  return ok({
    lineage: payload.slice(0, lineageBytes),
    sequence: Number(view.getBigUint64(lineageBytes)),
    count: Number(view.getBigUint64(lineageBytes + 8)),
    sum: [lane(0), lane(1), lane(2), lane(3)],
  });
}
