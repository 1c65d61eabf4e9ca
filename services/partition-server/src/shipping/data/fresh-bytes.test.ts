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

test("fresh bytes: the newest are kept within the bound, a part from the beginning is found, and what is forgotten is not", () => {
  const fresh = new FreshBytes(1_000);
  for (let at = 0; at < 4; at++) fresh.keep(place(1, at * 400, 0), new Uint8Array(400).fill(at));
  assert.equal(fresh.bytes, 800);
  assert.deepEqual(
    [0, 400, 800, 1_200].map((offset) => fresh.find(place(1, offset, 400))?.[0]),
    [undefined, undefined, 2, 3],
  );
  assert.deepEqual(fresh.find(place(1, 1_200, 2)), Uint8Array.of(3, 3));
  assert.equal(fresh.find(place(1, 1_200, 401)), undefined, "it has no more than was appended");
  assert.equal(fresh.find(place(1, 1_201, 2)), undefined);
  assert.equal(fresh.find(place(2, 1_200, 2)), undefined);
  fresh.keep(place(1, 1_200, 0), new Uint8Array(100).fill(9));
  assert.deepEqual([fresh.bytes, fresh.find(place(1, 1_200, 100))?.[0]], [500, 9]);
  fresh.forget(place(1, 1_200, 0));
  fresh.forget(place(1, 1_200, 0));
  assert.deepEqual([fresh.bytes, fresh.find(place(1, 1_200, 1))], [400, undefined]);
  fresh.keep(place(3, 0, 0), new Uint8Array(1_001));
  assert.equal(fresh.bytes, 400, "what is larger than the bound is not kept");
  fresh.clear();
  assert.deepEqual([fresh.bytes, fresh.find(place(1, 800, 1))], [0, undefined]);
});

test("fresh bytes: a small piece of a large frame does not keep the frame", () => {
  const fresh = new FreshBytes(1_000);
  const frame = new Uint8Array(100_000).fill(7);
  fresh.keep(place(1, 0, 0), frame.subarray(500, 600));
  assert.equal(present(fresh.find(place(1, 0, 100)), "bytes").buffer.byteLength, 100);
});

test("fresh bytes: a copy reads only what is not kept any more, and each byte arrives", async () => {
  const fresh = new FreshBytes(10_000);
  await onBench(
    async (bench, copy) => {
      for (const offset of [0, 700]) fresh.keep(place(7, offset, 0), bytesAt(7, offset, 700));
      const row = rowOf(place(7, 0, 700), place(7, 700, 700));
      bench.judge(row, rowAtPeer(row, batchOf(await copy(name, [row]))));
      assert.deepEqual([bench.reads, fresh.bytes], [0, 0], "nothing is read, and nothing is kept that is there");

      fresh.keep(place(8, 0, 0), bytesAt(8, 0, 400));
      const half = rowOf(place(8, 0, 400), place(8, 400, 400));
      bench.judge(half, rowAtPeer(half, batchOf(await copy(name, [half]))));
      assert.deepEqual([bench.reads, fresh.bytes], [1, 0]);

      // After a failure they are still there.
      bench.failWrites = 1;
      fresh.keep(place(9, 0, 0), bytesAt(9, 0, 500));
      const again = rowOf(place(9, 0, 500));
      assert.equal((await copy(name, [again])).ok, false);
      bench.judge(again, rowAtPeer(again, batchOf(await copy(name, [again]))));
      assert.equal(bench.reads, 1);
    },
    { fresh },
  );
});
