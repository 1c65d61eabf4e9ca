/** The memory of a payload is given back when its last holder ends, and not at all when somebody keeps it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PayloadHolders, unwrap } from "@stamp/base";
import { frameBytes, type Replica } from "@stamp/extent";
import type { DiskQueue } from "../disk/disk-queue.ts";
import { ExtentFiles } from "../disk/extent-files.ts";
import { ExtentStore } from "../disk/extent-store.ts";
import { LocalExtent } from "../disk/local-extent.ts";
import type { ExtentTable } from "../disk/table.ts";
import { Cluster, names, pattern } from "../testing/harness.ts";

test("payload holders: the last one that ends gives the memory back; none does after it was kept", () => {
  let given = 0;
  const holders = new PayloadHolders(3, () => given++);
  holders.end();
  holders.end();
  assert.equal(given, 0);
  holders.end();
  assert.equal(given, 1);
  const kept = new PayloadHolders(1, () => given++);
  kept.keep();
  kept.end();
  assert.equal(given, 1);
});

/** Every request is encoded, and what a handler gave back is overwritten at once (packages/virtual-time/src/ports/unary.ts). */
const spoiling = { network: { roundTrip: true } };

for (const [how, config] of [
  ["in the journal", { inPlaceBytesMin: 10_000_000 }],
  ["in the file, with a pointer in the journal", { inPlaceBytesMin: 1_000 }],
] as const) {
  test(`payload holders: appends ${how} are whole on every node, from memory, from the file and after power losses`, async () => {
    const cluster = new Cluster(210, { simulation: spoiling, config: { ...config, scrubBytesPerSecond: 0 } });
    await cluster.run(async () => {
      await cluster.allReady();
      const id = await cluster.create();
      const sizes = [100_000, 70_000, 200_000, 80_000, 150_000];
      let end = 0;
      const appends = sizes.map((size, i) => {
        const expected = end;
        end += frameBytes(size);
        return cluster.append("en-1", id, expected, [pattern(size, i)]);
      });
      const offsets = (await Promise.all(appends)).map((answer) => unwrap(answer).offsetsBytes[0] as bigint);
      const allRead = async (): Promise<void> => {
        for (const name of names) {
          for (const [i, offset] of offsets.entries()) {
            const { payload } = unwrap(await cluster.read(name, id, offset, sizes[i] as number));
            assert.equal(Buffer.compare(payload, pattern(sizes[i] as number, i)), 0, `${name}, append ${i}`);
          }
        }
      };
      await allRead();
      await cluster.sim.sleep(1_000);
      await allRead();
      assert.ok(cluster.sim.network.payloadsGivenBack > 0, "memory was given back meanwhile");
      for (const name of names) cluster.sim.crash(name, { unsynced: "lost" });
      await cluster.sim.sleep(100);
      for (const name of names) cluster.sim.restart(name);
      await cluster.allReady();
      for (const name of names) unwrap(await cluster.fence(name, id));
      for (const name of names) unwrap(await cluster.seal(name, id, end));
      await allRead();
    });
  });
}

test("payload holders: bytes that a read was given from memory are not given back when they are flushed", async () => {
  const cluster = new Cluster(211);
  const world = cluster.sim.world("tester");
  const files = new ExtentFiles(world, {} as DiskQueue, 8, { stampId: "s", diskId: "d" });
  const store = new ExtentStore(world, { pendingBytesMax: 1_000, indexedBlocksMax: 1_000 }, files, {} as ExtentTable);
  let given = 0;
  const extent = new LocalExtent({ extentId: 1 } as unknown as Replica, 0);
  const pendingOf = (offsetBytes: number) => {
    const holders = new PayloadHolders(1, () => given++);
    return { offsetBytes, endBytes: offsetBytes + 100, frames: [], inMemory: { slices: [pattern(100, offsetBytes)], holders } };
  };
  const [read, unread] = [pendingOf(0), pendingOf(100)];
  extent.pending.push(read, unread);
  const slices = await store.read(extent, 10, 20, { class: "read" });
  assert.equal(Buffer.compare(slices[0] as Uint8Array, pattern(100, 0).subarray(10, 30)), 0);
  read.inMemory.holders.end();
  assert.equal(given, 0, "the answer still holds it");
  unread.inMemory.holders.end();
  assert.equal(given, 1);
});
