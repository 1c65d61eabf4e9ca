/** `stamp metadata restore` as a process beside a real lock service: how it is in a container, where no supervisor tells who runs. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { concatBytes, unwrap } from "@stamp/base";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { inMemory, MetadataClient, openSnapshot } from "@stamp/metadata-store";
import { silentLogger } from "@stamp/ports";
import { NodeDigest, nodeWorld } from "@stamp/ports-node";

interface Running {
  readonly stampId: string;
  readonly snapshot: Uint8Array;
  stop(): Promise<void>;
}

async function lockService(dataDir: string): Promise<Running> {
  const world = nodeWorld({ dataDir, name: "lock-service-1", logger: silentLogger });
  const role = new LockServiceRole(world, lockServiceSchema.parse({ listen: "127.0.0.1:0", dataDir, init: true }));
  await role.start();
  const metadata = new MetadataClient(world, role.address);
  const stop = async (): Promise<void> => {
    await role.stop();
    await world.transport.close();
  };
  const parts: Uint8Array[] = [];
  unwrap(await metadata.readSnapshot(async (bytes) => void parts.push(bytes), 5_000));
  return { stampId: unwrap(await metadata.stampId(5_000)), snapshot: concatBytes(parts), stop };
}

const restore = (service: string, dataDir: string, ...args: string[]): Promise<{ readonly code: number; readonly output: string }> =>
  new Promise((resolve) => {
    const command = [join(import.meta.dirname, "../main.ts"), "metadata", "restore", ...args];
    const env = { ...process.env, STAMP_SERVICE: service, STAMP_DATA_DIR: dataDir };
    const child = execFile(process.execPath, command, { env }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, output: stdout + stderr }),
    );
  });

function folderOf(t: TestContext): { readonly data: string; readonly file: string; readonly store: string } {
  const folder = mkdtempSync(join(tmpdir(), "stamp-restore-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const data = join(folder, "data");
  return { data, file: join(folder, "taken.snapshot"), store: join(data, "stores", "metadata") };
}

const namesIn = (folder: string): string[] => readdirSync(folder).sort();

test("metadata restore: refused while a lock service runs on the folder, whose store stays as it is; done when it has stopped", async (t) => {
  const { data, file, store } = folderOf(t);
  const first = await lockService(data);
  writeFileSync(file, first.snapshot);
  const before = namesIn(store);
  const refused = await restore("lock-service", data, "--replace", file);
  assert.notEqual(refused.code, 0);
  assert.match(refused.output, /its lock service runs: stop it first/);
  assert.deepEqual(namesIn(store), before);
  assert.deepEqual(namesIn(join(data, "stores")), ["identity", "metadata"]);
  await first.stop();

  const unasked = await restore("lock-service", data, file);
  assert.match(unasked.output, /is there: give --replace/);
  const done = await restore("lock-service", data, "--replace", file);
  assert.equal(done.code, 0, done.output);
  assert.equal(namesIn(data).filter((name) => name.startsWith("replaced-")).length, 1);
  assert.match(done.output, /restored: the metadata of stamp .* as of transaction \d+ \(.*\), from .*; now start the stamp, and look: /);
  const second = await lockService(data);
  await second.stop();
  assert.equal(second.stampId, first.stampId);
  const restored = unwrap(await openSnapshot(inMemory(second.snapshot), (bytes, seed) => new NodeDigest().crc32c(bytes, seed)));
  assert.ok(restored.version >= 1_000_000, "what was given since can't be given again");
});

test("metadata restore: into an empty folder, and over one whose every store is unreadable; others can read nothing of it", async (t) => {
  const { data, file, store } = folderOf(t);
  const before = process.umask(0o022);
  t.after(() => process.umask(before));
  const first = await lockService(data);
  await first.stop();
  writeFileSync(file, first.snapshot);
  rmSync(data, { recursive: true });
  assert.equal((await restore("lock-service", data, file)).code, 0);
  const open = readdirSync(data, { recursive: true, encoding: "utf8" }).filter((name) => (statSync(join(data, name)).mode & 0o077) !== 0);
  assert.deepEqual(open, [], "LevelDB's own files, too");
  for (const name of ["identity", "metadata"]) writeFileSync(join(data, "stores", name, "CURRENT"), "nothing\n");
  assert.equal((await restore("lock-service", data, "--replace", file)).code, 0);
  assert.ok(existsSync(store));
  const second = await lockService(data);
  await second.stop();
  assert.equal(second.stampId, first.stampId);
});

test("metadata restore: a container of another process refuses, it has another folder", async (t) => {
  const { data, file } = folderOf(t);
  writeFileSync(file, readFileSync(import.meta.filename));
  const refused = await restore("front-end", data, "--replace", file);
  assert.equal(refused.code, 2, refused.output);
  assert.match(refused.output, /container of front-end/);
  assert.ok(!existsSync(data));
});
