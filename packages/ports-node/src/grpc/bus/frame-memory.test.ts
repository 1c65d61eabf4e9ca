/** Memory of frames is used again only after it was given back, stays within its bound, and holds a frame of every length. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FrameMemory, reusedFrameBytesMin } from "./frame-memory.ts";

const mib = 1024 * 1024;

test("frame memory: what was given back is taken again, also by a frame of nearly the same length; what was not, never is", () => {
  const memory = new FrameMemory(4 * mib);
  const first = memory.take(mib);
  const second = memory.take(mib);
  assert.notEqual(second.buffer, first.buffer);
  memory.give(first);
  assert.equal(memory.freeBytes, mib);
  const third = memory.take(mib - 1_000);
  assert.equal(third.buffer, first.buffer);
  assert.equal(third.length, mib - 1_000);
  assert.equal(memory.freeBytes, 0);
  assert.notEqual(memory.take(mib).buffer, second.buffer);
});

test("frame memory: giving back twice, or what was never taken, fails", () => {
  const memory = new FrameMemory(4 * mib);
  const frame = memory.take(mib);
  memory.give(frame);
  assert.throws(() => memory.give(frame), /once/);
  assert.throws(() => memory.give(Buffer.allocUnsafeSlow(mib)), /once/);
});

test("frame memory: free memory stays within the bound, and lengths of now replace those of before", () => {
  const memory = new FrameMemory(3 * mib);
  const frames = Array.from({ length: 5 }, () => memory.take(mib));
  for (const frame of frames) memory.give(frame);
  assert.equal(memory.freeBytes, 3 * mib);
  const larger = memory.take(2 * mib);
  memory.give(larger);
  assert.equal(memory.freeBytes, 3 * mib);
  assert.equal(memory.take(2 * mib).buffer, larger.buffer);
});

test("frame memory: small and huge frames are ordinary buffers, and so is every frame without a bound", () => {
  for (const [bound, lengthBytes] of [
    [4 * mib, reusedFrameBytesMin - 1],
    [64 * mib, 9 * mib],
    [0, mib],
  ] as const) {
    const memory = new FrameMemory(bound);
    const frame = memory.take(lengthBytes);
    assert.equal(frame.length, lengthBytes);
    assert.equal(memory.isReused(frame), false);
  }
});
