/**
 * An older folder of the lock service is put back under a stamp that acknowledged blobs since: they are not found any more, and `stamp fsck` says
 * so, stopped and running, also after new writes.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { BlobServiceClient, type ContainerClient } from "@azure/storage-blob";
import { exitCodes } from "@stamp/cli";
import { type DrillTarget, startOwn } from "@stamp/drills";

const main = join(import.meta.dirname, "../../packages/cli/src/main.ts");
const folder = mkdtempSync(join(tmpdir(), "stamp-older-metadata-"));
const dataDir = join(folder, "data");
const [store, older] = [join(dataDir, "lock-service-1"), join(folder, "older")];
const flags = { dataDir, extentNodes: 3, streamManagers: 1, partitionManagers: 1, partitionServers: 1 };
let stamp: DrillTarget | undefined;

after(async () => {
  await stamp?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function begin(): Promise<ContainerClient> {
  stamp = await startOwn(flags, true);
  const { connectionString } = await stamp.status();
  return BlobServiceClient.fromConnectionString(connectionString).getContainerClient("con");
}

async function end(): Promise<void> {
  await stamp?.close();
  stamp = undefined;
}

interface Judged {
  readonly code: number;
  readonly findings: readonly { readonly code: string; readonly severity: string }[];
}

/** Returns the exit code of `stamp health` and what it finds. */
function health(): Promise<Judged> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [main, "health", "--json", "--data", dataDir], { maxBuffer: 1 << 24 }, (_error, out) =>
      resolve({ code: child.exitCode ?? -1, ...JSON.parse(out) }),
    );
  });
}

/** Returns the exit code of `stamp fsck` and the kinds of problems that it found. */
function fsck(): Promise<{ readonly code: number; readonly kinds: ReadonlySet<string> }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [main, "fsck", "--json", "--data", dataDir], { maxBuffer: 1 << 24 }, (_error, out) => {
      const { problems } = JSON.parse(out) as { readonly problems: readonly { readonly kind: string }[] };
      resolve({ code: child.exitCode ?? -1, kinds: new Set(problems.map(({ kind }) => kind)) });
    });
  });
}

async function put(container: ContainerClient, from: number, to: number): Promise<void> {
  for (let i = from; i < to; i++) await container.getBlockBlobClient(`b${i}`).uploadData(Buffer.alloc(200_000, i));
}

test("fsck: thirty acknowledged blobs are gone because an older folder of the lock service was put back, and it says so", {
  timeout: 300_000,
}, async () => {
  const first = await begin();
  await first.create();
  await put(first, 0, 5);
  await end();
  cpSync(store, older, { recursive: true });
  await put(await begin(), 5, 35);
  await end();
  assert.deepEqual(await fsck(), { code: 0, kinds: new Set() });
  rmSync(store, { recursive: true });
  cpSync(older, store, { recursive: true });
  const stopped = await fsck();
  assert.ok(stopped.code === 1 && stopped.kinds.has("olderMetadata"), JSON.stringify([...stopped.kinds]));
  const again = await begin();
  const found = await Promise.all(Array.from({ length: 35 }, (_, i) => again.getBlockBlobClient(`b${i}`).exists()));
  assert.equal(found.filter((exists) => !exists).length, 30, "blobs that were acknowledged after the copy");
  // The stream manager hears of the nodes' replicas in their reports, some time after they serve.
  const isTold = ({ findings }: Judged): boolean =>
    findings.some(({ code, severity }) => code === "metadata-older" && severity === "critical");
  let judged = await health();
  for (; !isTold(judged); judged = await health()) await setTimeout(500);
  assert.equal(judged.code, exitCodes.danger, JSON.stringify(judged.findings));
  for (const write of [false, true]) {
    if (write) await put(again, 40, 45);
    const running = await fsck();
    assert.ok(running.code === 1 && running.kinds.has("olderMetadata"), JSON.stringify([...running.kinds]));
  }
});
