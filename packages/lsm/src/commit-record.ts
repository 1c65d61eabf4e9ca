/**
 * One record of the commit log: the transactions that waited together, in order. Transaction i of it has sequence first + i.
 *
 *   "SCMT" | format version u8 | owner epoch varint | first sequence varint | last ticket varint | transaction count varint
 *   | per transaction: write count varint | per write: kind u8 (0 put, 1 delete), key (sized), [value (sized)]
 *   | crc32c of all before u32
 *
 * (owner epoch, sequence) make replay idempotent: a record that was appended twice is applied once.
 */
import { assert, ByteReader, ByteWriter, DecodeError, newerFormat, type Outcome, ok } from "@stamp/base";
import { type Crc32c, damaged, takenWithChecksum } from "./checkpoint-block.ts";

export type Write =
  | { readonly kind: "put"; readonly key: Uint8Array; readonly value: Uint8Array }
  | { readonly kind: "delete"; readonly key: Uint8Array };

export interface CommitRecord {
  readonly ownerEpoch: number;
  readonly firstSequence: number;
  /** Highest ticket that a transaction of this record or an earlier one used. */
  readonly lastTicket: number;
  readonly transactions: readonly (readonly Write[])[];
}

const magic = [0x53, 0x43, 0x4d, 0x54];
const formatVersion = 1;

/** Returns an upper bound of what the writes add to a record. */
export function writesBytes(writes: readonly Write[]): number {
  let bytes = 8;
  for (const write of writes) bytes += 17 + write.key.length + (write.kind === "put" ? write.value.length : 0);
  return bytes;
}

export function encodeCommit(record: CommitRecord, crc32c: Crc32c): Uint8Array<ArrayBuffer> {
  assert(record.firstSequence > 0, "sequences start at 1");
  const writer = new ByteWriter(64 + record.transactions.reduce((sum, writes) => sum + writesBytes(writes), 0));
  for (const byte of magic) writer.byte(byte);
  writer.byte(formatVersion);
  writer.varint(record.ownerEpoch);
  writer.varint(record.firstSequence);
  writer.varint(record.lastTicket);
  writer.varint(record.transactions.length);
  for (const writes of record.transactions) {
    writer.varint(writes.length);
    for (const write of writes) {
      writer.byte(write.kind === "put" ? 0 : 1);
      writer.sized(write.key);
      if (write.kind === "put") writer.sized(write.value);
    }
  }
  return takenWithChecksum(writer, crc32c);
}

/** Decodes a commit. Keys and values are views: keeping one keeps the record. */
export function decodeCommit(bytes: Uint8Array, crc32c: Crc32c): Outcome<CommitRecord> {
  if (bytes.length < 9) return damaged("a commit record is too short");
  const end = bytes.length - 4;
  const stored = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(end, true);
  if (stored !== crc32c(bytes.subarray(0, end))) return damaged("the checksum of a commit record does not match");
  const reader = new ByteReader(bytes.subarray(0, end));
  try {
    for (const byte of magic) if (reader.byte() !== byte) return damaged("not a commit record");
    const version = reader.byte();
    if (version > formatVersion) return newerFormat("a commit record", { format: "commit-log", version });
    if (version !== formatVersion) return damaged(`a commit record of format version ${version}`);
    const ownerEpoch = reader.varint();
    const firstSequence = reader.varint();
    const lastTicket = reader.varint();
    const transactionCount = reader.varint();
    const transactions: Write[][] = [];
    for (let i = 0; i < transactionCount; i++) {
      const writeCount = reader.varint();
      const writes: Write[] = [];
      for (let j = 0; j < writeCount; j++) {
        const kind = reader.byte();
        if (kind > 1) return damaged("a write of unknown kind");
        const key = reader.sized();
        writes.push(kind === 1 ? { kind: "delete", key } : { kind: "put", key, value: reader.sized() });
      }
      transactions.push(writes);
    }
    if (reader.left !== 0) return damaged("bytes after a commit record");
    return ok({ ownerEpoch, firstSequence, lastTicket, transactions });
  } catch (error) {
    if (error instanceof DecodeError) return damaged(error.message);
    throw error;
  }
}
