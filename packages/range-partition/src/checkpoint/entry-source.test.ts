import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, unwrap, utf8 } from "@stamp/base";
import { type Block, CheckpointWriter, decodeBlock, decodeIndex, type Entry, type StoredPlace, withoutPause } from "@stamp/lsm";
import { NodeDigest } from "@stamp/ports-node";
import { ForwardSource } from "./entry-source.ts";

const digest = new NodeDigest();
const crc32c = (bytes: Uint8Array, seed?: number): number => digest.crc32c(bytes, seed);
const keyOf = (i: number): string => `k${String(i).padStart(3, "0")}`;

/** Keys 0 to 199, two versions each, in blocks of some rows. */
function checkpoint() {
  const writer = new CheckpointWriter(crc32c, 200);
  const blocks: Block[] = [];
  const places: StoredPlace[] = [];
  const keep = (bytes: Uint8Array | undefined): void => {
    if (bytes === undefined) return;
    places.push({ extentId: 1, offsetBytes: places.length, lengthBytes: bytes.length });
    blocks.push(unwrap(decodeBlock(bytes, crc32c)));
  };
  for (let i = 0; i < 200; i++) {
    for (const sequence of [7, 3]) keep(writer.add({ key: utf8(keyOf(i)), sequence, value: utf8(`${i}@${sequence}`) }));
  }
  keep(writer.lastBlock());
  return { blocks, index: unwrap(decodeIndex(withoutPause(writer.index(places)).bytes, crc32c)) };
}

async function shown(source: ForwardSource): Promise<{ readonly rows: string[]; readonly waits: number }> {
  const rows: string[] = [];
  let waits = 0;
  for (;;) {
    const next: Entry | undefined | Promise<Entry | undefined> = source.next();
    if (next instanceof Promise) waits++;
    const entry = await next;
    if (entry === undefined) return { rows, waits };
    rows.push(`${fromUtf8(entry.key)} ${fromUtf8(entry.value ?? new Uint8Array(0))}`);
  }
}

const rowsAt = (from: number, to: number, sequence: number): string[] =>
  Array.from({ length: to - from }, (_, i) => `${keyOf(from + i)} ${from + i}@${sequence}`);

test("entries of blocks that are in memory come without a wait; each block that is not is waited for once", async () => {
  const { blocks, index } = checkpoint();
  const held = (at: number): Block => blocks[at] as Block;
  const range = { gte: utf8(keyOf(10)), lt: utf8(keyOf(190)) };
  const cached = await shown(new ForwardSource({ index: () => index, block: (_, at) => held(at) }, range, 9));
  assert.deepEqual(cached, { rows: rowsAt(10, 190, 7), waits: 0 });
  let read = 0;
  const block = async (_: unknown, at: number): Promise<Block> => {
    read++;
    return held(at);
  };
  const fetched = await shown(new ForwardSource({ index: async () => index, block }, range, 5));
  assert.deepEqual(fetched.rows, rowsAt(10, 190, 3));
  assert.ok(read > 10 && read <= blocks.length, `${read} of ${blocks.length} blocks`);
  assert.ok(fetched.waits <= read + 1, `${fetched.waits} waits for ${read} blocks`);
});

test("blocks before the cursor are not read", async () => {
  const { blocks, index } = checkpoint();
  const cursor: { from: Uint8Array | undefined } = { from: undefined };
  const read: number[] = [];
  const block = (_: unknown, at: number): Block => {
    read.push(at);
    return blocks[at] as Block;
  };
  const source = new ForwardSource({ index: () => index, block }, { gte: utf8(keyOf(0)), cursor }, 9);
  assert.equal(fromUtf8(((await source.next()) as Entry).key), keyOf(0));
  cursor.from = utf8(keyOf(150));
  assert.equal(fromUtf8(((await source.next()) as Entry).key), keyOf(150));
  assert.deepEqual(read, [0, index.firstBlock(utf8(keyOf(150)))]);
});
