/** Blocks that a flush commits. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { packBlockSizes } from "@stamp/wire";
import { blockIdAt, flushOnce, plan, positionOfBlock } from "./data.ts";

type Sizes = readonly (readonly [position: number, sizeBytes: number])[];
const packed = (sizes: Sizes): Uint8Array =>
  packBlockSizes(sizes.map(([position, sizeBytes]) => ({ blockId: blockIdAt(position), sizeBytes })));

/** Returns the blocks that a flush commits, with their ids as positions, or its refusal. */
function flushed(committed: Sizes, uncommitted: Sizes, position: number, retains = false): readonly string[] | string {
  const contentBytes = committed.reduce((sum, [, sizeBytes]) => sum + sizeBytes, 0);
  const lists = { packedCommitted: packed(committed), packedUncommitted: packed(uncommitted) };
  const planned = plan(contentBytes, { position, retains }, lists);
  return planned.ok ? planned.value.map(({ blockId, source }) => `${source} ${positionOfBlock(blockId)}`) : planned.error.code;
}

test("flush, blocks without a gap: they follow the content, and what lies behind the position is left out", () => {
  assert.deepEqual(
    flushed(
      [[0, 4]],
      [
        [4, 2],
        [6, 3],
        [9, 1],
      ],
      9,
    ),
    ["committed 0", "uncommitted 4", "uncommitted 6"],
  );
  assert.equal(flushed([[0, 4]], [[5, 2]], 7), "InvalidFlushPosition");
  assert.equal(flushed([[0, 4]], [[4, 2]], 5), "InvalidFlushPosition");
});

test("flush, data is retained: as many appends as one commit takes out of the uncommitted blocks, no more", () => {
  const appends: Sizes = Array.from({ length: 2_002 }, (_, at) => [at, 1] as const);
  assert.equal(flushed([], appends, 2_000, true).length, 2_000);
  assert.equal(flushed([], appends, 2_001, true), "NotImplemented");
  assert.equal(flushed([], appends, 2_001).length, 2_001);
});

test("flush, an id that stands twice among the blocks: it is refused, because a list would take one content for both", () => {
  const twice: Sizes = [
    [0, 4],
    [0, 6],
  ];
  assert.equal(flushed(twice, [[10, 2]], 12), "InvalidFlushOperation");
  assert.equal(flushed([[10, 10]], [[10, 2]], 12), "InvalidFlushOperation");
  assert.deepEqual(flushed([[10, 8]], [[8, 2]], 10), ["committed 10", "uncommitted 8"]);
});

test("flush, the file is changed after it was read: nothing is written over the change, and the flush looks again", async () => {
  const blob = { name: "f", etag: "1", contentLengthBytes: 0n, headers: {}, metadata: { of: "me" }, tags: {}, blobType: "BlockBlob" };
  const flushedOver = async (listedEtag: string) => {
    const written: unknown[] = [];
    const execute = async ({ case: kind, value }: { readonly case: string; readonly value: unknown }) => {
      if (kind === "getBlob") return { ok: true, value: blob };
      const lists = { blob: { etag: listedEtag }, packedCommitted: packed([]), packedUncommitted: packed([[0, 1]]) };
      if (kind === "getBlockList") return { ok: true, value: lists };
      written.push((value as { readonly conditions: unknown }).conditions);
      return { ok: false, error: { code: "ConditionNotMet" } };
    };
    const exchange = { version: "2025-05-05", objects: { execute }, limits: () => ({}), access: {} };
    const asked = { position: 1, retains: false, content: undefined, conditions: {} };
    return [await flushOnce(exchange as never, { blob: {}, name: {} } as never, asked), written];
  };
  assert.deepEqual(await flushedOver("2"), ["again", []]);
  assert.deepEqual(await flushedOver("1"), ["again", [{ ifMatch: "1" }]]);
});
