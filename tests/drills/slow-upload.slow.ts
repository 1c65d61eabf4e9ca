/**
 * A slow upload beside a fast collector, on a real cluster: one Put Blob that takes eight terms of its pins, while blobs come and go, its range
 * is split and moved, and a partition server is killed. It commits and reads back byte for byte; an upload that was given up half-way, and what
 * was deleted, is gone from the disks of all nodes a little later.
 */
import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import { startOwn } from "@stamp/drills";

const mebibyte = 1024 * 1024;
const sizeBytes = 40 * mebibyte;
const uploadMs = 48_000;
const pinTermMs = 6_000;
const backWithinMs = 60_000;
/** Seconds where the defaults are minutes. */
const roles = {
  "partition-server": { extentTargetBytes: 4 * mebibyte, collectEveryMs: 500, collectGoneMs: 3_000, pinTermMs },
  "stream-manager": { deletionGraceMs: 3_000 },
};

const target = await startOwn({ roles, ...(process.env.STAMP_PORT_BASE && { portBase: Number(process.env.STAMP_PORT_BASE) }) }, false);
after(() => target.close());
const service = BlobServiceClient.fromConnectionString(target.connectionString, { retryOptions: { maxTries: 1 } });
const container = service.getContainerClient("slow");
const startMs = performance.now();
const note = (text: string): void => console.log(`${((performance.now() - startMs) / 1_000).toFixed(1)} s: ${text}`);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function pieceAt(at: number): Buffer {
  const piece = Buffer.alloc(mebibyte, `piece at ${at} `);
  piece.writeUInt32BE(at, 0);
  return piece;
}

async function* slowly(): AsyncGenerator<Buffer> {
  for (let at = 0; at < sizeBytes; at += mebibyte) {
    await pause((uploadMs * mebibyte) / sizeBytes);
    yield pieceAt(at);
  }
}

/** Size of the extent files on all nodes, in bytes. */
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

/** Fills extents, so that there is always something full to collect. */
async function churn(going: () => boolean): Promise<void> {
  for (let i = 0; going(); i++) {
    const blob = container.getBlockBlobClient(`churn-${i}`);
    await blob.upload(Buffer.alloc(mebibyte, i), mebibyte).catch(() => {});
    await blob.deleteIfExists().catch(() => {});
    await pause(200);
  }
}

async function trouble(): Promise<void> {
  const blobRanges = async () => (await target.inspector.ranges()).filter(({ table }) => table === "Blob");
  const ofUpload = async () => (await blobRanges()).at(-1)?.rangeId ?? "";
  await pause(8_000);
  const split = await (await target.inspector.partitionManager()).splitPartition({ rangeId: await ofUpload() }, { timeoutMs: 30_000 });
  note(`split: ${split.ok ? "done" : split.failure.message}`);
  await pause(8_000);
  const moved = await (await target.inspector.partitionManager()).movePartition(
    { rangeId: await ofUpload(), server: "" },
    { timeoutMs: 30_000 },
  );
  note(`move: ${moved.ok ? "done" : moved.failure.message}`);
  await pause(8_000);
  const server = (await blobRanges()).at(-1)?.server ?? "";
  note(`kill -9 ${server}`);
  await target.ask({ do: "signal", name: server, signal: "SIGKILL" });
}

test("a slow upload commits over passes, a split, a move and a killed server; what is given up is given back", async () => {
  await container.create();
  let over = false;
  const others = Promise.all([churn(() => !over), trouble()]);
  const stop = new AbortController();
  const givenUp = container.getBlockBlobClient("given-up").upload(() => Readable.from(slowly()), sizeBytes, { abortSignal: stop.signal });
  void pause(uploadMs / 2).then(() => stop.abort());
  const blob = container.getBlockBlobClient("slow");
  await Promise.all([blob.upload(() => Readable.from(slowly()), sizeBytes), assert.rejects(givenUp)]);
  note("the upload is answered");
  over = true;
  await others;
  const read = await blob.downloadToBuffer();
  assert.equal(read.length, sizeBytes);
  for (let at = 0; at < sizeBytes; at += mebibyte) assert.ok(read.subarray(at, at + mebibyte).equals(pieceAt(at)), `the piece at ${at}`);
  // Three copies of the blob, and of the ends of streams.
  const enough = async (bytes: number): Promise<void> => {
    const sinceMs = performance.now();
    for (let now = await extentBytes(); now > bytes; now = await extentBytes()) {
      note(`${Math.round(now / mebibyte)} MiB on all nodes`);
      assert.ok(performance.now() - sinceMs < backWithinMs, `${Math.round(now / mebibyte)} MiB, ${Math.round(bytes / mebibyte)} wanted`);
      await pause(2_000);
    }
  };
  await enough(3 * (sizeBytes + 28 * mebibyte));
  await blob.delete();
  note("the blob is deleted");
  await enough(3 * 28 * mebibyte);
  note(`${Math.round((await extentBytes()) / mebibyte)} MiB are left`);
});
