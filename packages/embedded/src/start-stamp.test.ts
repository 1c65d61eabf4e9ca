import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { BlobServiceClient, RestError } from "@azure/storage-blob";
import { startStamp } from "./index.ts";

const text = async (client: BlobServiceClient, container: string, blob: string): Promise<string> =>
  (await client.getContainerClient(container).getBlobClient(blob).downloadToBuffer()).toString();

test("embedded: what was acknowledged is there after stop and start on the same folder", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "stamp-test-"));
  try {
    const first = await startStamp({ dataDir });
    const before = BlobServiceClient.fromConnectionString(first.connectionString).getContainerClient("kept");
    await before.create();
    await before.getBlockBlobClient("small").upload("hello", 5);
    const large = Buffer.alloc(3_000_000, "abcdefg");
    await before.getBlockBlobClient("large").uploadData(large, { blockSize: 1_000_000 });
    await first.stop();

    const second = await startStamp({ dataDir });
    const after = BlobServiceClient.fromConnectionString(second.connectionString);
    assert.equal(await text(after, "kept", "small"), "hello");
    assert.ok(large.equals(await after.getContainerClient("kept").getBlobClient("large").downloadToBuffer()));
    await second.stop();
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});

test("embedded: two at once in one process know nothing of each other, and a temporary folder goes with its stamp", async () => {
  const [one, two] = await Promise.all([startStamp(), startStamp()]);
  try {
    const [a, b] = [one, two].map(({ connectionString }) => BlobServiceClient.fromConnectionString(connectionString));
    assert.ok(a && b);
    await a.createContainer("only-here");
    await a.getContainerClient("only-here").getBlockBlobClient("x").upload("1", 1);
    await assert.rejects(text(b, "only-here", "x"), (error) => error instanceof RestError && error.statusCode === 404);
  } finally {
    await Promise.all([one.stop(), two.stop()]);
  }
  assert.equal(existsSync(one.dataDir), false);
});

test("embedded: the folder of each role is closed to others of the machine, and files are made for its user alone, whatever the umask is", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "stamp-test-"));
  const umask = process.umask(0);
  try {
    const stamp = await startStamp({ dataDir });
    await stamp.stop();
    const modeOf = (path: string): number => statSync(join(dataDir, path)).mode & 0o777;
    const roles = readdirSync(dataDir);
    assert.ok(roles.length > 5);
    for (const role of roles) assert.equal(modeOf(role), 0o700, role);
    for (const role of roles.filter((name) => name.startsWith("extent-node"))) {
      for (const entry of readdirSync(join(dataDir, role, "files"), { recursive: true, withFileTypes: true })) {
        const mode = statSync(join(entry.parentPath, entry.name)).mode & 0o777;
        assert.equal(mode, entry.isDirectory() ? 0o700 : 0o600, entry.name);
      }
    }
  } finally {
    process.umask(umask);
    rmSync(dataDir, { recursive: true, force: true });
  }
});
