/**
 * The blocks of Put Block List and Get Block List, each list in one field of bytes: 50,000 messages would keep a process busy in one turn for
 * longer than a request may. Entries follow one another without a count.
 *
 *      0          1           2                            0                  8           9
 *      +----------+-----------+------------------+         +------------------+-----------+------------------+
 *      | source   | length    | block id         |         | size, u64 LE     | length    | block id         |
 *      +----------+-----------+------------------+         +------------------+-----------+------------------+
 *
 * source: a number of BlockSource, 1 to 3. length: bytes of the id. size: bytes of the block.
 */
import { FailureError } from "@stamp/base";
import { BlockSource } from "./gen/stamp/v1/objects_pb.ts";

export type BlockSourceName = "committed" | "uncommitted" | "latest";

export interface PlainBlockReference {
  /** Id of the block, decoded from base64. */
  readonly blockId: Uint8Array;
  readonly source: BlockSourceName;
}

const numbers: Readonly<Record<BlockSourceName, number>> = {
  committed: BlockSource.COMMITTED,
  uncommitted: BlockSource.UNCOMMITTED,
  latest: BlockSource.LATEST,
};
const names: readonly (BlockSourceName | undefined)[] = [undefined, "committed", "uncommitted", "latest"];

/**
 * The block that a server of a release without `packed_blocks` finds in `blocks`: it has no source. The server refuses
 * the operation, instead of taking it for an empty list.
 */
const refusedByOlderServers = { blockId: new Uint8Array(0), source: BlockSource.UNSPECIFIED };

/** Returns the fields of PutBlockList for these blocks. Ids have at most 255 bytes. */
export function packBlocks(blocks: readonly PlainBlockReference[]): {
  blocks: { blockId: Uint8Array<ArrayBuffer>; source: BlockSource }[];
  packedBlocks: Uint8Array<ArrayBuffer>;
} {
  const packed = new Uint8Array(blocks.reduce((sum, block) => sum + 2 + block.blockId.length, 0));
  let at = 0;
  for (const { blockId, source } of blocks) {
    packed[at] = numbers[source];
    packed[at + 1] = blockId.length;
    packed.set(blockId, at + 2);
    at += 2 + blockId.length;
  }
  return { blocks: blocks.length === 0 ? [] : [refusedByOlderServers], packedBlocks: packed };
}

/**
 * Returns the blocks of a PutBlockList, packed or as messages. The ids are views of `packedBlocks`. Throws FailureError `badRequest` for a block
 * without a source, and for bytes that are no packed list.
 */
export function unpackBlocks(list: {
  readonly blocks: readonly { readonly blockId: Uint8Array; readonly source: BlockSource }[];
  readonly packedBlocks: Uint8Array;
}): PlainBlockReference[] {
  const packed = list.packedBlocks;
  if (packed.length === 0) return list.blocks.map(({ blockId, source }) => ({ blockId, source: nameOf(source) }));
  const references: PlainBlockReference[] = [];
  for (let at = 0; at < packed.length; ) {
    const end = at + 2 + (packed[at + 1] ?? 0);
    if (end > packed.length) throw refused("packed_blocks is cut off");
    references.push({ blockId: packed.subarray(at + 2, end), source: nameOf(packed[at] as number) });
    at = end;
  }
  return references;
}

export interface PlainBlockSize {
  readonly blockId: Uint8Array;
  /** Size of the block in bytes. */
  readonly sizeBytes: number;
}

const sizeEntryBytes = 9;

/** Returns the blocks of one list of Get Block List in one field. */
export function packBlockSizes(blocks: readonly PlainBlockSize[]): Uint8Array<ArrayBuffer> {
  const packed = new Uint8Array(blocks.reduce((sum, block) => sum + sizeEntryBytes + block.blockId.length, 0));
  const view = new DataView(packed.buffer);
  let at = 0;
  for (const { blockId, sizeBytes } of blocks) {
    view.setUint32(at, sizeBytes, true);
    view.setUint32(at + 4, sizeBytes / 2 ** 32, true);
    packed[at + 8] = blockId.length;
    packed.set(blockId, at + sizeEntryBytes);
    at += sizeEntryBytes + blockId.length;
  }
  return packed;
}

/** Yields the blocks of a packed list, one at a time; the ids are views of it. Throws FailureError `badRequest` for bytes that are no such list. */
export function* unpackBlockSizes(packed: Uint8Array): Generator<PlainBlockSize> {
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  for (let at = 0; at < packed.length; ) {
    const end = at + sizeEntryBytes + (packed[at + 8] ?? 0);
    if (end > packed.length) throw refused("a packed list of blocks is cut off");
    yield {
      blockId: packed.subarray(at + sizeEntryBytes, end),
      sizeBytes: view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32,
    };
    at = end;
  }
}

function nameOf(source: number): BlockSourceName {
  const name = names[source];
  if (name === undefined) throw refused("a source of one of its blocks is missing");
  return name;
}

const refused = (message: string): FailureError =>
  new FailureError({ code: "invalidArgument", reason: "badRequest", message, applied: "no" });
