/**
 * Every port that the processes of a running stamp listen at, seen by somebody on the same machine who does not know its secret: all
 * methods of all services, reflection and the bus are refused at once; what stays open is named here, and there is nothing else.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { BlobServiceClient } from "@azure/storage-blob";
import { type DrillTarget, startOwn } from "@stamp/drills";
import { GrpcTransport, geoPeerSecretOf, SecretCredential } from "@stamp/ports-node";
import { Accounts, ExtentNode, GeoDoor, MetadataStore, Status } from "@stamp/wire";
import { assertEveryMethodRefused } from "../tools/every-method.ts";

const main = join(import.meta.dirname, "../../packages/cli/src/main.ts");
const wrong = new SecretCredential(["the secret of another stamp, as long as it is"]);
let stamp: DrillTarget;

before(async () => {
  const one = { streamManagers: 1, partitionManagers: 1, partitionServers: 1 };
  // Another address for the REST doors, where the machine has one: everything else must not be there.
  const httpBind = process.platform === "linux" ? "127.0.0.2" : "127.0.0.1";
  stamp = await startOwn({ extentNodes: 3, ...one, httpBind }, false);
});
after(() => stamp?.close());

test("internal ports: without the secret, and with another one, every method of every service is refused at every process", async () => {
  const { processes } = await stamp.status();
  for (const each of processes) await assertEveryMethodRefused(each, (port) => wrong.tokenFor(port).text);
});

test("internal ports: with the secret that another stamp has for the geo door, every method is refused at every process but front-ends", async () => {
  const { processes, dataDir } = await stamp.status();
  const peer = new SecretCredential([geoPeerSecretOf(readFileSync(join(dataDir, "cluster-secret"), "utf8").trim(), "north-1")]);
  for (const each of processes.filter(({ role }) => role !== "front-end"))
    await assertEveryMethodRefused(each, (port) => peer.tokenFor(port).text);
  const transport = new GrpcTransport({ credential: () => peer });
  const call = { timeoutMs: 10_000 };
  const frontEnd = processes.find(({ role }) => role === "front-end")?.grpc ?? "";
  const status = await transport.client(frontEnd, Status).getStatus({}, call);
  const door = await transport.client(frontEnd, GeoDoor).pinData({ account: "nobody" }, call);
  await transport.close();
  assert.ok(!status.ok && status.failure.code === "permissionDenied", JSON.stringify(status));
  assert.ok(!door.ok && door.failure.code !== "permissionDenied" && door.failure.code !== "unauthenticated", JSON.stringify(door));
});

test("internal ports: account keys, transactions and deletions are not to be had over the bus either", async () => {
  const { processes } = await stamp.status();
  const call = { timeoutMs: 10_000 };
  for (const credential of [undefined, wrong]) {
    const stranger = new GrpcTransport(credential ? { credential: () => credential } : {});
    const leader = processes.find(({ role }) => role === "partition-manager")?.grpc ?? "";
    const lockService = processes.find(({ role }) => role === "lock-service")?.grpc ?? "";
    const node = processes.find(({ role }) => role === "extent-node")?.grpc ?? "";
    const outcomes = [
      await stranger.client(leader, Accounts).get({ account: "devstoreaccount1" }, call),
      await stranger.client(lockService, MetadataStore).getKeys({ keys: ["a"] }, call),
      await stranger.client(node, ExtentNode).read({ extentId: 1n }, call),
    ];
    for (const outcome of outcomes) {
      assert.ok(!outcome.ok && outcome.failure.code === "unauthenticated" && outcome.failure.applied === "no", JSON.stringify(outcome));
    }
    await stranger.close();
  }
  const account = await stamp.transport
    .client(await stamp.inspector.leader("partition-manager"), Accounts)
    .get({ account: "devstoreaccount1" }, call);
  assert.ok(account.ok, "who reads the secret in the data folder gets in");
  assert.equal(statSync(join((await stamp.status()).dataDir, "cluster-secret")).mode & 0o777, 0o600);
});

test("secret: rotated while clients write and read: no request fails, the old secret opens nothing, and a process that starts has the new one", {
  timeout: 300_000,
}, async () => {
  const { connectionString, dataDir, processes } = await stamp.status();
  const secretFile = join(dataDir, "cluster-secret");
  const before = readFileSync(secretFile, "utf8").trim();
  const service = BlobServiceClient.fromConnectionString(connectionString, { retryOptions: { maxTries: 1 } });
  const container = service.getContainerClient("rotation");
  await container.create();
  // A busy machine writes slowly: clients go on until there is enough to judge by.
  let rotating = true;
  let requests = 0;
  const failed: string[] = [];
  const client = async (name: string): Promise<void> => {
    for (let i = 0; rotating || (requests <= 20 && failed.length === 0); i++) {
      const [blob, content] = [container.getBlockBlobClient(`${name}-${i % 10}`), Buffer.alloc(1_024, i)];
      try {
        await blob.upload(content, content.length);
        assert.deepEqual(await blob.downloadToBuffer(), content);
        requests += 2;
      } catch (error) {
        failed.push(String(error));
      }
    }
  };
  const clients = ["a", "b", "c", "d"].map(client);
  const cli = (...args: string[]) => promisify(execFile)(process.execPath, [main, ...args, "--data", dataDir]);
  const rotated = await cli("secret", "rotate", "--json").finally(() => {
    rotating = false;
  });
  await Promise.all(clients);
  const { id, steps } = JSON.parse(rotated.stdout) as { id: string; steps: readonly string[] };
  assert.deepEqual(steps, ["add", "use", "drop"]);
  assert.deepEqual(failed, []);
  assert.ok(requests > 20, `${requests} requests`);
  console.log(`${requests} requests during the rotation, none failed`);
  const old = new GrpcTransport({ credential: () => new SecretCredential([before]) });
  for (const { grpc, name } of processes) {
    const outcome = await old.client(grpc, Status).getStatus({}, { timeoutMs: 10_000 });
    assert.ok(!outcome.ok && outcome.failure.code === "unauthenticated", name);
  }
  await old.close();
  const node = processes.find(({ role }) => role === "extent-node");
  process.kill(node?.pid ?? 0, "SIGKILL");
  for (let i = 0; ; i++) {
    const { stdout } = await cli("secret", "show", "--json").catch(() => ({ stdout: "{}" }));
    const shown = JSON.parse(stdout) as { processes?: readonly { name: string; ids: readonly string[]; problem: string }[] };
    const stale = shown.processes?.filter(({ ids }) => ids.join() !== id);
    if (stale?.length === 0) break;
    assert.ok(i < 30, `${node?.name} was killed: ${JSON.stringify(stale)}`);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  assert.deepEqual(
    readdirSync(dataDir).filter((name) => name.startsWith("cluster-secret")),
    ["cluster-secret"],
  );
});

test("ports: REST doors are at httpBind, all others at internalBind, and nothing else listens", {
  skip: process.platform === "linux" ? false : "looks into /proc",
}, async () => {
  const { processes, endpoints } = await stamp.status();
  const known = new Set(processes.flatMap(({ grpc, http }) => [grpc, http]));
  for (const endpoint of Object.values(endpoints)) known.add(new URL(endpoint).host);
  const listening = new Map<string, string>();
  for (const line of readFileSync("/proc/net/tcp", "utf8").split("\n").slice(1)) {
    const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
    const [address = "", port = ""] = local.split(":");
    const dotted = [...Buffer.from(address, "hex").reverse()].join(".");
    if (state === "0A") listening.set(inode, `${dotted}:${Number.parseInt(port, 16)}`);
  }
  const found = new Set<string>();
  for (const { pid } of processes) {
    for (const fd of readdirSync(`/proc/${pid}/fd`)) {
      let link = "";
      try {
        link = readlinkSync(`/proc/${pid}/fd/${fd}`);
      } catch {
        // It was closed meanwhile.
      }
      const at = listening.get(/^socket:\[(\d+)\]$/.exec(link)?.[1] ?? "");
      if (at !== undefined) found.add(at);
    }
  }
  assert.deepEqual([...found].sort(), [...known].sort());
  const doors = Object.values(endpoints).map((endpoint) => new URL(endpoint).host);
  for (const at of found) assert.ok(at.startsWith(doors.includes(at) ? "127.0.0.2:" : "127.0.0.1:"), at);
});
