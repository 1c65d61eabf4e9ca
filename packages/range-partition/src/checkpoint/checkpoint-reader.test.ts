import assert from "node:assert/strict";
import test from "node:test";
import { emptyBytes, ok, refused, unwrap, utf8 } from "@stamp/base";
import { CheckpointWriter, type Entry, hashKey, type StoredPlace, withoutPause } from "@stamp/lsm";
import type { ExtentReader } from "@stamp/stream-client";
import { Simulation } from "@stamp/virtual-time";
import { makeCaches } from "../cache/caches.ts";
import { StorageFigures } from "../storage-figures.ts";
import { StorageTimes } from "../storage-times.ts";
import { Checkpoint } from "./checkpoint-reader.ts";

const keyOf = (i: number): Uint8Array => utf8(`key-${i.toString().padStart(5, "0")}`);
const rows = 200;

/** A checkpoint of rows of 1 KiB with even numbers, over blocks that come when they are let go. */
async function checkpoint(rowCacheBytesMax: number) {
  const world = new Simulation({ seed: 1 }).world("server");
  const { crc32c } = world.digest;
  const writer = new CheckpointWriter((bytes, seed) => crc32c(bytes, seed));
  const stored = new Map<number, Uint8Array>();
  const places: StoredPlace[] = [];
  const keep = (bytes: Uint8Array): StoredPlace => {
    const place = { extentId: 7, offsetBytes: stored.size * 100_000, lengthBytes: bytes.length };
    stored.set(place.offsetBytes, bytes);
    return place;
  };
  for (let i = 0; i < rows; i++) {
    const block = writer.add({ key: keyOf(2 * i), sequence: i + 1, value: new Uint8Array(1_000).fill(i) });
    if (block !== undefined) places.push(keep(block));
  }
  places.push(keep(writer.lastBlock() as Uint8Array));
  const { bytes: encoded, index } = withoutPause(writer.index(places));
  const reads: number[] = [];
  let failing = false;
  const reader = {
    read: async ({ offsetBytes }: StoredPlace) => {
      reads.push(offsetBytes);
      await new Promise((resolve) => setImmediate(resolve));
      return failing ? refused("unavailable", "timeout", "no extent node answers") : ok(stored.get(offsetBytes) as Uint8Array);
    },
  } as unknown as ExtentReader;
  const figures = new StorageFigures();
  const caches = makeCaches({ rowCacheBytesMax, indexCacheBytesMax: 1 << 20 });
  const { entryCount, minSequence, maxSequence, dataBytes } = index;
  const indexPlaces = [keep(encoded)];
  const opened = await Checkpoint.open(
    { id: 1, indexPlaces, bytes: dataBytes, entryCount, minSequence, maxSequence },
    { low: emptyBytes, high: emptyBytes },
    { world, reader, caches, figures, times: new StorageTimes(world.clock) },
  );
  reads.length = 0;
  return { checkpoint: unwrap(opened), reads, figures, fail: (now: boolean) => (failing = now) };
}

const getOf = (checkpoint: Checkpoint, key: Uint8Array) => checkpoint.get(key, hashKey(key), Number.MAX_SAFE_INTEGER);

test("checkpoint: a key that its filter does not know, and one whose block is cached, are answered at once", async () => {
  const { checkpoint: one, reads, figures } = await checkpoint(1 << 20);
  let absent = 0;
  for (let i = 1; i < 2 * rows - 2; i += 2) if (getOf(one, keyOf(i)) === undefined) absent++;
  assert.ok(absent > rows - 5, `${absent} of ${rows} absent keys at once`);
  for (let i = 0; i < rows; i++) assert.equal((await getOf(one, keyOf(2 * i)))?.sequence, i + 1);
  const before = reads.length;
  for (let i = 0; i < rows; i++) {
    const found = getOf(one, keyOf(2 * i)) as Entry;
    assert.deepEqual([found.sequence, found.value?.[0]], [i + 1, i]);
  }
  assert.equal(reads.length, before);
  assert.equal(figures.counts.rowCacheMisses - figures.counts.bloomFalsePositives <= before, true);
});

test("checkpoint: who wants a block that is on its way waits for that one; a failure is told to all and not kept", async () => {
  const { checkpoint: one, reads, fail } = await checkpoint(4_096);
  const found = await Promise.all(Array.from({ length: 10 }, () => getOf(one, keyOf(20))));
  assert.deepEqual([found.length, found.every((entry) => entry?.sequence === 11), reads.length], [10, true, 1]);
  // The cache is too small for a block: read again.
  assert.equal((await getOf(one, keyOf(20)))?.sequence, 11);
  assert.equal(reads.length, 2);
  fail(true);
  const failed = await Promise.allSettled([getOf(one, keyOf(20)), getOf(one, keyOf(20))]);
  assert.deepEqual([failed.every(({ status }) => status === "rejected"), reads.length], [true, 3]);
  fail(false);
  assert.equal((await getOf(one, keyOf(20)))?.sequence, 11);
});
