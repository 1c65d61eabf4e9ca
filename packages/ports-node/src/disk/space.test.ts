import assert from "node:assert/strict";
import { test } from "node:test";
import { usableSpace } from "./space.ts";

test("blocks that are kept for others are neither free nor part of the whole", () => {
  // 100 blocks: 20 used, 60 kept, 20 free. Half of what can be used is used.
  assert.deepEqual(usableSpace({ blocks: 100, bfree: 80, bavail: 20, bsize: 4_096 }), { freeBytes: 20 * 4_096, totalBytes: 40 * 4_096 });
});

test("a disk without such blocks: all of them are the whole", () => {
  assert.deepEqual(usableSpace({ blocks: 100, bfree: 80, bavail: 80, bsize: 512 }), { freeBytes: 80 * 512, totalBytes: 100 * 512 });
});
