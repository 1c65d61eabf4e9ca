/**
 * The mark of the extent table: a file beside the table that names the last sync of the table (docs/formats/store-proof.md). LevelDB opens a
 * log that lost its end without a word; the mark tells.
 *
 * Invariants:
 *   - The mark is written after the sync that it names, so it is never ahead of the table's disk.
 *   - A mark that is gone or can't be read makes the node rebuild the table; it never lets an older table pass.
 */
import { equalBytes, utf8 } from "@stamp/base";
import {
  type Digest,
  type DiskFile,
  decodeMarkFile,
  emptySum,
  encodeMark,
  encodeMarkFile,
  markBytes,
  markOffset,
  markPath,
  type StoreProof,
  type World,
} from "@stamp/ports";

type MarkWorld = Pick<World, "disk" | "digest">;

export type FoundMark = { readonly kind: "absent" | "damaged" | "of another disk" } | { readonly kind: "found"; readonly sequence: number };

export class TableMark {
  readonly path: string;
  /** Content of the file when the table was opened. */
  readonly found: FoundMark;
  readonly #world: MarkWorld;
  readonly #lineage: Uint8Array;
  #file: DiskFile | undefined;

  private constructor(world: MarkWorld, path: string, lineage: Uint8Array, found: FoundMark) {
    this.#world = world;
    this.path = path;
    this.#lineage = lineage;
    this.found = found;
  }

  static async read(world: MarkWorld, store: string, diskId: string): Promise<TableMark> {
    const path = markPath(store);
    const lineage = lineageOf(world.digest, diskId);
    return new TableMark(world, path, lineage, judge(world.digest, await world.disk.readWhole(path), lineage));
  }

  /** Writes the mark. The first write after an opening fills both slots; a power cut that tears both costs a rebuild. */
  async write(sequence: number): Promise<void> {
    const { digest, disk } = this.#world;
    const proof: StoreProof = { lineage: this.#lineage, sequence, count: 0, sum: emptySum };
    if (this.#file !== undefined) {
      await this.#file.write(markOffset(sequence), [encodeMark(digest, proof)]);
      await this.#file.sync();
      return;
    }
    const file = await disk.open(this.path, { create: true });
    try {
      await file.allocate(markBytes);
      await file.write(0, [encodeMarkFile(digest, proof)]);
      await file.sync();
      await disk.syncFolder(".");
    } catch (error) {
      await file.close();
      throw error;
    }
    this.#file = file;
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }
}

const lineageOf = (digest: Digest, diskId: string): Uint8Array => digest.sha256(utf8(diskId)).slice(0, 16);

function judge(digest: Digest, content: Uint8Array | undefined, lineage: Uint8Array): FoundMark {
  if (content === undefined) return { kind: "absent" };
  const mark = decodeMarkFile(digest, content);
  if (!mark.ok) return { kind: "damaged" };
  return equalBytes(mark.value.lineage, lineage) ? { kind: "found", sequence: mark.value.sequence } : { kind: "of another disk" };
}
