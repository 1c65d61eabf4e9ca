/**
 * The frame around every small durable record that is kept in a key-value store:
 *
 *   kind (u8) | format version (u8) | payload ... | crc32c of all before it (u32, little endian)
 *
 * A truncated or flipped byte is a typed failure, never another value. An intact record of a later version is `newerFormat`, never `damaged`.
 */
import type { Outcome } from "../failure.ts";
import { ok, refused } from "../failure.ts";
import { type FormatName, newerFormat } from "../formats.ts";

/** Function that computes crc32c as the Digest port does. */
export type Checksum = (bytes: Uint8Array) => number;

const headerBytes = 2;
const trailerBytes = 4;

export function frameRecord(kind: number, version: number, payload: Uint8Array, checksum: Checksum): Uint8Array<ArrayBuffer> {
  const framed = new Uint8Array(headerBytes + payload.length + trailerBytes);
  framed[0] = kind;
  framed[1] = version;
  framed.set(payload, headerBytes);
  const end = headerBytes + payload.length;
  new DataView(framed.buffer).setUint32(end, checksum(framed.subarray(0, end)), true);
  return framed;
}

/** Returns a view of the payload, borrowed from `bytes`. Refused with `damaged`, or with `newerFormat` if it is intact and of a later version. */
export function unframeRecord(
  format: FormatName,
  kind: number,
  version: number,
  bytes: Uint8Array,
  checksum: Checksum,
): Outcome<Uint8Array> {
  if (bytes.length < headerBytes + trailerBytes) return damaged(`${bytes.length} bytes are too few for a record`);
  const end = bytes.length - trailerBytes;
  const stored = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(end, true);
  if (stored !== checksum(bytes.subarray(0, end))) return damaged("the checksum of a record does not match");
  if (bytes[0] !== kind) return damaged(`a record of kind ${bytes[0]} where kind ${kind} belongs`);
  const found = bytes[1] ?? 0;
  if (found > version) return newerFormat(`a record of kind ${kind}`, { format, version: found });
  if (found !== version) return damaged(`a record of format version ${bytes[1]}; this software reads version ${version}`);
  return ok(bytes.subarray(headerBytes, end));
}

const damaged = (message: string): Outcome<never> => refused("dataLoss", "damaged", message);
