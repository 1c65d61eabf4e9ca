/**
 * The master key of a running stamp is replaced under clients, while the command that leads the rotation, and a partition server, are killed again
 * and again: all accounts go on, every row names the new key, and the stamp starts and serves without the old one.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { BlobServiceClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import { unwrap } from "@stamp/base";
import { type DrillTarget, startOwn } from "@stamp/drills";
import { Accounts } from "@stamp/wire";

const main = join(import.meta.dirname, "../../packages/cli/src/main.ts");
const folder = mkdtempSync(join(tmpdir(), "stamp-master-key-"));
const dataDir = join(folder, "data");
const flags = { dataDir, extentNodes: 3, streamManagers: 1, partitionManagers: 1, partitionServers: 2 };
const names = Array.from({ length: 40 }, (_, i) => `acct${100 + i}`);
const call = { timeoutMs: 20_000 };
let stamp: DrillTarget;

before(async () => {
  stamp = await startOwn(flags, true);
});
after(async () => {
  await stamp?.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** `killAfterMs`: kills the command with SIGKILL after this time, if it still runs. */
function keys(args: readonly string[], killAfterMs?: number): Promise<Ran> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [main, "keys", ...args, "--data", dataDir], (_error, out, err) =>
      resolve({ code: child.exitCode ?? -1, out, err }),
    );
    if (killAfterMs !== undefined) setTimeout(() => child.kill("SIGKILL"), killAfterMs).unref();
  });
}

const accounts = async () => stamp.transport.client(await stamp.inspector.leader("partition-manager"), Accounts);
const idsNoted = (): string[] => readFileSync(join(dataDir, "master-key.id"), "utf8").trim().split("\n");

test("master key: rotated under clients while the command and a partition server are killed; all accounts go on, without the old key in the end", {
  timeout: 300_000,
}, async () => {
  const keysOf = new Map<string, readonly string[]>();
  for (const account of names) keysOf.set(account, unwrap(await (await accounts()).create({ account }, call)).keys);
  const [old] = idsNoted();
  const oldKey = readFileSync(join(dataDir, "master-key"), "utf8").trim();
  const { processes } = await stamp.status();
  const clientOf = async (account: string): Promise<BlobServiceClient> => {
    const { connectionString } = await stamp.status();
    const endpoint = new URL(/BlobEndpoint=([^;]+)/.exec(connectionString)?.[1] ?? "").origin;
    return new BlobServiceClient(`${endpoint}/${account}`, new StorageSharedKeyCredential(account, keysOf.get(account)?.[0] ?? ""));
  };
  let going = true;
  let requests = 0;
  const clients = ["acct100", "acct120", "acct139"].map(async (account) => {
    const container = (await clientOf(account)).getContainerClient("during");
    await container.createIfNotExists();
    for (let i = 0; going; i++) {
      const content = Buffer.alloc(512, i);
      await container.getBlockBlobClient(`b${i % 5}`).upload(content, content.length);
      assert.deepEqual(await container.getBlockBlobClient(`b${i % 5}`).downloadToBuffer(), content, account);
      requests += 2;
    }
  });

  // From a process that has just started to one that is amid the rows.
  for (const killAfterMs of [400, 900, 1_500, 2_200, 3_000]) await keys(["rotate-master"], killAfterMs);
  const server = processes.find(({ role }) => role === "partition-server");
  process.kill(server?.pid ?? 0, "SIGKILL");
  const ended = await keys(["rotate-master", "--json", "--timeout", "90"]);
  assert.equal(ended.code, 0, ended.err);
  const { id, previous, rows } = JSON.parse(ended.out) as { id: string; previous: string; rows: Record<string, number> };
  assert.equal(previous, old, "the kills have begun one rotation, not several");
  assert.notEqual(id, old);
  assert.deepEqual(rows, { [id]: names.length + 1 }, "every account, and the one of the configuration");
  assert.deepEqual(idsNoted(), [id, old]);
  const shown = JSON.parse((await keys(["show", "--json"])).out) as { partitionServers: { ids: string[] }[]; current: string };
  assert.deepEqual([shown.current, ...shown.partitionServers.map(({ ids }) => ids.join())], [id, `${id},${old}`, `${id},${old}`]);
  const forgotten = await keys(["rotate-master", "--forget-previous"]);
  assert.equal(forgotten.code, 0, forgotten.err);
  going = false;
  await Promise.all(clients);
  assert.ok(requests > 20, `${requests} requests`);
  console.log(`${requests} requests of clients during the rotation`);

  assert.deepEqual([existsSync(join(dataDir, "master-key.previous")), idsNoted()], [false, [id]]);
  await stamp.close();
  stamp = await startOwn(flags, true);
  assert.notEqual(readFileSync(join(dataDir, "master-key"), "utf8").trim(), oldKey);
  for (const account of names) {
    const held = unwrap(await (await accounts()).get({ account }, call));
    assert.deepEqual([...held.keys], keysOf.get(account), account);
  }
  await (await clientOf("acct139")).getContainerClient("after").create();
});
