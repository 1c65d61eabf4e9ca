/** The record of the store's lineage: frozen bytes, damage, and its place in a store that was never restored. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { ok, unwrap, utf8 } from "@stamp/base";
import { decodeLineage, encodeLineage, lineageKey, storeLineage } from "./lineage-record.ts";

const sum = (bytes: Uint8Array): number => bytes.reduce((total, byte) => (total * 31 + byte) >>> 0, 7);
const record = { number: 29_989_273_600_000, wallMs: 1_795_824_000_000 };

test("lineage record: its bytes are frozen; one that is cut, changed or of another kind is damaged", () => {
  const bytes = encodeLineage(record, sum);
  assert.equal(lineageKey, "lineage");
  const golden = new URL("../../../tests/golden/metadata/v1/lineage.bin", import.meta.url);
  if (process.env.STAMP_WRITE_GOLDEN && !existsSync(golden)) writeFileSync(golden, bytes);
  assert.deepEqual(new Uint8Array(readFileSync(golden)), bytes);
  assert.deepEqual(unwrap(decodeLineage(bytes, sum)), record);
  for (let i = 0; i < bytes.length; i++) {
    const flipped = bytes.map((byte, at) => (at === i ? byte ^ 1 : byte));
    assert.ok(!decodeLineage(flipped, sum).ok, `byte ${i}`);
    assert.ok(!decodeLineage(bytes.subarray(0, i), sum).ok, `first ${i} bytes`);
  }
  for (const odd of [
    { number: -1, wallMs: 0 },
    { number: 1.5, wallMs: 0 },
  ])
    assert.ok(!decodeLineage(encodeLineage(odd, sum), sum).ok);
});

test("lineage of a store: 0 without a record; a record that can't be read is told, and not taken for none", async () => {
  const world = { digest: { crc32c: sum } } as never;
  const at = (value: Uint8Array | undefined) =>
    storeLineage(world, { get: async () => ok(value === undefined ? [] : [{ key: lineageKey, value, version: 3 }]) } as never, 1_000);
  assert.equal(unwrap(await at(undefined)), 0);
  assert.equal(unwrap(await at(encodeLineage(record, sum))), record.number);
  const damaged = await at(utf8("no record"));
  assert.ok(!damaged.ok && damaged.failure.reason === "damaged");
});
