/**
 * Where each block of one extent begins: what a read by (extent, offset, length) needs to find the frame header that holds the
 * checksums. In memory it is a sorted list of frame offsets; on disk (LevelDB, a cache) runs of frame lengths, one value per flush.
 */
import { assert } from "@stamp/base";
import { viewOf } from "./binary.ts";
import { frameBytes, payloadBytesOf } from "./block-frame.ts";

export interface IndexedFrame {
  readonly offsetBytes: number;
  readonly totalBytes: number;
}

export class BlockIndex {
  /** Begin of each frame, ascending and without gaps; frame i ends where i+1 begins. */
  readonly #begins: number[] = [];
  #endBytes = 0;

  get endBytes(): number {
    return this.#endBytes;
  }
  get count(): number {
    return this.#begins.length;
  }

  /** Adds a frame, which must begin where the last one ended. */
  push(offsetBytes: number, totalBytes: number): void {
    assert(offsetBytes === this.#endBytes, "block index: frames are contiguous");
    this.#begins.push(offsetBytes);
    this.#endBytes += totalBytes;
  }

  /** Returns the frame that covers this offset. */
  find(offsetBytes: number): IndexedFrame | undefined {
    if (offsetBytes < 0 || offsetBytes >= this.#endBytes) return undefined;
    let low = 0;
    let high = this.#begins.length;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if ((this.#begins[middle] as number) <= offsetBytes) low = middle;
      else high = middle;
    }
    return this.#at(low);
  }

  #at(i: number): IndexedFrame {
    const begin = this.#begins[i] as number;
    return { offsetBytes: begin, totalBytes: (this.#begins[i + 1] ?? this.#endBytes) - begin };
  }

  /** `lengthBytes` must be a frame boundary; false when it is not (then nothing changed). */
  truncate(lengthBytes: number): boolean {
    if (lengthBytes >= this.#endBytes) return lengthBytes === this.#endBytes;
    const frame = this.find(lengthBytes);
    if (frame?.offsetBytes !== lengthBytes) return false;
    while (this.#begins.length > 0 && (this.#begins[this.#begins.length - 1] as number) >= lengthBytes) this.#begins.pop();
    this.#endBytes = lengthBytes;
    return true;
  }
}

/** Returns the lengths of consecutive frames, u32 little-endian each. */
export function encodeFrameRun(totals: readonly number[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(totals.length * 4);
  const view = viewOf(bytes);
  totals.forEach((total, i) => {
    view.setUint32(i * 4, total, true);
  });
  return bytes;
}

/**
 * Puts runs together, in order of their offset, up to `endBytes`. Runs may overlap (a replay cuts them differently). Undefined when
 * they do not cover exactly [0, endBytes): then the extent is walked instead.
 */
export function indexFromRuns(runs: Iterable<readonly [offsetBytes: number, run: Uint8Array]>, endBytes: number): BlockIndex | undefined {
  const index = new BlockIndex();
  for (const [offsetBytes, run] of runs) {
    if (run.length % 4 !== 0) return undefined;
    const view = viewOf(run);
    let at = offsetBytes;
    for (let i = 0; i < run.length && at < endBytes; i += 4) {
      const total = view.getUint32(i, true);
      const payload = payloadBytesOf(total);
      if (payload === undefined || frameBytes(payload) !== total) return undefined;
      if (at > index.endBytes) return undefined;
      if (at === index.endBytes) index.push(at, total);
      at += total;
    }
  }
  return index.endBytes === endBytes ? index : undefined;
}
