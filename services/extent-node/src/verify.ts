/**
 * Reads a whole replica and compares it with all it says of itself: every frame header, every chunk, that the frames end at its length, and
 * the checksum over everything that was recorded when it was sealed. For scrub, fsck and the check of a running node.
 */
import { concatBytes, type ExtentId } from "@stamp/base";
import { type Crc32c, parseFrameHeader, Slices, walkFrames } from "@stamp/extent";
import { DiskError } from "@stamp/ports";
import type { Io } from "./disk-queue.ts";
import type { LocalExtent } from "./local-extent.ts";
import type { Node } from "./node.ts";

export type Verified =
  | { readonly kind: "intact"; readonly bytes: number; readonly checksum: number }
  | { readonly kind: "bad"; readonly offsetBytes: number; readonly why: string };

export interface Content {
  readonly id: ExtentId;
  readonly lengthBytes: number;
  /** Of everything, when it is known. */
  readonly checksum: number | undefined;
  /** Exactly these bytes of the content, or fewer when they are not there. May throw DiskError. */
  read(offsetBytes: number, lengthBytes: number): Promise<Uint8Array>;
}

const pieceBytes = 1024 * 1024;

/** `pace` is called before each piece is read; false ends it (undefined). */
export async function verifyContent(
  crc32c: Crc32c,
  content: Content,
  pace: (bytes: number) => Promise<boolean> = async () => true,
): Promise<Verified | undefined> {
  const { id, lengthBytes } = content;
  let checksum = 0;
  let at = 0;
  /** Read, not yet a whole frame. */
  let carried: Uint8Array = new Uint8Array(0);
  while (at < lengthBytes) {
    const from = at + carried.length;
    const wanted = Math.min(pieceBytes, lengthBytes - from);
    if (!(await pace(wanted))) return undefined;
    let piece: Uint8Array;
    try {
      piece = await content.read(from, wanted);
    } catch (error) {
      if (error instanceof DiskError && (error.kind === "io" || error.kind === "notFound"))
        return { kind: "bad", offsetBytes: from, why: `it can't be read: ${error.message}` };
      throw error;
    }
    if (piece.length < wanted) return { kind: "bad", offsetBytes: from + piece.length, why: `it ends before ${lengthBytes}` };
    carried = carried.length === 0 ? piece : concatBytes([carried, piece]);
    const whole = wholeFrames(crc32c, id, at, carried);
    // What is no frame is left in, so that the walk names it.
    const frames = whole.invalid ? carried : carried.subarray(0, whole.bytes);
    const walked = walkFrames(crc32c, id, at, new Slices([frames]), { payloads: true });
    if (walked.kind === "invalid") return { kind: "bad", offsetBytes: at, why: walked.why };
    checksum = crc32c(frames, checksum);
    at += frames.length;
    carried = carried.subarray(frames.length);
    if (from + piece.length === lengthBytes && at < lengthBytes) {
      return { kind: "bad", offsetBytes: at, why: `the last block does not end at ${lengthBytes}` };
    }
  }
  if (content.checksum !== undefined && content.checksum !== checksum) {
    return { kind: "bad", offsetBytes: 0, why: `the checksum of the content is ${checksum}, recorded was ${content.checksum}` };
  }
  return { kind: "intact", bytes: lengthBytes, checksum };
}

/** How much of `bytes` is whole frames by their headers, and whether something that is no frame follows. */
export function wholeFrames(crc32c: Crc32c, id: ExtentId, offsetBytes: number, bytes: Uint8Array): { bytes: number; invalid: boolean } {
  let at = 0;
  for (;;) {
    const parsed = parseFrameHeader(crc32c, id, offsetBytes + at, bytes.subarray(at));
    if (parsed.kind === "invalid") return { bytes: at, invalid: true };
    if (parsed.kind === "short") return { bytes: at, invalid: false };
    const total = parsed.header.headerBytes + parsed.header.payloadBytes;
    if (at + total > bytes.length) return { bytes: at, invalid: false };
    at += total;
  }
}

/** Of a sealed replica on this node. Undefined: it was changed, replaced or deleted meanwhile, or `pace` ended it. */
export async function verifyReplica(
  node: Node,
  extent: LocalExtent,
  io: Io,
  pace?: (bytes: number) => Promise<boolean>,
): Promise<Verified | undefined> {
  const { replica } = extent;
  const { extentId: id, sealedLengthBytes } = replica;
  const still = (): boolean => node.find(id) === extent && !extent.removed && replica.state === "sealed";
  if (sealedLengthBytes === undefined || !still()) return undefined;
  const content: Content = {
    id,
    lengthBytes: sealedLengthBytes,
    checksum: replica.checksum,
    read: async (offsetBytes, lengthBytes) => concatBytes(await node.store.read(extent, offsetBytes, lengthBytes, io)),
  };
  const verified = await verifyContent(node.world.digest.crc32c, content, async (bytes) => (await (pace?.(bytes) ?? true)) && still());
  return still() ? verified : undefined;
}
