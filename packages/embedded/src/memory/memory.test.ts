/** The disk and the stores in memory, against the suites that the real ones pass. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { diskConformance, keyValueConformance } from "@stamp/ports";
import { MemoryDisk } from "./disk.ts";
import { MemoryKeyValueStores } from "./key-value.ts";

const register = (name: string, run: () => Promise<void>): void => void test(`memory: ${name}`, run);

diskConformance(register, async () => {
  const disk = new MemoryDisk(64 * 1024 * 1024);
  return { disk, reopen: async () => disk, dispose: async () => {} };
});

keyValueConformance(register, async () => {
  const stores = new MemoryKeyValueStores();
  return { stores, reopen: async () => stores, dispose: async () => {} };
});

test("memory: a disk is full at its bound, allocates without memory, and what was cut off reads as zeros", async () => {
  const disk = new MemoryDisk(64 * 1024);
  const file = await disk.open("a", { create: true });
  await file.allocate(1024 * 1024 * 1024);
  assert.equal((await disk.space()).freeBytes, 64 * 1024);
  await file.write(10, [Buffer.from("abc")]);
  await file.truncate(11);
  await file.allocate(20);
  assert.deepEqual(Buffer.from(await file.read(9, 20)).toString("hex"), "0061".padEnd(22, "0"));
  const other = await disk.open("b", { create: true });
  await assert.rejects(other.write(0, [Buffer.alloc(64 * 1024)]), { kind: "full" });
  await disk.remove("a");
  await other.write(0, [Buffer.alloc(64 * 1024)]);
  assert.equal((await disk.space()).freeBytes, 0);
});
