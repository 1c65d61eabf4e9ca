/**
 * Reads a whole replica and compares it with all it says of itself: every frame header, every chunk, that the frames end at its length, and
 * the checksum over everything that was recorded when it was sealed. For scrub, fsck and the check of a running node.
 */
import { concatBytes, type ExtentId } from "@stamp/base";
import { type Crc32c, FrameFeed } from "@stamp/extent";
import { DiskError } from "@stamp/ports";
import type { Io } from "../disk/disk-queue.ts";
import type { LocalExtent } from "../disk/local-extent.ts";
import type { Node } from "../node.ts";

export type VerifyResult =
  | { readonly kind: "intact"; readonly bytes: number; readonly checksum: number }
  | { readonly kind: "bad"; readonly offsetBytes: number; readonly why: string };

export interface Content {
  readonly id: ExtentId;
  readonly lengthBytes: number;
  /** Checksum of the whole content, if it is known. */
  readonly checksum: number | undefined;
  /** Returns exactly these bytes of the content, or fewer if some are not there. May throw DiskError. */
  read(offsetBytes: number, lengthBytes: number): Promise<Uint8Array>;
}

const pieceBytes = 1024 * 1024;

/** `pace` is called before each piece is read; false ends it (undefined). */
export async function verifyContent(
  crc32c: Crc32c,
  content: Content,
  pace: (bytes: number) => Promise<boolean> = async () => true,
): Promise<VerifyResult | undefined> {
  const { id, lengthBytes } = content;
  let checksum = 0;
  const feed = new FrameFeed(crc32c, id, 0);
  while (feed.endBytes < lengthBytes) {
    const from = feed.nextBytes;
    const wanted = Math.min(pieceBytes, lengthBytes - from);
    if (wanted === 0) return { kind: "bad", offsetBytes: feed.endBytes, why: `the last block does not end at ${lengthBytes}` };
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
    const fed = feed.push(piece);
    if (fed.kind === "invalid") return { kind: "bad", offsetBytes: fed.offsetBytes, why: fed.why };
    checksum = crc32c(fed.bytes, checksum);
  }
  if (content.checksum !== undefined && content.checksum !== checksum) {
    return { kind: "bad", offsetBytes: 0, why: `the checksum of the content is ${checksum}, recorded was ${content.checksum}` };
  }
  return { kind: "intact", bytes: lengthBytes, checksum };
}

/**
 * Verifies a sealed replica on this node. Undefined: it was changed, replaced or deleted meanwhile, or `pace` ended it.
 */
export async function verifyReplica(
  node: Node,
  extent: LocalExtent,
  io: Io,
  pace?: (bytes: number) => Promise<boolean>,
): Promise<VerifyResult | undefined> {
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
