/** Memory is used again only after it was given back, stays within its bound, and is given back once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ReusedMemory } from "./reused-memory.ts";

const kib = 1024;
const memoryOf = (freeBytesMax: number): ReusedMemory =>
  new ReusedMemory({ freeBytesMax, pieceBytesMin: 64 * kib, pieceBytesMax: 256 * kib, classBytes: 64 * kib });

test("reused memory: what was given back is taken again, also for a length of the same class; what was not, never is", () => {
  const memory = memoryOf(1_024 * kib);
  const first = memory.take(128 * kib);
  const second = memory.take(128 * kib);
  assert.ok(first !== undefined && second !== undefined);
  assert.ok(first.buffer !== second.buffer);
  assert.ok(memory.isOut(first));
  memory.give(first.subarray(5, 9));
  assert.equal(memory.isOut(first), false);
  assert.equal(memory.freeBytes, 128 * kib);
  assert.notEqual(memory.take(64 * kib)?.buffer, first.buffer);
  const third = memory.take(100 * kib);
  assert.ok(third?.buffer === first.buffer);
  assert.equal(third?.length, 100 * kib);
  assert.equal(memory.freeBytes, 0);
});

test("reused memory: what is given back twice, or was never taken, is a bug that is told", () => {
  const memory = memoryOf(1_024 * kib);
  const taken = memory.take(64 * kib) as Uint8Array;
  memory.give(taken);
  assert.throws(() => memory.give(taken), /once/);
  assert.throws(() => memory.give(new Uint8Array(64 * kib)), /once/);
});

test("reused memory: free memory is bounded, and lengths that nobody wants give way", () => {
  const memory = memoryOf(256 * kib);
  const taken = Array.from({ length: 5 }, () => memory.take(64 * kib) as Uint8Array);
  for (const each of taken) memory.give(each);
  assert.equal(memory.freeBytes, 256 * kib);
  assert.deepEqual(
    taken.map(({ buffer }) => buffer.byteLength > 0),
    [true, true, true, true, false],
    "the last one found no room",
  );
  const larger = memory.take(256 * kib) as Uint8Array;
  memory.give(larger);
  assert.equal(memory.freeBytes, 256 * kib);
  assert.equal(memory.take(256 * kib)?.buffer, larger.buffer);
});

test("reused memory: short and long pieces have memory of their own, and so has every piece without room", () => {
  assert.equal(memoryOf(1_024 * kib).take(64 * kib - 1), undefined);
  assert.equal(memoryOf(1_024 * kib).take(256 * kib + 1), undefined);
  assert.equal(memoryOf(0).take(64 * kib), undefined);
});

test("reused memory: what nobody took between two trims is let go, what was taken again and again stays", () => {
  const memory = memoryOf(1_024 * kib);
  const pieces = Array.from({ length: 4 }, () => memory.take(64 * kib) as Uint8Array);
  const large = memory.take(256 * kib) as Uint8Array;
  for (const each of [...pieces, large]) memory.give(each);
  memory.trim();
  assert.equal(memory.freeBytes, 512 * kib, "all of it was in use since the start");
  const taken = [1, 2, 3].map(() => memory.take(64 * kib) as Uint8Array);
  memory.give(memory.take(256 * kib) as Uint8Array);
  for (const each of taken) memory.give(each);
  memory.trim();
  assert.ok(memory.freeBytes >= 448 * kib, "of the rest, one piece was never taken");
  memory.trim();
  assert.equal(memory.freeBytes, 0, "nobody took anything");
  assert.equal(large.buffer.byteLength, 0, "the system has it again");
  assert.equal(memory.take(64 * kib)?.length, 64 * kib);
});
