/**
 * The location service as processes, beside a stamp of real processes with a secret of its own and TLS: the commands of
 * docs/guides/locations.md, its ports as strangers see them, its bounds at the stamp, and kill -9 of the location's processes with an account
 * half made.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import { BlobServiceClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import { startOwn } from "@stamp/drills";
import { lockServiceAddresses } from "@stamp/metadata-store";
import { GrpcTransport, locationSecretOf, readPeerTls, SecretCredential } from "@stamp/ports-node";
import { type Caller, LockService, MetadataStore, StreamManager } from "@stamp/wire";
import { type RanStamp, root, runStamp } from "../tools/commands.ts";
import { assertEveryMethodRefused } from "../tools/every-method.ts";

interface Started {
  readonly child: ChildProcess;
  readonly address: string;
}

/** A process of a service, at its first start at any port, later at the same one. */
async function start(service: string, dataDir: string, listen: string, settings: Readonly<Record<string, string>>): Promise<Started> {
  const main = join(root, "services", service, "src/main.ts");
  const env = { ...process.env, STAMP_DATA_DIR: dataDir, STAMP_LISTEN: listen, STAMP_NAME: service, ...settings };
  const child = spawn(process.execPath, [main], { env, stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  const address = await new Promise<string>((resolve, reject) => {
    child.stdout.on("data", (bytes: Buffer) => {
      said += bytes.toString();
      const found = /"address":"([^"]+)"[^\n]*"msg":"started"/.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once("exit", (code) => reject(new Error(`${service} ended with ${code}: ${said}`)));
  });
  return { child, address };
}

const kill = async ({ child }: Started): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
};

const stamp = (...args: readonly string[]): Promise<RanStamp> => runStamp(args, { timeoutMs: 230_000 });

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const startMs = performance.now(); !(await holds()); await new Promise((resolve) => setTimeout(resolve, 300)))
    assert.ok(performance.now() - startMs < 180_000, `not within 180 s: ${what}`);
}

const foreign = new SecretCredential(["the secret of another stamp, as long as it is"]);

/** A location service that was taken over: at the stamp and at its own lock service it does what its role is for, and nothing else. */
async function assertBounds(secrets: string, stampLocks: readonly string[], ownLock: string, ownSecret: string): Promise<void> {
  const secretIn = (path: string): string => readFileSync(path, "utf8").trim();
  const as = (secret: string, caller: Caller) => () => new SecretCredential([secret], undefined, undefined, undefined, caller);
  const certs = join(secrets, "north-1-certs");
  const tls = readPeerTls({
    cert: join(certs, "location-service.pem"),
    key: join(certs, "location-service-key.pem"),
    ca: join(certs, "ca.pem"),
  });
  const call = { timeoutMs: 10_000 };
  // It says to be the operator; its certificate says what it is.
  const atStamp = new GrpcTransport({ credential: as(secretIn(join(secrets, "north-1")), "operator"), tls: () => tls });
  const atHome = new GrpcTransport({ credential: as(secretIn(ownSecret), "location-service") });
  try {
    for (const [transport, address] of [...stampLocks.map((address) => [atStamp, address] as const), [atHome, ownLock] as const]) {
      const leases = transport.client(address, LockService);
      const store = transport.client(address, MetadataStore);
      const fence = { leaseName: "stream-manager", leaseEpoch: 1n };
      const refusedAll = [
        await leases.acquireLease({ name: "stream-manager", holder: "thief", termMs: 60_000 }, call),
        await leases.releaseLease({ name: "stream-manager", leaseEpoch: 1n }, call),
        await leases.refuseRenewals({ name: "stream-manager", leaseEpoch: 1n }, call),
        await store.listKeys({ prefix: "" }, call),
        await store.getKeys({ keys: ["feature-level"] }, call),
        await store.transact({ fence, writes: [{ key: "location/x", value: new Uint8Array(1) }] }, call),
        await store.transact({ fence: { ...fence, leaseName: "location-service" }, writes: [{ key: "feature-level" }] }, call),
      ];
      for (const [at, outcome] of refusedAll.entries())
        assert.ok(
          !outcome.ok && outcome.failure.code === "permissionDenied" && outcome.failure.applied === "no",
          `${at}: ${inspect(outcome)}`,
        );
    }
    // Only the leading one answers.
    const leases = stampLocks.map((address) => atStamp.client(address, LockService).getLease({ name: "stream-manager" }, call));
    const known = (await Promise.all(leases)).flatMap((lease) => (lease.ok ? lease.value.address : []));
    assert.equal(known.length, 1);
    const manager = atStamp.client(known[0] as string, StreamManager);
    assert.ok((await manager.listNodes({}, call)).ok);
    const sealed = await manager.sealAcceptingLoss({}, call);
    assert.ok(!sealed.ok && sealed.failure.code === "permissionDenied", inspect(sealed));
  } finally {
    await atStamp.close();
    await atHome.close();
  }
}

test("location service, real processes: a stamp is added, accounts are placed and pinned, and kill -9 loses nothing", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-location-"));
  const secrets = join(folder, "secrets");
  mkdirSync(secrets, { mode: 0o700 });
  const secretFile = join(folder, "location-secret");
  writeFileSync(secretFile, `${"location".repeat(6)}\n`, { mode: 0o600 });
  const north = join(folder, "north-1");
  const certs = async (...args: readonly string[]): Promise<void> => {
    const { code, output } = await stamp("certs", "cluster", ...args, "--data", north);
    assert.equal(code, 0, output);
  };
  await certs("init", "--stamp", "north-1");
  await certs("issue", "--role", "location-service", "--name", "location-service", "--dir", join(secrets, "north-1-certs"));
  const target = await startOwn({ dataDir: north, tls: "cluster" }, false);
  let lock: Started | undefined;
  let location: Started | undefined;
  t.after(async () => {
    for (const each of [location, lock]) if (each !== undefined) await kill(each);
    await target.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const given = locationSecretOf(readFileSync(join(north, "cluster-secret"), "utf8").trim());
  writeFileSync(join(secrets, "north-1"), `${given}\n`, { mode: 0o600 });
  const { lockService } = await target.status();

  const startBoth = async (lockAt: string, locationAt: string): Promise<void> => {
    const own = { STAMP_CLUSTER_SECRET_FILE: secretFile };
    lock = await start("lock-service", join(folder, "lock"), lockAt, { ...own, STAMP_INIT: "true" });
    const settings = {
      ...{ ...own, STAMP_LOCK_SERVICE: lock.address, STAMP_STAMP_SECRETS_DIR: secrets, STAMP_ASK_EVERY_MS: "1000" },
      // How full the disk of this machine is, is not what is tested.
      STAMP_REFUSE_ABOVE_USED: "1",
    };
    location = await start("location-service", join(folder, "location"), locationAt, settings);
  };
  await startBoth("127.0.0.1:0", "127.0.0.1:0");
  const [lockAt, locationAt] = [lock?.address ?? "", location?.address ?? ""];
  const at = ["--at", locationAt, "--secret-file", secretFile];
  const leads = () => until("a location service leads", async () => (await stamp("location", "status", ...at)).output.includes(": leader"));
  await leads();

  const stranger = await stamp("location", "stamps", "--at", locationAt);
  assert.equal(stranger.code, 1, stranger.output);
  const add = ["location", "add", "north-1", "--location", "north", "--lock-service", lockService];
  assert.equal((await stamp(...add, ...at)).code, 1, "without the stamp's secret");
  const added = await stamp(...add, "--secret", "north-1", ...at);
  assert.equal(added.code, 0, added.output);
  assert.match(added.output, /north-1 +north +open +\d+\.\d% +1 +yes/);
  const again = await stamp(
    "location",
    "add",
    "north-2",
    "--location",
    "north",
    "--lock-service",
    lockService,
    "--secret",
    "north-1",
    ...at,
  );
  assert.match(again.output, /is known already, as north-1/);

  for (const [name, grpc] of [
    ["location-service", locationAt],
    ["lock-service", lockAt],
  ] as const) {
    const served = await assertEveryMethodRefused({ name, grpc }, (port) => foreign.tokenFor(port).text);
    const own = name === "lock-service" ? "MetadataStore/Transact" : "LocationService/FailOverAccount";
    assert.ok(served.has(`/stamp.v1.${own}`), `${name}: ${[...served]}`);
  }
  await assertBounds(secrets, lockServiceAddresses(lockService), lockAt, secretFile);
  await until("the stamp has heard of the location service", async () =>
    /besides +location-service \(location-service, release .*knows level \d+/.test(
      (await stamp("upgrade", "status", "--data", north)).output,
    ),
  );

  const made = await stamp("account", "create", "acme", "--location", "north", "--json", ...at);
  assert.equal(made.code, 0, made.output);
  const { keys, stamp: home } = JSON.parse(made.output) as { keys: string[]; stamp: string };
  assert.equal(home, "north-1");
  const endpoint = new URL(/BlobEndpoint=([^;]+)/.exec(target.connectionString)?.[1] ?? "").origin;
  const client = new BlobServiceClient(`${endpoint}/acme`, new StorageSharedKeyCredential("acme", keys[0] ?? ""));
  await client.createContainer("made-by-the-location-service");
  assert.match((await stamp("account", "create", "acme", "--location", "north", ...at)).output, /account acme is at stamp north-1 already/);
  assert.match(
    (await stamp("account", "create", "zeta", "--location", "west", ...at)).output,
    /location west has no stamp that is a choice/,
  );

  // The account is recorded or not when both die; asked for again it is there once, or is made.
  const half = stamp("account", "create", "halfway", "--location", "north", ...at);
  await new Promise((resolve) => setTimeout(resolve, 500 + Math.random() * 400));
  for (const each of [location, lock]) if (each !== undefined) await kill(each);
  await half;
  await startBoth(lockAt, locationAt);
  await leads();
  const second = await stamp("account", "create", "halfway", "--location", "north", ...at);
  assert.ok(second.code === 0 || /halfway is at stamp north-1 already/.test(second.output), second.output);
  await until("every account is made", async () => {
    const { output } = await stamp("location", "accounts", "--json", ...at);
    const accounts = JSON.parse(output) as { name: string; stamp: string; state: string }[];
    return (
      ["acme", "halfway"].every((name) => accounts.some((each) => each.name === name && each.stamp === "north-1")) &&
      accounts.every(({ state }) => state === "single")
    );
  });
  const closed = await stamp("location", "set-state", "north-1", "closed", ...at);
  assert.match(closed.output, /north-1: it is closed/);
  const refused = await stamp("account", "create", "later", "--location", "north", ...at);
  assert.match(refused.output, /no stamp of location north takes a new account: north-1: it is closed/);
});
