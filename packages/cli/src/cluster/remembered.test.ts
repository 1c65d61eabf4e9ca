/** The command line on a data folder that remembers its cluster. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { clusterRecordPath, readClusterRecord, writeClusterRecord } from "@stamp/cluster";

interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

const stamp = (...args: readonly string[]): Promise<Said> =>
  new Promise((resolve) => {
    const child = execFile(process.execPath, [join(import.meta.dirname, "../main.ts"), ...args], (_error, out, err) =>
      resolve({ code: child.exitCode ?? -1, out, err }),
    );
  });

test("data folder that remembers its cluster: up says what is kept, changed and left out; config shows and forgets it", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "stamp-remembers-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  // A port of the cluster is taken, so that nothing is started; the error tells on which ports it was to be.
  const blocker = createServer();
  await new Promise<void>((resolve) => blocker.listen(0, "127.0.0.1", resolve));
  t.after(() => blocker.close());
  const taken = (blocker.address() as { readonly port: number }).port;
  const portBase = taken - 100;
  for (const number of [1, 2, 3, 4, 5]) mkdirSync(join(dataDir, `extent-node-${number}`, "files"), { recursive: true });
  writeClusterRecord(dataDir, { config: { portBase, extentNodes: 4, copies: 3 }, retired: ["extent-node-1"] });

  const [up, shown] = await Promise.all([
    stamp("up", "-d", "--extent-nodes", "3", "--copies", "5", "--data", dataDir),
    stamp("config", "show", "--json", "--data", dataDir),
  ]);
  assert.equal(up.code, 1, up.out + up.err);
  assert.deepEqual(up.out.split("\n").slice(0, 3), [
    `as at the last start: portBase ${portBase}, lockServices 1`,
    "extentNodes: 4 → 3 since the last start on this folder",
    "copies: 3 → 5 since the last start on this folder",
  ]);
  assert.match(up.err, /^stamp: extent-node-5 is not started; /);
  assert.match(up.err, /\nstamp: the metadata lie on the disk of one lock service: /);
  assert.match(up.err, /\nstamp: copies is 5, but there are only 3 extent nodes/);
  assert.ok(up.err.includes(`port ${taken} (gRPC of lock-service-1) is taken`), up.err);
  assert.equal((JSON.parse(shown.out) as { portBase: number }).portBase, portBase);
  assert.deepEqual(readClusterRecord(dataDir)?.config, { portBase, extentNodes: 4, copies: 3 }, "what did not start is not remembered");

  const forgot = await stamp("config", "forget", "copies", "--data", dataDir);
  assert.equal(forgot.code, 0, forgot.err);
  assert.deepEqual(readClusterRecord(dataDir), { config: { portBase, extentNodes: 4 }, retired: ["extent-node-1"], slots: {} });

  // Down needs nothing of the record, so damage does not hold it up.
  writeFileSync(clusterRecordPath(dataDir), "{");
  const [refused, down] = await Promise.all([stamp("up", "-d", "--data", dataDir), stamp("down", "--data", dataDir)]);
  assert.match(refused.err, /cluster\.json is damaged/);
  assert.deepEqual([refused.code, down.code], [1, 0], down.err);
});

test("up on a folder whose lock services replicate the metadata: fewer, and another store, are refused and not remembered", async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), "stamp-replicated-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  for (const number of [1, 2, 3]) mkdirSync(join(dataDir, `lock-service-${number}`, "stores", "consensus-1"), { recursive: true });
  const recorded = { lockServices: 3 };
  writeClusterRecord(dataDir, { config: recorded, retired: [] });
  const etcd = '{"lock-service":{"metadataStore":"etcd","etcdEndpoints":"127.0.0.1:1"}}';
  const [one, overEtcd] = await Promise.all([
    stamp("up", "-d", "--lock-services", "1", "--data", dataDir),
    stamp("up", "-d", "--roles", etcd, "--data", dataDir),
  ]);
  assert.deepEqual([one.code, overEtcd.code], [2, 2], one.err + overEtcd.err);
  assert.match(one.err, /are replicated by its lock services, and there is no way back to one: --lock-services 3/);
  assert.match(overEtcd.err, /no way back to etcd/);
  assert.deepEqual(readClusterRecord(dataDir)?.config, recorded);
});

test("up --init on a host without the first lock service: refused, and names the host that begins the stamp", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-init-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const topology = join(folder, "stamp.topology.json");
  const processes = (number: number): string[] => [`lock-service-${number}`, `extent-node-${number}`];
  const hosts = {
    a: { address: "127.0.0.2", processes: [...processes(1), "stream-manager-1", "partition-manager-1"] },
    b: { address: "127.0.0.3", processes: [...processes(2), "partition-server-1"] },
    c: { address: "127.0.0.4", processes: [...processes(3), "front-end-1"] },
  };
  writeFileSync(topology, JSON.stringify({ hosts, config: { accounts: [{ name: "shop", keys: ["c2hvcA=="] }] } }));
  const said = await stamp("up", "-d", "--init", "--host", "b", "--topology", topology, "--data", join(folder, "b"));
  assert.equal(said.code, 2, said.err);
  assert.match(said.err, /--init: say it on host a; its lock service is the first/);
});
