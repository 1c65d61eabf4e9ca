import assert from "node:assert/strict";
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { NodeDisk } from "./disk.ts";
import { usableSpace } from "./space.ts";

test("blocks that are kept for others are neither free nor part of the whole", () => {
  // 100 blocks: 20 used, 60 kept, 20 free. Half of what can be used is used.
  assert.deepEqual(usableSpace({ blocks: 100, bfree: 80, bavail: 20, bsize: 4_096, files: 0, ffree: 0 }), {
    freeBytes: 20 * 4_096,
    totalBytes: 40 * 4_096,
  });
});

test("a disk without such blocks: all of them are the whole", () => {
  assert.deepEqual(usableSpace({ blocks: 100, bfree: 80, bavail: 80, bsize: 512, files: 0, ffree: 0 }), {
    freeBytes: 80 * 512,
    totalBytes: 100 * 512,
  });
});

test("a disk tells its space so", async (t) => {
  const blocks = { blocks: 100, bfree: 80, bavail: 20, bsize: 4_096, files: 0, ffree: 0 };
  t.mock.method(fs, "statfs", async () => blocks);
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  assert.deepEqual(await new NodeDisk(tmpdir()).space(), usableSpace(blocks));
});

test("files that can still be made are room, where a file system has a fixed number of them", () => {
  const blocks = { blocks: 100, bfree: 80, bavail: 80, bsize: 512 };
  const bytes = { freeBytes: 80 * 512, totalBytes: 100 * 512 };
  assert.deepEqual(usableSpace({ ...blocks, files: 10, ffree: 3 }), { ...bytes, freeFiles: 3, totalFiles: 10 });
  assert.deepEqual(usableSpace({ ...blocks, files: 0, ffree: 0 }), bytes);
});
