/**
 * Block indexes of the extents of a node. That of an open extent grows with its appends (`LocalExtent.index`). Those of sealed ones are loaded when
 * they are asked for; beyond `blocksMax` blocks in all, the indexes that were used longest ago are dropped.
 */
import { type BlockIndex, type Crc32c, indexFromRuns } from "@stamp/extent";
import type { KeyValueOperation } from "@stamp/ports";
import { appendIo } from "./disk-queue.ts";
import type { ExtentFiles } from "./extent-files.ts";
import type { LocalExtent } from "./local-extent.ts";
import type { ExtentTable } from "./table.ts";
import { walkFile } from "./walk.ts";

export class BlockIndexes {
  readonly #crc32c: Crc32c;
  readonly #files: ExtentFiles;
  readonly #table: ExtentTable;
  readonly #blocksMax: number;
  /** Loaded indexes of extents that take no appends, in order of last use. */
  readonly #loaded: Map<LocalExtent, BlockIndex> = new Map();
  #loadedBlocks = 0;

  constructor(crc32c: Crc32c, files: ExtentFiles, table: ExtentTable, blocksMax: number) {
    this.#crc32c = crc32c;
    this.#files = files;
    this.#table = table;
    this.#blocksMax = blocksMax;
  }

  /** Returns the block index of an extent: in memory while it is written, loaded from the table afterwards, or walked from the file. */
  async of(extent: LocalExtent): Promise<BlockIndex | undefined> {
    return this.held(extent) ?? this.#load(extent);
  }

  /** Returns the extent's block index, if it is in memory. */
  held(extent: LocalExtent): BlockIndex | undefined {
    if (extent.index !== undefined) return extent.index;
    const held = this.#loaded.get(extent);
    if (held === undefined) return undefined;
    this.#loaded.delete(extent);
    this.#loaded.set(extent, held);
    return held;
  }

  async #load(extent: LocalExtent): Promise<BlockIndex | undefined> {
    const { extentId, durableBytes } = extent.replica;
    const runs = await this.#table.runs(extentId);
    let index = indexFromRuns(runs, durableBytes);
    if (index === undefined) {
      const walked = await walkFile(this.#crc32c, this.#files, extentId, durableBytes, appendIo);
      if (walked.endBytes !== durableBytes) return undefined;
      index = walked.index;
      const operations: KeyValueOperation[] = [this.#table.putRun(extentId, 0, walked.totals)];
      await this.#table.forgetRuns(extentId);
      await this.#table.write(operations, false);
    }
    if (this.#loaded.has(extent) || extent.removed) return index;
    this.#loaded.set(extent, index);
    this.#loadedBlocks += index.count;
    for (const [other, old] of this.#loaded) {
      if (this.#loadedBlocks <= this.#blocksMax || other === extent) break;
      this.#loaded.delete(other);
      this.#loadedBlocks -= old.count;
    }
    return index;
  }

  /** Forgets the index of an extent whose content has changed. */
  unload(extent: LocalExtent): void {
    const held = this.#loaded.get(extent);
    if (held === undefined) return;
    this.#loaded.delete(extent);
    this.#loadedBlocks -= held.count;
  }

  /** Moves the index of a sealed extent to those that may be dropped. */
  settle(extent: LocalExtent): void {
    if (extent.index === undefined) return;
    this.unload(extent);
    this.#loaded.set(extent, extent.index);
    this.#loadedBlocks += extent.index.count;
    extent.index = undefined;
  }
}
