/** An etcd with users whose tokens grow old, and an election key that no process has put. */
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { allRules, ok, refused, utf8 } from "@stamp/base";
import { type LogFields, type Logger, type Role, servedOpenly, silentLogger, type World } from "@stamp/ports";
import { EtcdState, SimulatedEtcd, Simulation } from "@stamp/virtual-time";
import { etcd } from "@stamp/wire";
import { Election, EtcdClient, EtcdKeys, EtcdKeyValue } from "./index.ts";
import { put as putKey } from "./operations.ts";
import { encodeCandidate } from "./options.ts";

const prefix = "/stamp/test/";
const keys = new EtcdKeys(prefix);
const user = { name: "stamp", password: "secret" };

/** Users of an etcd. Refusals have the words of its api/v3rpc/rpctypes. */
class Users {
  enabled = true;
  /** Grows with each change of a user or role; a token of another revision is old. */
  revision = 1;
  made = 0;

  /** Why a call with this token is refused; undefined if it is not. */
  refusal(token: string | undefined) {
    if (!this.enabled) return undefined;
    if (token === undefined) return refused("invalidArgument", "badRequest", "etcdserver: user name is empty");
    if (token === `token-${this.revision}`) return undefined;
    return refused("invalidArgument", "badRequest", "etcdserver: revision of auth store is old");
  }
}

/** Logger that keeps its warnings. */
function recorded(lines: { readonly message: string; readonly fields: LogFields | undefined }[]): Logger {
  const logger: Logger = { ...silentLogger, child: () => logger };
  return { ...logger, warn: (message, fields) => void lines.push({ message, fields }) };
}

async function withUsers(work: (sim: Simulation, users: Users, client: EtcdClient, lines: { message: string }[]) => Promise<void>) {
  const sim = new Simulation({ seed: 1, timeLimitMs: 600_000 });
  const users = new Users();
  const state = new EtcdState();
  const role = (world: World): Role => ({
    address: "etcd",
    status: { ready: true, waitingFor: [], state: "serving", facts: {} },
    stop: async () => {},
    start: async () => {
      const services = [
        servedOpenly(etcd.KV, {
          range: async (request, { metadata }) => users.refusal(metadata.token) ?? state.range(request),
          txn: async (request, { metadata }) => users.refusal(metadata.token) ?? state.apply(request),
          compact: async () => ok({}),
        }),
        servedOpenly(etcd.Auth, {
          authenticate: async ({ name, password }) => {
            if (!users.enabled) return refused("failedPrecondition", "badRequest", "etcdserver: authentication is not enabled");
            if (name !== user.name || password !== user.password) {
              return refused("invalidArgument", "badRequest", "etcdserver: authentication failed, invalid user ID or password");
            }
            users.made += 1;
            return ok({ token: `token-${users.revision}` });
          },
        }),
      ];
      await world.transport.serve("etcd", services);
    },
  });
  sim.addProcess("etcd", role);
  await sim.run(async () => {
    await sim.sleep(50);
    const lines: { message: string; fields: LogFields | undefined }[] = [];
    const world = sim.world("client");
    const client = new EtcdClient({ ...world, foreign: world.foreign, logger: recorded(lines) }, { endpoints: ["etcd"], prefix, user });
    await work(sim, users, client, lines);
  });
}

/** Attempts until a read succeeds; fails after five. */
async function attemptsOf(client: EtcdClient): Promise<number> {
  for (let attempts = 1; attempts <= 5; attempts++) {
    const answer = await client.once(({ kv }, options) => kv.range({ key: keys.active }, options));
    if (answer.ok) return attempts;
    assert.deepEqual([answer.failure.reason, answer.failure.applied], ["unauthorized", "no"]);
  }
  throw new Error("no read succeeds");
}

test("users: when a role is changed every older token is refused, and the next attempt has a new one", async () => {
  await withUsers(async (_sim, users, client) => {
    assert.equal(await attemptsOf(client), 1);
    users.revision += 1;
    assert.equal(await attemptsOf(client), 2);
    assert.equal(await attemptsOf(client), 1, "the new token is kept");
    assert.equal(users.made, 2);
  });
});

test("users: a batch goes through a change of a role, and is applied once", async () => {
  await withUsers(async (_sim, users, client) => {
    const repeated = await client.repeat(
      ({ kv }, options) => kv.txn({ compare: [], success: [putKey(utf8("a"), utf8("1"))], failure: [] }, options),
      () => false,
    );
    assert.equal(repeated.ok, true);
    users.revision += 1;
    const again = await client.repeat(
      ({ kv }, options) => kv.txn({ compare: [], success: [putKey(utf8("a"), utf8("2"))], failure: [] }, options),
      () => false,
    );
    assert.equal(again.ok && again.value.header?.revision, 3n);
  });
});

test("users: an etcd without users asks for none, also when a user is configured; when they are switched on, a token is made", async () => {
  await withUsers(async (_sim, users, client) => {
    users.enabled = false;
    assert.equal(await attemptsOf(client), 1);
    users.enabled = true;
    assert.equal(await attemptsOf(client), 2);
  });
});

test("users: an etcd that refuses every call is told in the log, once in a minute, and not for a short trouble", async () => {
  await withUsers(async (sim, users, client, lines) => {
    const refuse = users.refusal;
    users.refusal = () => refused("permissionDenied", "badRequest", "etcdserver: permission denied");
    const tryFor = async (ms: number): Promise<void> => {
      for (let i = 0; i < ms / 500; i++, await sim.sleep(500)) {
        await client.once(({ kv }, options) => kv.range({ key: keys.active }, options));
      }
    };
    await tryFor(2_500);
    assert.deepEqual(lines, []);
    await tryFor(30_000);
    assert.equal(lines.length, 1);
    assert.match(JSON.stringify(lines), /no call to etcd succeeds.*permission denied/);
    users.refusal = refuse;
    await tryFor(1_000);
    assert.equal(client.trouble, undefined);
  });
});

test("an election key without an etcd lease, as a copy of another etcd has it, is removed; its process is deposed, and one is elected", {
  timeout: 60_000,
}, async () => {
  const sim = new Simulation({ seed: 2, timeLimitMs: 600_000 });
  const state = new EtcdState();
  sim.addProcess("etcd", (world) => new SimulatedEtcd(world, { listen: "etcd", state, prng: sim.prng.fork() }));
  const putByHand = (): void => {
    const candidate = encodeCandidate({ name: "elsewhere", address: "10.9.9.9:1", attempt: "0123" });
    const request = { compare: [], success: [putKey(keys.active, candidate)], failure: [] };
    assert.equal(state.apply(request as unknown as etcd.TxnRequest).ok, true);
  };
  const campaign = (name: string) =>
    new Election(
      new EtcdClient(sim.world(name), { endpoints: ["etcd"], prefix }),
      { keys, name, address: () => name, ttlSeconds: 2 },
      allRules,
    ).campaign(new AbortController().signal);
  await sim.run(async () => {
    await sim.sleep(50);
    putByHand();
    const one = await campaign("one");
    const store = new EtcdKeyValue(one, allRules);
    await store.batch([{ kind: "put", key: utf8("k"), value: utf8("1") }]);

    // The key keeps its create revision, so the elected process goes on, but nothing would remove the key after its death.
    const two = campaign("two");
    await sim.sleep(500);
    putByHand();
    const elected = await two;
    await assert.rejects(store.batch([{ kind: "put", key: utf8("k"), value: utf8("2") }]), /not the active one any more/);
    assert.equal(new TextDecoder().decode(await new EtcdKeyValue(elected, allRules).get(utf8("k"))), "1");
    await elected.resign();
  });
});
