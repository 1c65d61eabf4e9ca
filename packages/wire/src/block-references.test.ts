import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { packBlockSizes, packBlocks, unpackBlockSizes, unpackBlocks } from "./block-references.ts";
import { PutBlockListSchema } from "./gen/stamp/v1/objects_pb.ts";

const blockId = fc.uint8Array({ minLength: 0, maxLength: 255 });

test("block references: a packed list is read as it was, also over the wire", () => {
  const source = fc.constantFrom("committed" as const, "uncommitted" as const, "latest" as const);
  fc.assert(
    fc.property(fc.array(fc.record({ blockId, source })), (blocks) => {
      const message = create(PutBlockListSchema, packBlocks(blocks));
      const read = unpackBlocks(fromBinary(PutBlockListSchema, toBinary(PutBlockListSchema, message)));
      assert.deepEqual(
        read.map((each) => ({ ...each, blockId: Uint8Array.from(each.blockId) })),
        blocks.map((each) => ({ ...each, blockId: Uint8Array.from(each.blockId) })),
      );
    }),
  );
});

test("block references: sizes are read as they were, up to 2^53 - 1", () => {
  fc.assert(
    fc.property(fc.array(fc.record({ blockId, sizeBytes: fc.maxSafeNat() })), (blocks) => {
      const read = [...unpackBlockSizes(packBlockSizes(blocks))];
      assert.deepEqual(
        read.map((each) => [Uint8Array.from(each.blockId), each.sizeBytes]),
        blocks.map((each) => [Uint8Array.from(each.blockId), each.sizeBytes]),
      );
    }),
  );
});

test("block references: a list of sizes that is cut off is refused", () => {
  const packed = packBlockSizes([{ blockId: new Uint8Array(3), sizeBytes: 7 }]);
  for (let length = 1; length < packed.length; length++) assert.throws(() => [...unpackBlockSizes(packed.subarray(0, length))], /cut off/);
  assert.deepEqual([...unpackBlockSizes(new Uint8Array(0))], []);
});
