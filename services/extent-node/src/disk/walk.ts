/** Reads the frames of an extent file from the front: how the block index and the length of an unsealed replica are found again. */
import type { ExtentId } from "@stamp/base";
import { BlockIndex, type Crc32c, frameFixedBytes, parseFrameHeader } from "@stamp/extent";
import type { Io } from "./disk-queue.ts";
import type { ExtentFiles } from "./extent-files.ts";

/** Many small frames in one read, and little more than the header of a large one. */
const windowBytes = 64 * 1024;

export interface Walk {
  readonly index: BlockIndex;
  readonly totals: number[];
  /** End of the last whole frame in bytes; its payload is there, its checksums are not verified. */
  readonly endBytes: number;
}

/** Stops at `limitBytes`, at the end of the file, or where there is no frame. */
export async function walkFile(crc32c: Crc32c, files: ExtentFiles, id: ExtentId, limitBytes: number, io: Io): Promise<Walk> {
  const index = new BlockIndex();
  const totals: number[] = [];
  let window: Uint8Array = new Uint8Array(0);
  let windowBegin = 0;
  let at = 0;
  const view = async (lengthBytes: number): Promise<Uint8Array> => {
    if (at < windowBegin || at + lengthBytes > windowBegin + window.length) {
      window = await files.read(id, at, Math.max(windowBytes, lengthBytes), io);
      windowBegin = at;
    }
    return window.subarray(at - windowBegin, at - windowBegin + lengthBytes);
  };
  for (;;) {
    if (at >= limitBytes) break;
    let parsed = parseFrameHeader(crc32c, id, at, await view(frameFixedBytes));
    if (parsed.kind === "short") parsed = parseFrameHeader(crc32c, id, at, await view(parsed.neededBytes));
    if (parsed.kind !== "frame") break;
    const total = parsed.header.headerBytes + parsed.header.payloadBytes;
    if (at + total > limitBytes) break;
    const tail = await files.read(id, at + total - 1, 1, io);
    if (tail.length === 0) break;
    index.push(at, total);
    totals.push(total);
    at += total;
  }
  return { index, totals, endBytes: at };
}
