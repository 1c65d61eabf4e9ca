/**
 * Real lock services on a real etcd: the metadata store's conformance, fail-over while a holder renews and a leader writes, an etcd that is full,
 * TLS, and users. Skipped with a reason where there is no etcd.
 */
import { strict as assert } from "node:assert";
import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Outcome, unwrap, utf8 } from "@stamp/base";
import { certificates } from "@stamp/cli";
import { etcdSecrets, LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { LeaseKeeper, MetadataClient, metadataStoreConformance, type StoreFence } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { nodeWorld } from "@stamp/ports-node";
import { EtcdServers, findEtcd, type MemberOptions } from "./etcd-server.ts";

const found = await findEtcd();
const options = "skip" in found ? { skip: found.skip } : { timeout: 400_000 };
const program = "program" in found ? found.program : "";
const folder = mkdtempSync(join(tmpdir(), "stamp-etcd-lock-"));
after(() => rmSync(folder, { recursive: true, force: true }));
let folders = 0;

/** Lock services in this process, each on a folder of its own. */
class LockServices {
  readonly #running = new Map<string, { readonly role: LockServiceRole; readonly world: World }>();
  readonly #settings: Readonly<Record<string, unknown>>;
  readonly #folder: string;
  readonly #listen = new Map<string, string>();
  readonly world: World;

  constructor(settings: Readonly<Record<string, unknown>>) {
    this.#settings = settings;
    folders += 1;
    this.#folder = join(folder, String(folders));
    this.world = nodeWorld({ dataDir: join(this.#folder, "client"), name: "client", logLevel: "error" });
  }

  async start(name: string): Promise<void> {
    const world = nodeWorld({ dataDir: join(this.#folder, name), name, logLevel: "error" });
    const listen = this.#listen.get(name) ?? "127.0.0.1:0";
    const config = lockServiceSchema.parse({
      name,
      listen,
      init: true,
      metadataStore: "etcd",
      reserveBytes: 0,

      ...this.#settings,
    });
    const { readFileSync } = await import("node:fs");
    const role = new LockServiceRole(world, config, unwrap(etcdSecrets(config, (path) => readFileSync(path, "utf8"))));
    await role.start();
    this.#listen.set(name, role.address);
    this.#running.set(name, { role, world });
  }

  get list(): string {
    return [...this.#listen.values()].join(",");
  }

  async active(withinMs = 30_000): Promise<string> {
    for (const endMs = performance.now() + withinMs; performance.now() < endMs; await sleep(20)) {
      for (const [name, { role }] of this.#running) if (role.status.state === "serving") return name;
    }
    const states = [...this.#running].map(([name, { role }]) => `${name} ${role.status.state} ${role.status.waitingFor.join(" ")}`);
    throw new Error(`no lock service is active: ${states.join("; ")}`);
  }

  status(name: string) {
    return this.#running.get(name)?.role.status;
  }

  async stop(name: string): Promise<void> {
    const running = this.#running.get(name);
    this.#running.delete(name);
    await running?.role.stop();
    await running?.world.transport.close();
    await running?.world.foreign.close();
  }

  /** As a cut of its network to etcd: its calls fail, and it is told nothing. */
  async cutOff(name: string): Promise<void> {
    await this.#running.get(name)?.world.foreign.close();
  }

  async stopAll(): Promise<void> {
    for (const name of [...this.#running.keys()]) await this.stop(name);
    await this.world.transport.close();
  }
}

function keeperOf(services: LockServices, incarnation: number, onLost: (why: string) => void = () => {}): LeaseKeeper {
  const identity = { id: "leader", incarnation, instance: `start ${incarnation}`, stampId: undefined, bindStamp: async () => {} };
  const lease = { lockService: services.list, leaseName: "leader", holder: "leader", address: "leader" };
  return new LeaseKeeper(services.world, { ...lease, identity, onLost });
}

interface Scene {
  readonly servers: EtcdServers;
  readonly services: LockServices;
}

async function scene(
  count: number,
  names: readonly string[],
  work: (scene: Scene) => Promise<void>,
  members: MemberOptions = {},
): Promise<void> {
  const servers = await EtcdServers.start(program, count, members);
  const services = new LockServices({ etcdEndpoints: servers.endpoints.join(",") });
  try {
    for (const name of names) await services.start(name);
    await services.active();
    await work({ servers, services });
  } finally {
    await services.stopAll();
    await servers.stop();
  }
}

metadataStoreConformance(
  (name, run) => void test(`real etcd: ${name}`, options, run),
  async () => {
    const servers = await EtcdServers.start(program, 1);
    const services = new LockServices({ etcdEndpoints: servers.endpoints.join(",") });
    await services.start("lock-1");
    await services.active();
    let keeper: LeaseKeeper | undefined;
    let terms = 0;
    return {
      store: new MetadataClient(services.world, services.list),
      checksum: services.world.digest.crc32c,
      stranger: new MetadataClient(services.world, services.list, { stampId: "another stamp" }),
      nextTerm: async (): Promise<StoreFence> => {
        await keeper?.release();
        terms += 1;
        keeper = keeperOf(services, terms);
        return { leaseName: "leader", leaseEpoch: await keeper.acquire() };
      },
      powerCut: async () => {
        const [name] = servers.names as [string];
        await servers.kill(name);
        await services.stop("lock-1");
        servers.startMember(name);
        await services.start("lock-1");
        await services.active();
      },
      dispose: async () => {
        await keeper?.release();
        await services.stopAll();
        await servers.stop();
      },
    };
  },
);

interface Written {
  readonly longestMs: number;
  readonly lost: readonly string[];
}

/** A leader that holds its lease and counts up a key, while `fault` happens. Every answered count must be there. */
async function whileItCounts({ services }: Scene, key: string, fault: () => Promise<void>): Promise<Written> {
  const lost: string[] = [];
  const keeper = keeperOf(services, 1, (why) => lost.push(why));
  const fence = { leaseName: "leader", leaseEpoch: await keeper.acquire() };
  const store = new MetadataClient(services.world, services.list);
  let [version, count, longestMs] = [0, 0, 0];
  let going = true;
  const count1 = async (): Promise<void> => {
    const sinceMs = performance.now();
    while (going) {
      const write = { key, value: utf8(String(count + 1)) };
      const answer: Outcome<number> = await store.transact({ fence, conditions: [{ key, version }], writes: [write] }, 1_500);
      if (answer.ok) version = answer.value;
      else if (answer.failure.reason === "conflict") {
        // An attempt without an answer was done.
        const [entry] = unwrap(await store.get([key], 20_000));
        assert.equal(String.fromCharCode(...(entry?.value ?? [])), String(count + 1), "no count is lost or done twice");
        version = entry?.version ?? 0;
      } else {
        await sleep(20);
        continue;
      }
      count += 1;
      break;
    }
    longestMs = Math.max(longestMs, performance.now() - sinceMs);
  };
  const counting = (async () => {
    while (going) await count1();
  })();
  try {
    await sleep(500);
    await fault();
    await sleep(1_500);
  } finally {
    going = false;
    await counting;
  }
  const [entry] = unwrap(await store.get([key], 20_000));
  assert.equal(String.fromCharCode(...(entry?.value ?? [])), String(count));
  await keeper.release();
  return { longestMs, lost };
}

test(
  "three members and three lock services: the leader of etcd is killed, the active one stops, or is cut off; nothing is lost",
  options,
  () =>
    scene(3, ["lock-1", "lock-2", "lock-3"], async (made) => {
      const { servers, services } = made;
      const pauses: string[] = [];
      const during = async (what: string, fault: () => Promise<void>): Promise<void> => {
        const { longestMs, lost } = await whileItCounts(made, what, fault);
        pauses.push(`${what} ${Math.round(longestMs)} ms${lost.length > 0 ? " (the lease ended)" : ""}`);
      };
      await during("leader of etcd killed", async () => {
        const leader = await servers.led();
        await servers.kill(leader);
        await sleep(2_000);
        servers.startMember(leader);
      });
      await during("active lock service stopped", async () => {
        const active = await services.active();
        await services.stop(active);
        await services.active();
        await services.start(active);
      });
      await during("active lock service cut off from etcd", async () => {
        const active = await services.active();
        await services.cutOff(active);
        for (const endMs = performance.now() + 20_000; services.status(active)?.state === "serving" && performance.now() < endMs; )
          await sleep(50);
        await services.stop(active);
        await services.start(active);
      });
      console.log(`# longest transaction: ${pauses.join(", ")}`);
    }),
);

test("etcd with a quota that is used up: leases are renewed, writes are refused", options, () =>
  scene(
    1,
    ["lock-1"],
    async ({ services }) => {
      const lost: string[] = [];
      const keeper = keeperOf(services, 1, (why) => lost.push(why));
      const fence = { leaseName: "leader", leaseEpoch: await keeper.acquire() };
      const store = new MetadataClient(services.world, services.list);
      const value = new Uint8Array(500_000);
      let full: Outcome<number> | undefined;
      for (let i = 0; i < 100; i++) {
        const answer = await store.transact({ fence, conditions: [], writes: [{ key: `k${i}`, value }] }, 2_000);
        if (answer.ok) continue;
        full = answer;
        if (answer.failure.reason === "diskFull") break;
      }
      assert.ok(full !== undefined && !full.ok && full.failure.reason === "diskFull" && full.failure.applied === "no");
      await sleep(7_000);
      assert.deepEqual([lost, keeper.holds()], [[], true]);
      assert.equal(unwrap(await store.get(["k0"], 5_000))[0]?.value.length, 500_000);
      await keeper.release();
    },
    // Of 16 MiB.
    { flags: ["--quota-backend-bytes", "16777216"] },
  ),
);

test(
  "TLS and users: without the authority or the user nothing is served; a role that is changed under it is not felt",
  options,
  async () => {
    const { makeAuthority, makeServerCertificate } = await certificates();
    const certs = join(folder, "certs");
    mkdirSync(certs, { recursive: true });
    const path = (name: string, text: string): string => {
      writeFileSync(join(certs, name), text, { mode: 0o600 });
      return join(certs, name);
    };
    const authority = await makeAuthority("etcd", Date.now());
    const server = await makeServerCertificate(authority, ["127.0.0.1"], Date.now());
    const ca = path("ca.pem", authority.certificate);
    const [cert, key] = [path("server.pem", server.certificate), path("server.key", server.key)];
    const password = path("password", "secret\n");
    const pair = generateKeyPairSync("rsa", {
      modulusLength: 2_048,
      publicKeyEncoding: { type: "spki", format: "pem" },
      privateKeyEncoding: { type: "pkcs1", format: "pem" },
    });
    const [publicKey, privateKey] = [path("token.pem", pair.publicKey), path("token.key", pair.privateKey)];
    const tokens = `jwt,pub-key=${publicKey},priv-key=${privateKey},sign-method=RS256,ttl=5m`;
    const flags = ["--cert-file", cert, "--key-file", key, "--auth-token", tokens];
    const servers = await EtcdServers.start(program, 1, { scheme: "https", flags });
    const [endpoint] = servers.endpoints as [string];
    try {
      const change = await withUser(endpoint, authority.certificate);
      const served = async (settings: object, withinMs: number, work: (services: LockServices) => Promise<void>): Promise<void> => {
        const services = new LockServices({ etcdEndpoints: endpoint, ...settings });
        try {
          await services.start("lock-1");
          await services.active(withinMs);
          await work(services);
        } finally {
          await services.stopAll();
        }
      };
      const never = async (): Promise<void> => assert.fail("it is served");
      await assert.rejects(served({}, 2_500, never), /lock-1 starting etcd/);
      await assert.rejects(served({ etcdCaFile: ca }, 2_500, never), /lock-1 starting etcd/);
      await served({ etcdCaFile: ca, etcdUser: "stamp", etcdPasswordFile: password }, 30_000, async (services) => {
        const keeper = keeperOf(services, 1);
        assert.equal(await keeper.acquire(), 1);
        // etcd refuses every token that was made before a change, for as long as those tokens last.
        await change();
        const fence = { leaseName: "leader", leaseEpoch: 1 };
        const store = new MetadataClient(services.world, services.list);
        unwrap(await store.transact({ fence, conditions: [], writes: [{ key: "k", value: utf8("1") }] }, 5_000));
        assert.equal(keeper.holds(), true);
        await keeper.release();
      });
    } finally {
      await servers.stop();
    }
  },
);

/** Makes the users over etcd's JSON door, and turns them on. Returns what changes a user later. */
async function withUser(endpoint: string, ca: string): Promise<() => Promise<void>> {
  const { request } = await import("node:https");
  let authorization: string | undefined;
  const ask = (path: string, body: object): Promise<{ readonly status: number; readonly text: string }> =>
    new Promise((resolve, reject) => {
      const headers = authorization === undefined ? {} : { authorization };
      const sent = request(`https://${endpoint}/v3/auth/${path}`, { method: "POST", ca, headers }, (answer) => {
        let text = "";
        answer.on("data", (part: Buffer) => {
          text += part.toString();
        });
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
      });
      sent.on("error", reject);
      sent.end(JSON.stringify(body));
    });
  const asked = async (path: string, body: object): Promise<void> => {
    for (let tries = 0; ; tries++) {
      const answer = await ask(path, body).catch((error: unknown) => ({ status: 0, text: String(error) }));
      if (answer.status === 200) return;
      if (tries > 50) throw new Error(`${path}: ${answer.status} ${answer.text}`);
      await sleep(200);
    }
  };
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  await asked("user/add", { name: "root", password: "root" });
  await asked("role/add", { name: "root" });
  await asked("user/grant", { user: "root", role: "root" });
  await asked("role/add", { name: "stamp" });
  await asked("role/grant", { name: "stamp", perm: { permType: "READWRITE", key: base64("/stamp/"), range_end: base64("/stamp0") } });
  await asked("user/add", { name: "stamp", password: "secret" });
  await asked("user/grant", { user: "stamp", role: "stamp" });
  await asked("enable", {});
  return async () => {
    const { text } = await ask("authenticate", { name: "root", password: "root" });
    authorization = (JSON.parse(text) as { readonly token: string }).token;
    await asked("user/add", { name: "another", password: "another" });
  };
}
