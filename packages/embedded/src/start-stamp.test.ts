import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { BlobServiceClient, RestError } from "@azure/storage-blob";
import { type Stamp, startStamp } from "./index.ts";

const service = ({ connectionString }: Stamp): BlobServiceClient => BlobServiceClient.fromConnectionString(connectionString);
const text = async (client: BlobServiceClient, container: string, blob: string): Promise<string> =>
  (await client.getContainerClient(container).getBlobClient(blob).downloadToBuffer()).toString();
const notFound = (error: unknown): boolean => error instanceof RestError && error.statusCode === 404;

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "stamp-test-"));
  try {
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

for (const replicas of [1, 3] as const) {
  test(`embedded: what was acknowledged is there after stop and start on the same folder, with ${replicas} replicas`, () =>
    inFolder(async (dataDir) => {
      const first = await startStamp({ dataDir, replicas });
      const before = service(first).getContainerClient("kept");
      await before.create();
      await before.getBlockBlobClient("small").upload("hello", 5);
      const large = Buffer.alloc(3_000_000, "abcdefg");
      await before.getBlockBlobClient("large").uploadData(large, { blockSize: 1_000_000 });
      await first.stop();
      assert.equal(readdirSync(dataDir).filter((name) => name.startsWith("extent-node")).length, replicas);

      await assert.rejects(startStamp({ dataDir, replicas: replicas === 1 ? 3 : 1 }), /has data in \d replicas: leave "replicas" out/);
      const second = await startStamp({ dataDir });
      assert.equal(await text(service(second), "kept", "small"), "hello");
      assert.ok(large.equals(await service(second).getContainerClient("kept").getBlobClient("large").downloadToBuffer()));
      await second.stop();
    }));
}

test("embedded: two at once in one process know nothing of each other, and a temporary folder goes with its stamp", async () => {
  const stamps = await Promise.all([startStamp(), startStamp({ storage: "disk" })]);
  const [one, two] = stamps;
  try {
    await service(one).createContainer("only-here");
    await service(one).getContainerClient("only-here").getBlockBlobClient("x").upload("1", 1);
    await assert.rejects(text(service(two), "only-here", "x"), notFound);
    await two.kill("partition-server-1");
    await two.reset();
    assert.equal(await text(service(one), "only-here", "x"), "1");
  } finally {
    await Promise.all(stamps.map((stamp) => stamp.stop()));
  }
  assert.equal(one.dataDir, undefined);
  assert.equal(existsSync(two.dataDir as string), false);
});

test("embedded: the folder of each role is closed to others of the machine, and files are made for its user alone, whatever the umask is", () =>
  inFolder(async (dataDir) => {
    const umask = process.umask(0);
    try {
      const stamp = await startStamp({ dataDir });
      await stamp.stop();
    } finally {
      process.umask(umask);
    }
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
  }));

test("embedded: a folder whose lock service has lost its data is not made a new stamp", () =>
  inFolder(async (dataDir) => {
    const first = await startStamp({ dataDir });
    await first.stop();
    rmSync(join(dataDir, "lock-service-1", "stores"), { recursive: true });
    await assert.rejects(startStamp({ dataDir, readyTimeoutMs: 500 }), /lock-service-1/);
  }));
