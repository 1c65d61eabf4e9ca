import assert from "node:assert/strict";
import test from "node:test";
import { unwrap, utf8 } from "@stamp/base";
import { storageRatios } from "./index.ts";
import { put, read, remove, Stamp, write } from "./testing/harness.ts";

const keyOf = (i: number): string => `key-${(i * 7_919).toString().padStart(9, "0")}`;

test("figures: caches, filters and rewriting are counted, and a point read of an absent key seldom reads a block", async () => {
  const stamp = new Stamp(5, { limits: { rowCacheBytesMax: 64 * 1024, indexCacheBytesMax: 1 << 20, checkpointsMax: 3 } });
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    let accepted = 0;
    for (let part = 0; part < 6; part++) {
      for (let at = 0; at < 4; at++) {
        // Every part spans all keys, so that a read meets every checkpoint.
        const rows = Array.from({ length: 50 }, (_, i) => put(keyOf((at * 50 + i) * 6 + part), "v".repeat(500)));
        accepted += rows.reduce((sum, row) => sum + row.key.length + (row.kind === "put" ? row.value.length : 0), 0);
        unwrap(await write(partition, "all", rows));
      }
      unwrap(await partition.checkpoint());
    }
    for (let i = 0; i < 1_200; i++) assert.equal(await read(partition, keyOf(i)), "v".repeat(500));
    const before = partition.stats.storage;
    for (let i = 0; i < 1_200; i++) assert.equal(await read(partition, `${keyOf(i)}x`), undefined);
    const after = partition.stats.storage;

    assert.equal(after.pointReads, 2_400);
    assert.equal(after.rowBytesAccepted, accepted);
    assert.ok(after.flushedBytes > accepted && after.flushedBytes < 1.2 * accepted, `${after.flushedBytes} of ${accepted}`);
    assert.ok(after.mergedBytes > 0);
    const absent = after.bloomAbsent - before.bloomAbsent;
    const wrongly = after.bloomFalsePositives - before.bloomFalsePositives;
    assert.equal(absent + wrongly, after.checkpointsMet - before.checkpointsMet);
    assert.ok(wrongly < 0.04 * (absent + wrongly), `${wrongly} of ${absent + wrongly}`);
    assert.equal(after.rowCacheHits + after.rowCacheMisses - before.rowCacheHits - before.rowCacheMisses, wrongly);
    const { checkpointsPerRead = 0, rowCacheHitRate = 0, indexCacheHitRate, writeAmplification = 0 } = storageRatios(after);
    assert.ok(checkpointsPerRead >= 1 && checkpointsPerRead <= 3, `${checkpointsPerRead}`);
    assert.ok(rowCacheHitRate > 0 && rowCacheHitRate < 1, `${rowCacheHitRate}`);
    assert.equal(indexCacheHitRate, 1);
    assert.ok(writeAmplification > 1, `${writeAmplification}`);
    await partition.close();
  });
});

test("index cache: what was pushed out is read again, and gives the same rows", async () => {
  const stamp = new Stamp(6, { limits: { indexCacheBytesMax: 1, checkpointsMax: 16 } });
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    for (let part = 0; part < 3; part++) {
      const rows = Array.from({ length: 40 }, (_, i) => put(`${i}-${part}`, `value ${i} ${part}`));
      unwrap(await write(partition, "all", rows));
      unwrap(await partition.checkpoint());
    }
    const reads = Array.from({ length: 120 }, async (_, i) => {
      const [row, part] = [Math.floor(i / 3), i % 3];
      assert.equal(await read(partition, `${row}-${part}`), `value ${row} ${part}`);
    });
    await Promise.all(reads);
    let scanned = 0;
    for await (const _ of partition.scan({ gte: utf8("0") })) scanned++;
    assert.equal(scanned, 120);
    assert.equal(partition.stats.storage.rowsScanned, 120);
    assert.ok(partition.stats.storage.rowBytesScanned > 120);
    const { indexCacheMisses } = partition.stats.storage;
    assert.ok(indexCacheMisses > 0);
    await partition.close();
  });
});

test("checkpoints: of a key one version is written; tombstones only over what lies below", async () => {
  const stamp = new Stamp(7);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    for (const value of ["1", "2", "3"]) unwrap(await write(partition, "a", [put("a", value), put("b", value)]));
    unwrap(await write(partition, "a", [remove("a"), remove("b")]));
    unwrap(await partition.checkpoint());
    assert.equal(partition.stats.checkpoints, 0, "nothing is left to write");
    unwrap(await write(partition, "a", [put("a", "x".repeat(1_000)), put("b", "x".repeat(1_000))]));
    unwrap(await partition.checkpoint());
    const { flushedBytes } = partition.stats.storage;
    unwrap(await write(partition, "a", [remove("a")]));
    unwrap(await partition.checkpoint());
    assert.equal(partition.stats.checkpoints, 2);
    assert.ok(partition.stats.storage.flushedBytes - flushedBytes < 200, "a tombstone");
    assert.deepEqual([await read(partition, "a"), (await read(partition, "b"))?.length], [undefined, 1_000]);
    await partition.close();
  });
});

test("ratios: nothing counted is nothing said", () => {
  const none = storageRatios({
    pointReads: 0,
    checkpointsMet: 0,
    bloomAbsent: 0,
    bloomFalsePositives: 0,
    rowCacheHits: 0,
    rowCacheMisses: 0,
    indexCacheHits: 0,
    indexCacheMisses: 0,
    rowsScanned: 0,
    rowBytesScanned: 0,
    rowBytesAccepted: 0,
    flushedBytes: 0,
    mergedBytes: 0,
  });
  assert.deepEqual(none, {});
});
