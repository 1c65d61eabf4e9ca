/**
 * What a stamp of real processes has of an account that was removed from it: its rows go, and then the bytes of its blobs, so that the stamp has
 * room again. An account that comes back meanwhile is whole. An account with queues is moved only if they are given up.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { BlobServiceClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import { StorageSharedKeyCredential as QueueCredential, QueueServiceClient } from "@azure/storage-queue";
import { type TwoStamps, twoStamps, untilCopy } from "./testing/two-stamps.ts";

const mebibyte = 1024 * 1024;
const blobCount = 12;
/** Each byte is on the disks of three extent nodes. */
const replicas = 3;
const blobBytes = 4 * mebibyte;
/** Blob data is in small extents, and collected soon. */
const small = { extentTargetBytes: 8 * mebibyte, collectEveryMs: 1_000, collectGoneMs: 1_000, pinTermMs: 2_000 };
const contentOf = (i: number): Buffer => Buffer.alloc(blobBytes, createHash("sha512").update(`blob ${i}`).digest());

interface AccountFacts {
  readonly removals: readonly { readonly stamp: string; readonly rowsDeleted: number; readonly bytesLeft: number }[];
}

/** Size of everything that the extent nodes of a stamp have on their disks, in bytes. */
function usedBytes({ data }: TwoStamps, stamp: string): number {
  const folder = join(data, stamp);
  const nodes = readdirSync(folder).filter((name) => name.startsWith("extent-node-"));
  const files = nodes.flatMap((name) =>
    readdirSync(join(folder, name), { recursive: true }).map((file) => join(folder, name, String(file))),
  );
  return files.reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0);
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const startMs = performance.now(); !(await holds()); await new Promise((resolve) => setTimeout(resolve, 1_000))) {
    assert.ok(performance.now() - startMs < 240_000, `not within 240 s: ${what}`);
  }
}

test("geo: what a stamp had of an account that left it is deleted, its disks have room again, and an account that comes back is whole", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-removal-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const config = join(folder, "stamp.config.json");
  writeFileSync(config, JSON.stringify({ roles: { "partition-server": small } }));
  const two = await twoStamps(t, { args: ["--config", config] });
  const { portBase, ok, stamp } = two;
  const { keys } = JSON.parse(await ok("account", "create", "acme", "--location", "north", "--json"));
  const credential = new StorageSharedKeyCredential("acme", keys[0]);
  const at = (base: number, name: string) =>
    new BlobServiceClient(`http://127.0.0.1:${base}/${name}`, credential).getContainerClient("things");
  const here = at(portBase, "acme");
  await here.create();
  for (let i = 0; i < blobCount; i++) await here.getBlockBlobClient(`blob-${i}`).uploadData(contentOf(i));
  const empty = usedBytes(two, "south-1");
  await ok("geo", "protect", "acme", "--location", "south");
  await untilCopy(two, "acme", "a complete copy", ({ seeded, pendingOperations }) => seeded && pendingOperations === 0);
  let full = 0;
  await until("the copy's bytes are on the disks of south-1", async () => {
    full = usedBytes(two, "south-1");
    return full > empty + replicas * blobCount * blobBytes;
  });
  await ok("geo", "unprotect", "acme");
  let shown = "";
  await until("everything is deleted", async () => {
    const [account] = JSON.parse(await ok("geo", "status", "acme", "--json")) as [AccountFacts];
    if (account.removals.length > 0) shown = await ok("geo", "status", "acme");
    return account.removals.length === 0;
  });
  if (shown !== "") assert.match(shown, /acme: stamp south-1 deletes what it had of it: \d+ rows deleted/);
  let left = full;
  await until("the bytes of its blobs are given back", async () => {
    left = usedBytes(two, "south-1");
    return left < full - (replicas - 1) * blobCount * blobBytes;
  });
  t.diagnostic(`used bytes of south-1: ${empty} before, ${full} with the copy, ${left} after its removal`);

  // It comes back while what it had is still deleted, twice.
  for (let round = 0; round < 2; round++) {
    await ok("geo", "protect", "acme", "--location", "south");
    await untilCopy(two, "acme", "a complete copy again", ({ seeded, pendingOperations }) => seeded && pendingOperations === 0);
    if (round === 0) await ok("geo", "unprotect", "acme");
  }
  await ok("geo", "failover", "acme", "--planned", "--to", "south-1");
  const there = at(portBase + 300, "acme");
  for (let i = 0; i < blobCount; i++) {
    const content = await there.getBlobClient(`blob-${i}`).downloadToBuffer();
    assert.ok(content.equals(contentOf(i)), `blob-${i}`);
  }

  const queues = new QueueServiceClient(`http://127.0.0.1:${portBase + 301}/acme`, new QueueCredential("acme", keys[0]));
  await queues.getQueueClient("jobs").create();
  await untilCopy(two, "acme", "a complete copy at the old primary", ({ secondary, seeded }) => secondary === "north-1" && seeded);
  await ok("geo", "unprotect", "acme");
  const { code, output } = await stamp("account", "migrate", "acme", "--to", "north-1");
  assert.notEqual(code, 0);
  assert.match(output, /account acme has queues \(jobs\): move them with --with-queues/);
  await ok("account", "migrate", "acme", "--to", "north-1", "--drop-queues");
  assert.ok((await here.getBlobClient("blob-0").downloadToBuffer()).equals(contentOf(0)));
});
