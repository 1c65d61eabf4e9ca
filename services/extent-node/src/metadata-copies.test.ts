import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeSnapshot } from "@stamp/metadata-store";
import { Cluster } from "./harness.test.ts";
import { metadataCopiesFolder } from "./metadata-copies.ts";

test("metadata copies: every change is kept, the newest three; what did not change is not written again", async () => {
  const cluster = new Cluster(3);
  await cluster.run(async () => {
    const { disk, digest } = cluster.sim.world("en-1");
    const names = (): Promise<string[]> => disk.list(metadataCopiesFolder);
    await cluster.sim.sleep(100_000);
    assert.deepEqual(await names(), [], "the lock service does not answer");
    for (let version = 1; version <= 5; version++) {
      cluster.metadataVersion = version;
      await cluster.sim.sleep(100_000);
    }
    const kept = await names();
    assert.deepEqual(
      kept,
      [3, 4, 5].map((version) => `${String(version).padStart(16, "0")}.snapshot`),
    );
    const content = await disk.readWhole(`${metadataCopiesFolder}/${kept[2]}`);
    const snapshot = content && decodeSnapshot(content, (bytes) => digest.crc32c(bytes));
    assert.ok(snapshot?.ok && snapshot.value.version === 5 && snapshot.value.entries.length === 1);
  });
});
