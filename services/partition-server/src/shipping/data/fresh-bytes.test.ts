/** Bytes that were just appended are sent without a read, and what is kept of them is bounded. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { present, unwrap } from "@stamp/base";
import type { CopiedBatch, CopyResult } from "./data-copier.ts";
import { rowAtPeer } from "./data-copier.ts";
import { FreshBytes } from "./fresh-bytes.ts";
import { bytesAt, name, onBench, place, rowOf } from "./testing/bench.ts";

const batchOf = (copied: CopyResult): CopiedBatch => {
  assert.ok(!("gone" in copied));
  return unwrap(copied);
};

const kib = 1_024;
/** Memory of one entry with a buffer of its own. */
const entry = (bytes: number): number => bytes + 512;

test("fresh bytes: the newest are kept within the bound, a part from the beginning is found, and what is forgotten is not", () => {
  const size = 16 * kib;
  const fresh = new FreshBytes(entry(size) * 2 + 100);
  for (let at = 0; at < 4; at++) fresh.keep(place(1, at * size, 0), new Uint8Array(size).fill(at));
  assert.equal(fresh.bytes, 2 * entry(size));
  assert.deepEqual(
    [0, 1, 2, 3].map((at) => fresh.find(place(1, at * size, size))?.[0]),
    [undefined, undefined, 2, 3],
  );
  assert.deepEqual(fresh.find(place(1, 3 * size, 2)), Uint8Array.of(3, 3));
  assert.equal(fresh.find(place(1, 3 * size, size + 1)), undefined, "it has no more than was appended");
  assert.equal(fresh.find(place(1, 3 * size + 1, 2)), undefined);
  assert.equal(fresh.find(place(2, 3 * size, 2)), undefined);
  fresh.keep(place(1, 3 * size, 0), new Uint8Array(size + 10).fill(9));
  assert.deepEqual([fresh.bytes, fresh.find(place(1, 3 * size, size + 10))?.[0]], [2 * entry(size) + 10, 9]);
  fresh.forget(place(1, 3 * size, 0));
  fresh.forget(place(1, 3 * size, 0));
  assert.deepEqual([fresh.bytes, fresh.find(place(1, 3 * size, 1))], [entry(size), undefined]);
  assert.equal(fresh.keep(place(3, 0, 0), new Uint8Array(2 * entry(size))), false);
  assert.equal(fresh.bytes, entry(size), "what is larger than the bound is not kept");
  fresh.clear();
  assert.deepEqual([fresh.bytes, fresh.find(place(1, 2 * size, 1))], [0, undefined]);
});

test("fresh bytes: small appends are not kept: an entry of each would take more memory than its bytes", () => {
  const fresh = new FreshBytes(kib * kib);
  for (let at = 0; at < 10_000; at++) fresh.keep(place(1, at, 0), new Uint8Array(1));
  assert.equal(fresh.keep(place(2, 0, 0), new Uint8Array(16 * kib - 1)), false);
  assert.deepEqual([fresh.bytes, fresh.find(place(1, 9_999, 1)), fresh.find(place(2, 0, 1))], [0, undefined, undefined]);
  fresh.keep(place(3, 0, 0), new Uint8Array(16 * kib));
  assert.equal(fresh.find(place(3, 0, 16 * kib))?.length, 16 * kib);
});

test("fresh bytes: a small piece of a large frame does not keep the frame, and a frame that stays counts whole", () => {
  const fresh = new FreshBytes(kib * kib);
  const frame = new Uint8Array(100 * kib).fill(7);
  assert.equal(fresh.keep(place(1, 0, 0), frame.subarray(500, 500 + 20 * kib)), false, "a copy");
  assert.equal(present(fresh.find(place(1, 0, 100)), "bytes").buffer.byteLength, 20 * kib);
  assert.equal(fresh.keep(place(2, 0, 0), frame.subarray(0, 60 * kib)), true, "the bytes themselves");
  assert.equal(fresh.bytes, entry(20 * kib) + entry(100 * kib));
  fresh.forget(place(2, 0, 0));
  assert.equal(fresh.bytes, entry(20 * kib));
});

test("fresh bytes: a copy reads only what is not kept any more, and each byte arrives", async () => {
  const fresh = new FreshBytes(kib * kib);
  const size = 20 * kib;
  await onBench(
    async (bench, copy) => {
      for (const offset of [0, size]) fresh.keep(place(7, offset, 0), bytesAt(7, offset, size));
      const row = rowOf(place(7, 0, size), place(7, size, size));
      bench.judge(row, rowAtPeer(row, batchOf(await copy(name, [row]))));
      assert.deepEqual([bench.reads, fresh.bytes], [0, 0], "nothing is read, and nothing is kept that is there");

      fresh.keep(place(8, 0, 0), bytesAt(8, 0, size));
      const half = rowOf(place(8, 0, size), place(8, size, size));
      bench.judge(half, rowAtPeer(half, batchOf(await copy(name, [half]))));
      assert.deepEqual([bench.reads, fresh.bytes], [1, 0]);

      // After a failure they are still there.
      bench.failWrites = 1;
      fresh.keep(place(9, 0, 0), bytesAt(9, 0, size));
      const again = rowOf(place(9, 0, size));
      assert.equal((await copy(name, [again])).ok, false);
      bench.judge(again, rowAtPeer(again, batchOf(await copy(name, [again]))));
      assert.equal(bench.reads, 1);
    },
    { fresh },
  );
});
