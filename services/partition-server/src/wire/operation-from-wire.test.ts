import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { toHex, unwrap, utf8 } from "@stamp/base";
import { BlockSource, Connective, OperationSchema, type PlainBlockReference, packBlocks } from "@stamp/wire";
import { operationFromWire } from "./operation-from-wire.ts";

type Kind = NonNullable<MessageInitShape<typeof OperationSchema>["kind"]>;
const convert = (kind: Kind) =>
  operationFromWire(fromBinary(OperationSchema, toBinary(OperationSchema, create(OperationSchema, { kind }))));

const name = { account: "a", container: "c", containerIncarnation: 5n, blob: "b" };
const named = { account: "a", container: "c", containerIncarnation: 5, blob: "b", snapshotStamp: 0, versionStamp: 0 };
test("wire: every part of a Get Blob arrives, absent ones as absent", () => {
  const conditions = { ifMatch: '"x"', ifModifiedSinceMs: -5n, leaseId: "" };
  const full = unwrap(convert({ case: "getBlob", value: { name, conditions, startBytes: 0n, endBytes: 7n, withoutContent: true } }));
  assert.deepEqual(full, {
    case: "getBlob",
    value: {
      name: named,
      conditions: { ifMatch: '"x"', ifModifiedSinceMs: -5, leaseId: "", createOnly: false, encryptionAsFound: false },
      startBytes: 0,
      endBytes: 7,
      withoutContent: true,
      withoutKey: false,
    },
  });
  const bare = unwrap(convert({ case: "getBlob", value: { name } }));
  assert.deepEqual(bare, {
    case: "getBlob",
    value: { name: named, conditions: {}, startBytes: undefined, endBytes: undefined, withoutContent: false, withoutKey: false },
  });
});

test("wire: a filter that is too long is refused with both numbers, so that a front-end of a newer release can say why", () => {
  const term = { kind: { case: "connective" as const, value: Connective.NOT } };
  const listTables = { account: "a", filter: Array.from({ length: 2_049 }, () => term) };
  const outcome = convert({ case: "table", value: { kind: { case: "listTables", value: listTables } } });
  assert.ok(!outcome.ok && outcome.failure.reason === "badRequest");
  assert.match(outcome.failure.message, /a filter of 2049 terms: this server takes 2048/);
});

test("wire: block lists keep their order and sources", () => {
  const blocks = [
    { blockId: utf8("1"), source: BlockSource.COMMITTED },
    { blockId: utf8("2"), source: BlockSource.LATEST },
    { blockId: utf8("1"), source: BlockSource.UNCOMMITTED },
  ];
  const operation = unwrap(convert({ case: "putBlockList", value: { name, blocks, metadata: { k: "v" } } }));
  assert.ok(operation.case === "putBlockList");
  assert.deepEqual(
    operation.value.blocks.map((block) => block.source),
    ["committed", "latest", "uncommitted"],
  );
  assert.deepEqual({ ...operation.value.metadata }, { k: "v" });
});

test("wire: a packed block list is read as the same list of messages is; cut off, or without a source, it is refused", () => {
  const blocks: PlainBlockReference[] = [
    { blockId: utf8("first"), source: "committed" },
    { blockId: utf8("2"), source: "latest" },
    { blockId: new Uint8Array(255).fill(7), source: "uncommitted" },
  ];
  const packed = packBlocks(blocks);
  const operation = unwrap(convert({ case: "putBlockList", value: { name, ...packed } }));
  assert.ok(operation.case === "putBlockList");
  assert.deepEqual(
    operation.value.blocks.map((block) => ({ ...block, blockId: block.blockId.slice() })),
    blocks,
  );
  // A release that does not know the field reads `blocks` alone, and must not take them for an empty list.
  const older = convert({ case: "putBlockList", value: { name, blocks: packed.blocks } });
  assert.ok(!older.ok && older.failure.reason === "badRequest");
  assert.deepEqual(packBlocks([]), { blocks: [], packedBlocks: new Uint8Array(0) });
  for (const packedBlocks of [
    packed.packedBlocks.subarray(0, 6),
    packed.packedBlocks.subarray(0, 1),
    Uint8Array.of(0, 1, 65),
    Uint8Array.of(4, 1, 65),
  ]) {
    const outcome = convert({ case: "putBlockList", value: { name, blocks: packed.blocks, packedBlocks } });
    assert.ok(!outcome.ok && outcome.failure.reason === "badRequest", toHex(packedBlocks));
  }
});

test("wire: what misses a part is refused as badRequest, whatever the kind", () => {
  const bad: (Kind | undefined)[] = [
    undefined,
    { case: "putAccount", value: {} },
    { case: "putBlob", value: {} },
    { case: "getBlob", value: {} },
    { case: "deleteBlob", value: {} },
    { case: "getBlob", value: { name: { ...name, containerIncarnation: 2n ** 60n } } },
    { case: "getBlob", value: { name: { ...name, snapshotStamp: 2n ** 60n } } },
    { case: "leaseBlob", value: { name, action: "steal" } },
    { case: "deleteBlob", value: { name, snapshots: "some" } },
    { case: "setBlobExpiry", value: { name, option: "soon" } },
    { case: "putBlockList", value: { name, blocks: [{ blockId: utf8("1") }] } },
    { case: "putBlob", value: { name, body: { inline: utf8("x"), places: [{ extentId: 1n, offsetBytes: 0n, lengthBytes: 1 }] } } },
    { case: "putBlob", value: { name, body: { places: [{ extentId: 1n, offsetBytes: 0n, lengthBytes: 0 }] } } },
  ];
  for (const kind of bad) {
    const outcome = kind ? convert(kind) : operationFromWire(undefined);
    assert.ok(!outcome.ok && outcome.failure.reason === "badRequest" && outcome.failure.applied === "no", JSON.stringify(outcome));
  }
});
