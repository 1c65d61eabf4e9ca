/** `stamp metadata migrate` as a process, on a real LevelDB and a real etcd, there and back. */
import { strict as assert } from "node:assert";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { unwrap } from "@stamp/base";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { LeaseKeeper, MetadataClient, type StoredKey } from "@stamp/metadata-store";
import { nodeWorld } from "@stamp/ports-node";
import { EtcdServers, findEtcd } from "./etcd-server.ts";

const found = await findEtcd();
const options = "skip" in found ? { skip: found.skip } : { timeout: 400_000 };
const program = "program" in found ? found.program : "";
const folder = mkdtempSync(join(tmpdir(), "stamp-etcd-migrate-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const dataDir = join(folder, "lock-service-1");
const cli = join(import.meta.dirname, "../../packages/cli/src/main.ts");
const keyCount = 1_500;

function migrate(to: string, endpoint: string, ...more: readonly string[]): Promise<{ readonly code: number; readonly output: string }> {
  const env = { ...process.env, STAMP_SERVICE: "lock-service", STAMP_DATA_DIR: dataDir, STAMP_ETCD_ENDPOINTS: endpoint };
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [cli, "metadata", "migrate", "--to", to, ...more], { env }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, output: stdout + stderr }),
    );
  });
}

/** Serves the store, does the work, and stops. */
async function whileServed<T>(metadataStore: string, endpoint: string, work: (address: string) => Promise<T>): Promise<T> {
  const world = nodeWorld({ dataDir, name: "lock-service-1", logLevel: "error" });
  const settings = { listen: "127.0.0.1:0", dataDir, init: true, reserveBytes: 0, metadataStore, etcdEndpoints: endpoint };
  const role = new LockServiceRole(world, lockServiceSchema.parse(settings));
  await role.start();
  try {
    for (const endMs = performance.now() + 30_000; role.status.state !== "serving" && performance.now() < endMs; ) await sleep(20);
    return await work(role.address);
  } finally {
    await role.stop();
    await world.transport.close();
    await world.foreign.close();
  }
}

const client = nodeWorld({ dataDir: join(folder, "client"), name: "client", logLevel: "error" });
const keysAt = async (address: string): Promise<StoredKey[]> => unwrap(await new MetadataClient(client, address).list("", 30_000));

test("a store goes to etcd and back by the command, and every key is the same", options, async () => {
  const servers = await EtcdServers.start(program, 1);
  const [endpoint] = servers.endpoints as [string];
  try {
    const before = await whileServed("leveldb", endpoint, async (address) => {
      const identity = { id: "leader", incarnation: 1, instance: "start", stampId: undefined, bindStamp: async () => {} };
      const lease = { lockService: address, leaseName: "leader", holder: "leader", address: "leader" };
      const keeper = new LeaseKeeper(client, { ...lease, identity, onLost: () => {} });
      const fence = { leaseName: "leader", leaseEpoch: await keeper.acquire() };
      const store = new MetadataClient(client, address);
      for (let start = 0; start < keyCount; start += 100) {
        const writes = Array.from({ length: 100 }, (_, i) => ({ key: `k/${start + i}`, value: new Uint8Array(500).fill(i) }));
        unwrap(await store.transact({ fence, conditions: [], writes }, 10_000));
      }
      await keeper.release();
      const running = await migrate("etcd", endpoint);
      assert.notEqual(running.code, 0);
      assert.match(running.output, /its lock service runs: stop it first/);
      return keysAt(address);
    });
    assert.equal(before.length, keyCount);
    const there = await migrate("etcd", endpoint);
    assert.equal(there.code, 0, there.output);
    assert.match(there.output, /keys are in etcd, compared one by one/);
    const aside = readdirSync(join(dataDir, "stores")).filter((name) => name.startsWith("metadata.migrated-"));
    assert.deepEqual([aside.length, existsSync(join(dataDir, "stores", "metadata"))], [1, false]);
    assert.deepEqual(await whileServed("etcd", endpoint, keysAt), before);
    const back = await migrate("leveldb", endpoint);
    assert.equal(back.code, 0, back.output);
    assert.deepEqual(await whileServed("leveldb", endpoint, keysAt), before);

    // A store that was restored into the folder takes the place of the one in etcd.
    assert.equal((await migrate("etcd", endpoint)).code, 0);
    renameSync(join(dataDir, "stores", aside[0] as string), join(dataDir, "stores", "metadata"));
    const refused = await migrate("etcd", endpoint);
    assert.match(refused.output, /there is a metadata store in etcd; if this one takes its place: --replace/);
    const replaced = await migrate("etcd", endpoint, "--replace");
    assert.equal(replaced.code, 0, replaced.output);
    const [, kept = ""] = /what was in etcd before is in (\S+)/.exec(replaced.output) ?? [];
    assert.equal(existsSync(kept), true, replaced.output);
    assert.deepEqual(await whileServed("etcd", endpoint, keysAt), before);
  } finally {
    await client.transport.close();
    await servers.stop();
  }
});
