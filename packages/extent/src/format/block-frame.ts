/**
 * A block frame: how one block lies inside an extent, on every replica alike. The address space of an extent is its frames one after
 * another; a Place names bytes of one frame's payload.
 *
 *      0        4           8                12           16                  16+4n
 *      +--------+-----------+----------------+------------+-------------------+---------------+
 *      | "SBLK" | headerCrc | payload length | chunk size | n × chunk crc32c  | payload       |
 *      +--------+-----------+----------------+------------+-------------------+---------------+
 *
 * All numbers are little-endian u32; n = ceil(payload length / chunk size); chunk size is 64 KiB. headerCrc is the crc32c of
 * (extent id u64, frame offset u64, header from byte 8): a frame is valid only at its own place in its own extent, so a misdirected
 * write or a stale page never passes for a block.
 */
import { assert, type ExtentId } from "@stamp/base";
import { putU64, viewOf } from "./binary.ts";
import type { Crc32c } from "./crc.ts";
import type { Slices } from "./slices.ts";

export const frameMagic = 0x4b4c4253;
export const chunkBytes = 65_536;
export const blockPayloadBytesMax: number = 4 * 1024 * 1024;
/** Largest payload of one append, in bytes. */
export const appendPayloadBytesMax: number = 8 * 1024 * 1024;
/** Largest number of blocks in one append. */
export const appendBlocksMax: number = 4_096;
/** Bytes that the headers of the blocks of one append take at most. */
export const appendHeadersBytesMax: number = 20 * appendBlocksMax + 1_024;
export const frameFixedBytes = 16;
const placeBytes = 16;

export const chunkCount = (payloadBytes: number): number => Math.ceil(payloadBytes / chunkBytes);
export const frameHeaderBytes = (payloadBytes: number): number => frameFixedBytes + 4 * chunkCount(payloadBytes);
export const frameBytes = (payloadBytes: number): number => frameHeaderBytes(payloadBytes) + payloadBytes;
/** The largest frame there is. */
export const frameBytesMax: number = frameBytes(blockPayloadBytesMax);

/** Returns the payload length of a frame of this total length; undefined when no frame has it. */
export function payloadBytesOf(totalBytes: number): number | undefined {
  const chunks = Math.ceil((totalBytes - frameFixedBytes) / (chunkBytes + 4));
  const payload = totalBytes - frameFixedBytes - 4 * chunks;
  return payload > 0 && payload <= blockPayloadBytesMax && chunkCount(payload) === chunks ? payload : undefined;
}

export interface FrameHeader {
  readonly payloadBytes: number;
  readonly headerBytes: number;
  /** Checksum of each chunk of the payload. */
  readonly chunkChecksums: Uint32Array;
}

export type FrameParse =
  | { readonly kind: "frame"; readonly header: FrameHeader }
  /** The header is longer than what was given. */
  | { readonly kind: "short"; readonly neededBytes: number }
  | { readonly kind: "invalid"; readonly why: string };

function headerChecksum(crc32c: Crc32c, extentId: ExtentId, offsetBytes: number, header: Uint8Array): number {
  const place = new Uint8Array(placeBytes);
  const view = viewOf(place);
  putU64(view, 0, extentId);
  putU64(view, 8, offsetBytes);
  return crc32c(header.subarray(8), crc32c(place));
}

/** Returns the header of the frame that will hold `payload` (borrowed) at `offsetBytes`. Owned by the caller. */
export function encodeFrameHeader(crc32c: Crc32c, extentId: ExtentId, offsetBytes: number, payload: Uint8Array): Uint8Array<ArrayBuffer> {
  assert(payload.length > 0 && payload.length <= blockPayloadBytesMax, "block payload length");
  const header = new Uint8Array(frameHeaderBytes(payload.length));
  const view = viewOf(header);
  view.setUint32(0, frameMagic, true);
  view.setUint32(8, payload.length, true);
  view.setUint32(12, chunkBytes, true);
  let at = frameFixedBytes;
  for (let from = 0; from < payload.length; from += chunkBytes) {
    view.setUint32(at, crc32c(payload.subarray(from, Math.min(from + chunkBytes, payload.length))), true);
    at += 4;
  }
  view.setUint32(4, headerChecksum(crc32c, extentId, offsetBytes, header), true);
  return header;
}

/** `bytes` (borrowed) begin at the frame; they may be longer than its header, or shorter (`short`). */
export function parseFrameHeader(crc32c: Crc32c, extentId: ExtentId, offsetBytes: number, bytes: Uint8Array): FrameParse {
  if (bytes.length < frameFixedBytes) return { kind: "short", neededBytes: frameFixedBytes };
  const view = viewOf(bytes);
  if (view.getUint32(0, true) !== frameMagic) return { kind: "invalid", why: "no block frame here" };
  const payloadBytes = view.getUint32(8, true);
  if (payloadBytes === 0 || payloadBytes > blockPayloadBytesMax) return { kind: "invalid", why: "frame payload length" };
  if (view.getUint32(12, true) !== chunkBytes) return { kind: "invalid", why: "frame chunk size" };
  const headerBytes = frameHeaderBytes(payloadBytes);
  if (bytes.length < headerBytes) return { kind: "short", neededBytes: headerBytes };
  if (headerChecksum(crc32c, extentId, offsetBytes, bytes.subarray(0, headerBytes)) !== view.getUint32(4, true)) {
    return { kind: "invalid", why: "frame header checksum" };
  }
  const chunkChecksums = new Uint32Array(chunkCount(payloadBytes));
  for (let i = 0; i < chunkChecksums.length; i++) chunkChecksums[i] = view.getUint32(frameFixedBytes + 4 * i, true);
  return { kind: "frame", header: { payloadBytes, headerBytes, chunkChecksums } };
}

/** True if these payload bytes, from the begin of chunk `firstChunk` to a chunk's end, fit the header's checksums. */
export function chunksIntact(crc32c: Crc32c, header: FrameHeader, firstChunk: number, bytes: Uint8Array): boolean {
  let chunk = firstChunk;
  for (let from = 0; from < bytes.length; from += chunkBytes) {
    if (crc32c(bytes.subarray(from, Math.min(from + chunkBytes, bytes.length))) !== header.chunkChecksums[chunk]) return false;
    chunk += 1;
  }
  return true;
}

export interface FrameAt {
  readonly offsetBytes: number;
  readonly headerBytes: number;
  readonly payloadBytes: number;
}

export type FrameWalk = { readonly kind: "frames"; readonly frames: FrameAt[] } | { readonly kind: "invalid"; readonly why: string };

/**
 * Walks whole frames that begin at `offsetBytes` of the extent and fill `slices` exactly. With `payloads` every chunk is verified too;
 * without, the caller has verified one checksum over all of it.
 */
export function walkFrames(
  crc32c: Crc32c,
  extentId: ExtentId,
  offsetBytes: number,
  slices: Slices,
  options: { readonly payloads: boolean },
): FrameWalk {
  const frames: FrameAt[] = [];
  let at = 0;
  while (at < slices.lengthBytes) {
    let parsed = parseFrameHeader(crc32c, extentId, offsetBytes + at, slices.read(at, frameFixedBytes));
    if (parsed.kind === "short" && parsed.neededBytes > frameFixedBytes) {
      parsed = parseFrameHeader(crc32c, extentId, offsetBytes + at, slices.read(at, parsed.neededBytes));
    }
    if (parsed.kind === "short") return { kind: "invalid", why: "frame header cut off" };
    if (parsed.kind === "invalid") return parsed;
    const { headerBytes, payloadBytes } = parsed.header;
    if (at + headerBytes + payloadBytes > slices.lengthBytes) return { kind: "invalid", why: "frame payload cut off" };
    if (options.payloads && !chunksIntact(crc32c, parsed.header, 0, slices.read(at + headerBytes, payloadBytes))) {
      return { kind: "invalid", why: "frame payload checksum" };
    }
    frames.push({ offsetBytes: offsetBytes + at, headerBytes, payloadBytes });
    at += headerBytes + payloadBytes;
  }
  return { kind: "frames", frames };
}
