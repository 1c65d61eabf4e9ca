import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { BlobServiceClient, RestError } from "@azure/storage-blob";
import { NodeKeyValueStores } from "@stamp/ports-node";
import { type Stamp, type StampOptions, startStamp } from "./index.ts";

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

test("embedded: with three lock services the folder of any one may be lost; their number is remembered", () =>
  inFolder(async (dataDir) => {
    const first = await startStamp({ dataDir, lockServices: 3 });
    assert.deepEqual(first.roles.slice(0, 3), ["lock-service-1", "lock-service-2", "lock-service-3"]);
    await service(first).createContainer("kept");
    await first.stop();
    await assert.rejects(startStamp({ dataDir, lockServices: 1 }), /has its metadata in 3 lock services: leave "lockServices" out/);
    for (const lost of first.roles.slice(0, 3)) {
      rmSync(join(dataDir, lost), { recursive: true });
      const stamp = await startStamp({ dataDir });
      assert.equal(await service(stamp).getContainerClient("kept").exists(), true, lost);
      // A member that has caught up has a snapshot or entries of its own: the next round takes another one's folder away.
      await untilCaughtUp(stamp, lost);
      await stamp.stop();
    }
  }));

test("embedded: a folder has one stamp; another one is refused and takes nothing from it", () =>
  inFolder(async (folder) => {
    const dataDir = join(folder, "data");
    const first = await startStamp({ dataDir });
    await service(first).createContainer("kept");
    const link = join(folder, "link");
    symlinkSync(dataDir, link);
    for (const path of [dataDir, link])
      await assert.rejects(startStamp({ dataDir: path }), /another stamp of this process uses .*: stop it first/);
    assert.equal(await service(first).getContainerClient("kept").exists(), true);
    await first.stop();
    // A lock of LevelDB, as another process has it.
    const opened = await new NodeKeyValueStores(join(dataDir, "lock-service-1", "stores")).open("identity");
    await assert.rejects(startStamp({ dataDir }), /lock-service-1.* is in use: another process/);
    if (opened.kind === "opened") await opened.store.close();
    const second = await startStamp({ dataDir });
    assert.equal(await service(second).getContainerClient("kept").exists(), true);
    await second.stop();
  }));

test("embedded: what a start or a reset that was interrupted has left is made anew", () =>
  inFolder(async (dataDir) => {
    const first = await startStamp({ dataDir });
    await service(first).createContainer("kept");
    await first.reset();
    assert.equal(existsSync(join(dataDir, "being-made")), false);
    await first.stop();
    writeFileSync(join(dataDir, "being-made"), "");
    writeFileSync(join(dataDir, "own.txt"), "of the user");
    rmSync(join(dataDir, "lock-service-1"), { recursive: true });
    const second = await startStamp({ dataDir, replicas: 3 });
    assert.equal(await service(second).getContainerClient("kept").exists(), false);
    await second.stop();
    assert.deepEqual(
      [existsSync(join(dataDir, "being-made")), existsSync(join(dataDir, "own.txt")), existsSync(join(dataDir, "extent-node-3"))],
      [false, true, true],
    );
  }));

test("embedded: a reset removes also what roles of an earlier, larger start have left", () =>
  inFolder(async (dataDir) => {
    for (const partitionServers of [2, 1]) {
      const stamp = await startStamp({ dataDir, partitionServers });
      assert.equal(existsSync(join(dataDir, "partition-server-2")), true);
      if (partitionServers === 1) await stamp.reset();
      await stamp.stop();
    }
    assert.equal(existsSync(join(dataDir, "partition-server-2")), false);
  }));

test("embedded: a start that fails half way leaves no listener and no hold on its folder", () =>
  inFolder(async (dataDir) => {
    const first = await startStamp();
    const blob = Number(new URL(first.endpoints.blob).port);
    await first.stop();
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const queue = (other.address() as AddressInfo).port;
    await assert.rejects(startStamp({ dataDir, ports: { blob, queue } }), /is taken by another process/);
    other.close();
    const second = await startStamp({ dataDir, ports: { blob, queue } });
    await second.stop();
  }));

test("embedded: wrong options and folders that are no stamp's are refused before anything is made", () =>
  inFolder(async (dataDir) => {
    const wrong: readonly (readonly [unknown, RegExp])[] = [
      [{ dataDir: "" }, /"dataDir" is '': it has to be the path of a folder/],
      [{ storage: "ram" }, /"storage" is 'ram': it has to be "memory" or "disk"/],
      [{ replicas: 2 }, /"replicas" is 2: it has to be 1 or 3/],
      [{ lockServices: 2 }, /"lockServices" is 2: it has to be 1 or 3/],
      [{ partitionServers: 0 }, /"partitionServers" is 0/],
      [{ storage: "disk", partitionServers: Number.POSITIVE_INFINITY }, /"partitionServers" is Infinity/],
      [{ ports: { blob: 70_000 } }, /"ports" is { blob: 70000 }/],
      [{ tls: {} }, /"tls" is {}: it has to be { certificatePath, keyPath }/],
      [{ readyTimeoutMs: Number.NaN }, /"readyTimeoutMs" is NaN/],
    ];
    for (const [options, message] of wrong) await assert.rejects(startStamp(options as StampOptions), message);
    mkdirSync(join(dataDir, "extent-node-1"));
    await assert.rejects(startStamp({ dataDir }), /has no lock-service-1, but extent-node-1: put it back/);
    writeFileSync(join(dataDir, "cluster.json"), "{}");
    await assert.rejects(startStamp({ dataDir }), /is the folder of a cluster of "stamp up"/);
    assert.deepEqual(readdirSync(dataDir).sort(), ["cluster.json", "extent-node-1"]);
  }));

/** Waits until the lock service's vote counts: its folder has what the others had. */
async function untilCaughtUp(stamp: Stamp, name: string): Promise<void> {
  while (!/^stamp_lock_service_log_standing(?:\{[^}]*\})? 1$/m.test(stamp.metrics()[name] ?? ""))
    await new Promise((resolve) => setTimeout(resolve, 10));
}
