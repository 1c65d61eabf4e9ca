import assert from "node:assert/strict";
import { test } from "node:test";
import { missingFilesForExtents, missingForExtents, takesBytes, takesExtents } from "./disk-room.ts";

const limits = { highWaterPercent: 90, highWaterFreeBytes: 1_000_000, reserveBytes: 50 };
const room = { totalBytes: 1_000, freeBytes: 500, spokenForBytes: 0, full: false };

test("disk room: new extents end at the high-water mark, bytes at the reserve; what is spoken for counts as used", () => {
  assert.ok(takesExtents(room, limits));
  assert.ok(takesExtents({ ...room, freeBytes: 101 }, limits));
  assert.ok(!takesExtents({ ...room, freeBytes: 100 }, limits), "the mark");
  assert.ok(!takesExtents({ ...room, freeBytes: 150, spokenForBytes: 50 }, limits));
  assert.ok(takesBytes({ ...room, freeBytes: 100 }, limits, 50), "open extents go on");
  assert.ok(!takesBytes({ ...room, freeBytes: 100 }, limits, 51), "the reserve");
  assert.ok(!takesBytes({ ...room, freeBytes: 100, spokenForBytes: 20 }, limits, 40));
  assert.ok(!takesBytes({ ...room, full: true }, limits, 1));
  assert.ok(!takesExtents({ ...room, full: true }, limits));
  assert.ok(!takesExtents({ ...room, totalBytes: 0, freeBytes: 0 }, limits), "nothing is known yet");
});

test("room: of a large disk a size is kept free, not a share; what is missing is told", () => {
  const large = { totalBytes: 100_000_000, freeBytes: 1_000_001, spokenForBytes: 0, full: false };
  assert.ok(takesExtents(large, limits), "one percent is free, and a million bytes are enough");
  assert.equal(missingForExtents(large, limits), 0);
  assert.ok(!takesExtents({ ...large, freeBytes: 1_000_000 }, limits));
  assert.equal(missingForExtents({ ...large, freeBytes: 900_000, spokenForBytes: 50_000 }, limits), 150_001);
  assert.equal(missingForExtents({ totalBytes: 1_000, freeBytes: 60, spokenForBytes: 0, full: false }, limits), 41, "the share is smaller");
});

test("disk room: files that can still be made count as room, whatever bytes are free", () => {
  const files = (freeFiles: number, totalFiles: number) => ({ ...room, freeFiles, totalFiles });
  assert.ok(takesExtents(files(129, 1_000), limits));
  assert.ok(!takesExtents(files(128, 1_000), limits), "twice the reserve");
  assert.ok(takesBytes(files(64, 1_000), limits, 1), "open extents go on");
  assert.ok(!takesBytes(files(63, 1_000), limits, 1), "the reserve");
  assert.equal(missingFilesForExtents(files(1_000, 20_000), limits), 1_001, "a tenth");
  assert.equal(missingFilesForExtents(files(10_001, 10_000_000), limits), 0, "10,000 are enough on any disk");
  assert.equal(missingFilesForExtents(room, limits), 0, "no fixed number");
});
