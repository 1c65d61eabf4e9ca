import assert from "node:assert/strict";
import { test } from "node:test";
import { reusedTextBytesMin, TextMemory } from "./text-memory.ts";

const mib = 1024 * 1024;

test("memory of texts: what was given back is used for the next text of about its size, and for no other", () => {
  const memory = new TextMemory(8 * mib);
  const first = memory.take(mib - 5);
  assert.ok(first.length >= mib - 5);
  assert.notEqual(memory.take(mib - 5), first, "it is not free yet");
  memory.give(first);
  assert.equal(memory.freeBytes, first.length);
  assert.notEqual(memory.take(2 * mib), first);
  assert.equal(memory.take(mib - 100), first);
  assert.equal(memory.freeBytes, 0);
});

test("memory of texts: what is given back twice is a bug that is told", () => {
  const memory = new TextMemory(8 * mib);
  const taken = memory.take(mib);
  memory.give(taken);
  assert.throws(() => memory.give(taken), /once/);
});

test("memory of texts: free memory is bounded, and sizes that nobody wants give way", () => {
  const memory = new TextMemory(3 * mib);
  const large = memory.take(2 * mib);
  memory.give(large);
  const four = Array.from({ length: 4 }, () => memory.take(mib));
  for (const each of four) memory.give(each);
  assert.equal(memory.freeBytes, 3 * mib);
  assert.notEqual(memory.take(2 * mib), large);
});

test("memory of texts: short and very long texts have memory of their own", () => {
  const memory = new TextMemory(64 * mib);
  for (const bytes of [0, 10, reusedTextBytesMin - 1, 9 * mib]) {
    const taken = memory.take(bytes);
    assert.equal(taken.length, bytes);
    memory.give(taken);
    memory.give(taken);
  }
  assert.equal(memory.freeBytes, 0);
});
