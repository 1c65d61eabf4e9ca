/**
 * Space comes back after a mass delete, on a real cluster: 1,000 blobs of 256 KiB, 90% of them deleted at random; the extents that are mostly
 * dead are rewritten and freed on every node, by the servers themselves, and every blob that is left is as it was.
 */
import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { BlobClient, startOwn } from "@stamp/drills";

const blobs = 1_000;
const blobBytes = 256 * 1_024;
const waitMs = 120_000;
/** Seconds where the defaults are minutes. */
const roles = {
  "partition-server": { extentTargetBytes: 32 * 1_024 * 1_024, collectEveryMs: 1_000, pinTermMs: 2_000 },
  "stream-manager": { deletionGraceMs: 3_000 },
};

const target = await startOwn({ roles }, false);
after(() => target.close());
const client = BlobClient.fromConnectionString(target.connectionString, { connectionsMax: 8, timeoutMs: 60_000 });
after(() => client.close());

const bodyOf = (number: number): Buffer => Buffer.alloc(blobBytes, `blob ${number} `);

async function each(numbers: readonly number[], work: (number: number) => Promise<void>): Promise<void> {
  const left = [...numbers];
  const worker = async (): Promise<void> => {
    for (let number = left.pop(); number !== undefined; number = left.pop()) await work(number);
  };
  await Promise.all(Array.from({ length: 8 }, worker));
}

/** Of extent files, on all nodes. */
async function extentBytes(): Promise<number> {
  const { dataDir, processes } = await target.status();
  const sizeOf = (folder: string): number =>
    readdirSync(folder, { withFileTypes: true }).reduce((sum, entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return sum + sizeOf(path);
      const found = statSync(path, { throwIfNoEntry: false });
      return sum + (found ? found.blocks * 512 : 0);
    }, 0);
  const nodes = processes.filter(({ role }) => role === "extent-node").map(({ name }) => name);
  return nodes.reduce((sum, name) => sum + sizeOf(join(dataDir, name, "files", "extents")), 0);
}

test("space comes back after a mass delete, and what is left is as it was", async () => {
  await client.createContainer("space");
  const all = Array.from({ length: blobs }, (_, i) => i);
  const etags = new Map<number, string>();
  await each(all, async (number) => {
    const put = await client.put("space", `b${number}`, bodyOf(number));
    assert.ok(put.kind === "answer" && put.status === 201, JSON.stringify(put));
    etags.set(number, String(put.headers.etag));
  });
  const full = await extentBytes();
  const kept = new Set(all.filter(() => Math.random() < 0.1));
  await each(
    all.filter((number) => !kept.has(number)),
    async (number) => {
      const gone = await client.call("DELETE", `/space/b${number}`, {});
      assert.ok(gone.kind === "answer" && gone.status === 202, JSON.stringify(gone));
    },
  );
  // Three copies of what lives, and the open extents at the ends of streams.
  const enough = 3 * (kept.size * blobBytes + 2 * 32 * 1_024 * 1_024);
  const startMs = performance.now();
  let now = full;
  for (; now > enough && performance.now() - startMs < waitMs; now = await extentBytes()) {
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  const mebibytes = (bytes: number): number => Math.round(bytes / 2 ** 20);
  console.log(
    `${mebibytes(full)} MiB on all nodes, ${mebibytes(now)} after ${Math.round((performance.now() - startMs) / 1_000)} s; ${kept.size} blobs are left`,
  );
  assert.ok(now <= enough, `${mebibytes(now)} MiB, ${mebibytes(enough)} wanted`);
  await each([...kept], async (number) => {
    const got = await client.get("space", `b${number}`);
    assert.ok(got.kind === "answer" && got.status === 200, JSON.stringify(got).slice(0, 300));
    assert.ok(got.body.equals(bodyOf(number)), `b${number} has other bytes`);
    assert.equal(got.headers.etag, etags.get(number));
  });
});
