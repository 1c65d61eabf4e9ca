/** Blocks of checkpoints in memory, for reads only: bounded in bytes, the least recently used go first. */
import type { Block } from "@stamp/lsm";

/** Of a decoded block beside its bytes, about. */
const overheadBytes = 256;

export class BlockCache {
  readonly #bytesMax: number;
  readonly #blocks = new Map<string, Block>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(extentId: number, offsetBytes: number): Block | undefined {
    const name = nameOf(extentId, offsetBytes);
    const held = this.#blocks.get(name);
    if (held !== undefined) {
      this.#blocks.delete(name);
      this.#blocks.set(name, held);
    }
    return held;
  }

  /** A block that would push out a quarter of the others is not kept. */
  put(extentId: number, offsetBytes: number, block: Block): void {
    const name = nameOf(extentId, offsetBytes);
    const bytes = block.bytes + overheadBytes;
    if (bytes > this.#bytesMax / 4 || this.#blocks.has(name)) return;
    this.#blocks.set(name, block);
    this.#bytes += bytes;
    for (const [oldest, old] of this.#blocks) {
      if (this.#bytes <= this.#bytesMax) break;
      this.#blocks.delete(oldest);
      this.#bytes -= old.bytes + overheadBytes;
    }
  }
}

const nameOf = (extentId: number, offsetBytes: number): string => `${extentId}:${offsetBytes}`;
