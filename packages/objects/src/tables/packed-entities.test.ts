import assert from "node:assert/strict";
import { test } from "node:test";
import { FailureError } from "@stamp/base";
import { encodeKey } from "../rows/key.ts";
import { encodeEntity } from "./entity-rows.ts";
import { entityKey } from "./keys.ts";
import { packRows, unpackEntities } from "./packed-entities.ts";

const entities = [
  { partitionKey: "", rowKey: "", timestamp: 0n, properties: [] },
  { partitionKey: "p'ü", rowKey: "r\u{1f600}", timestamp: 17_000n, properties: [{ name: "N", type: "int32", value: -1 } as const] },
  {
    partitionKey: "p",
    rowKey: "r2",
    timestamp: 17_001n,
    properties: [
      { name: "Text", type: "string", value: "x".repeat(1_000) } as const,
      { name: "Bytes", type: "binary", value: new Uint8Array([0, 255]) } as const,
      { name: "At", type: "DateTime", value: 5n } as const,
    ],
  },
];
const rows = entities.map(({ partitionKey, rowKey, timestamp, properties }) => ({
  key: entityKey(encodeKey([["acct"], [1, "t01", 7, partitionKey]]), rowKey),
  value: encodeEntity({ timestamp, properties }),
}));

test("packed entities, of any properties, are read as they were", () => {
  assert.deepEqual([...unpackEntities(packRows(rows))], entities);
  assert.deepEqual([...unpackEntities(packRows([]))], []);
});

test("packed entities are written into the memory that is given, whatever it held, or into their own", () => {
  const packed = packRows(rows);
  let asked = 0;
  const inGiven = packRows(rows, (lengthBytes) => {
    asked = lengthBytes;
    return new Uint8Array(new ArrayBuffer(lengthBytes + 9), 5, lengthBytes).fill(0xff);
  });
  assert.equal(asked, packed.length);
  assert.deepEqual([inGiven.byteOffset, Buffer.compare(inGiven, packed)], [5, 0]);
  assert.deepEqual([...unpackEntities(inGiven)], entities);
  assert.equal(
    Buffer.compare(
      packRows(rows, () => undefined),
      packed,
    ),
    0,
  );
});

test("packed entities, cut off anywhere, are refused", () => {
  const packed = packRows(rows.slice(0, 2));
  const ends = [0, packRows(rows.slice(0, 1)).length];
  for (let length = 0; length < packed.length; length++) {
    if (ends.includes(length)) continue;
    assert.throws(() => [...unpackEntities(packed.subarray(0, length))], FailureError);
  }
});
