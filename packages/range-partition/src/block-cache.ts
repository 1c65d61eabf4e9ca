/**
 * Blocks of checkpoints in memory, for reads only: bounded in bytes, the least recently used go first. Several readers of a block that is
 * not there share one read.
 */
import { FailureError } from "@stamp/base";
import { type Block, decodeBlock } from "@stamp/lsm";
import type { World } from "@stamp/ports";
import type { ExtentReader, Place } from "@stamp/stream-client";

const readTimeoutMs = 10_000;
/** Of a decoded block beside its bytes, about. */
const overheadBytes = 256;

export class BlockCache {
  readonly #world: World;
  readonly #reader: ExtentReader;
  readonly #bytesMax: number;
  readonly #blocks = new Map<string, Block>();
  readonly #loading = new Map<string, Promise<Block>>();
  #bytes = 0;

  constructor(world: World, reader: ExtentReader, bytesMax: number) {
    this.#world = world;
    this.#reader = reader;
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** At once when it is in memory. Throws FailureError. */
  get(place: Place): Block | Promise<Block> {
    const name = nameOf(place);
    const held = this.#blocks.get(name);
    if (held !== undefined) {
      this.#blocks.delete(name);
      this.#blocks.set(name, held);
      return held;
    }
    let loading = this.#loading.get(name);
    if (loading === undefined) {
      loading = this.load(place)
        .then((block) => {
          this.#keep(name, block);
          return block;
        })
        .finally(() => this.#loading.delete(name));
      this.#loading.set(name, loading);
    }
    return loading;
  }

  /** Around the cache, for merges, which read everything once. Throws FailureError. */
  async load(place: Place): Promise<Block> {
    const bytes = await this.#reader.read(place, { timeoutMs: readTimeoutMs });
    if (!bytes.ok) throw new FailureError(bytes.failure);
    const block = decodeBlock(ownedCopy(bytes.value), (part, seed) => this.#world.digest.crc32c(part, seed));
    if (!block.ok) throw new FailureError(block.failure);
    return block.value;
  }

  #keep(name: string, block: Block): void {
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

const nameOf = (place: Place): string => `${place.extentId}:${place.offsetBytes}`;

/** The bytes themselves, or a copy when keeping them would keep a much larger buffer. */
export function ownedCopy(bytes: Uint8Array): Uint8Array {
  return bytes.buffer.byteLength > bytes.length + 64 ? new Uint8Array(bytes) : bytes;
}
