/**
 * The adapter `@stamp/etcd` on real etcd: one member, three members, leader killed, member lost and back, two members lost, a member that
 * stands still, compaction, TLS, users. Skipped with a reason where there is no etcd.
 */
import { strict as assert } from "node:assert";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { allRules, FailureError, utf8 } from "@stamp/base";
import { Election, EtcdClient, EtcdKeys, EtcdKeyValue, type EtcdOptions, type Session } from "@stamp/etcd";
import type { KeyValue, KeyValueOperation } from "@stamp/ports";
import { nodeWorld } from "@stamp/ports-node";
import { EtcdServers, findEtcd, type MemberOptions } from "./etcd-server.ts";

const found = await findEtcd();
const options = "skip" in found ? { skip: found.skip } : { timeout: 300_000 };
const program = "program" in found ? found.program : "";
const folder = mkdtempSync(join(tmpdir(), "stamp-etcd-adapter-"));
const world = nodeWorld({ dataDir: folder, name: "etcd-adapter-test", logLevel: "error" });
after(async () => {
  await world.foreign.close();
  rmSync(folder, { recursive: true, force: true });
});

const ttlSeconds = 2;

interface Elected {
  readonly session: Session;
  readonly store: EtcdKeyValue;
}

async function elected(endpoints: readonly string[], name = "one", more: Partial<EtcdOptions> = {}): Promise<Elected> {
  const prefix = more.prefix ?? "/stamp/test/";
  const client = new EtcdClient(world, { endpoints, prefix, ...more });
  const election = new Election(client, { keys: new EtcdKeys(prefix), name, address: () => `${name}:1`, ttlSeconds }, allRules);
  const session = await election.campaign(AbortSignal.timeout(30_000));
  return { session, store: new EtcdKeyValue(session, allRules) };
}

async function withServers(count: number, work: (servers: EtcdServers) => Promise<void>, members: MemberOptions = {}): Promise<void> {
  const servers = await EtcdServers.start(program, count, members);
  try {
    await work(servers);
  } finally {
    await servers.stop();
  }
}

const put = (key: string, value: string): KeyValueOperation => ({ kind: "put", key: utf8(key), value: utf8(value) });
const remove = (key: string): KeyValueOperation => ({ kind: "delete", key: utf8(key) });
const text = (bytes: Uint8Array | undefined): string | undefined => bytes && new TextDecoder().decode(bytes);

async function all(store: KeyValue): Promise<Record<string, string>> {
  const entries: Record<string, string> = {};
  for await (const [key, value] of store.range({})) entries[text(key) as string] = text(value) as string;
  return entries;
}

async function refusedAs(work: Promise<unknown>, reason: string): Promise<void> {
  await assert.rejects(work, (error) => error instanceof FailureError && error.failure.reason === reason);
}

test("one member: batches, ranges of many pages at one revision, and a successor that finds all of it", options, () =>
  withServers(1, async ({ endpoints }) => {
    const { session, store } = await elected(endpoints);
    await store.batch([put("a", "1"), remove("a"), put("b", ""), put("k/ü", "x")]);
    assert.deepEqual([text(await store.get(utf8("a"))), text(await store.get(utf8("b")))], [undefined, ""]);
    for (let start = 0; start < 3_000; start += 120) {
      await store.batch(Array.from({ length: 120 }, (_, i) => put(`n/${String(start + i).padStart(6, "0")}`, String(start + i))));
    }
    let seen = 0;
    for await (const [key, value] of store.range({ gte: utf8("n/"), lt: utf8("n0") })) {
      // What is written meanwhile is not seen: the range is of the revision at its first step.
      if (seen === 0) await store.batch([remove("n/002999"), put("n/999999", "late")]);
      assert.equal(text(key), `n/${String(seen).padStart(6, "0")}`);
      assert.equal(text(value), String(seen));
      seen += 1;
    }
    assert.equal(seen, 3_000);
    await session.resign();
    await refusedAs(store.batch([put("a", "late")]), "notLeader");
    await refusedAs(store.confirm(), "notLeader");
    const next = await elected(endpoints, "two");
    assert.ok(next.session.createRevision > session.createRevision);
    const kept = await all(next.store);
    assert.deepEqual([Object.keys(kept).length, kept.a, kept.b, kept["n/999999"]], [3_002, undefined, "", "late"]);
    await next.session.resign();
  }),
);

test("a deposed process that does not know it writes nothing, confirms nothing, and leaves the successor's batches alone", options, () =>
  withServers(1, async ({ endpoints }) => {
    const { session: old, store } = await elected(endpoints);
    await store.batch([put("k", "old")]);
    await store.confirm();
    // The lease goes away behind the back of its holder, as after a long pause of its machine.
    const { EtcdClient: Client } = await import("@stamp/etcd");
    const client = new Client(world, { endpoints, prefix: "/stamp/test/" });
    const held = await client.once(({ kv }, call) => kv.range({ key: new EtcdKeys("/stamp/test/").active }, call));
    const lease = held.ok ? (held.value.kvs[0]?.lease ?? 0n) : 0n;
    await client.once(({ lease: leases }, call) => leases.leaseRevoke({ id: lease }, call));
    const next = await elected(endpoints, "two");
    await next.store.batch([put("k", "new")]);
    await refusedAs(store.confirm(), "notLeader");
    await refusedAs(store.batch([put("k", "late")]), "notLeader");
    assert.equal(old.ended.aborted, true);
    assert.deepEqual(await all(next.store), { k: "new" });
    await next.session.resign();
  }),
);

test("what is larger than etcd takes is refused before it is sent", options, () =>
  withServers(1, async ({ endpoints }) => {
    const { session, store } = await elected(endpoints);
    const { operations, bytes } = store.batchMax;
    await refusedAs(store.batch(Array.from({ length: operations + 1 }, (_, i) => put(`k${i}`, ""))), "messageTooLarge");
    await refusedAs(store.batch([put("k", "x".repeat(bytes))]), "messageTooLarge");
    await store.batch(Array.from({ length: operations }, (_, i) => put(`k${i}`, "")));
    await store.batch([put("large", "x".repeat(bytes - 200))]);
    assert.equal(Object.keys(await all(store)).length, operations + 1);
    await session.resign();
  }),
);

test("compaction: a range at a compacted revision is refused, a new one reads everything", options, () =>
  withServers(1, async ({ endpoints }) => {
    const { session, store } = await elected(endpoints);
    for (let i = 0; i < 20; i++) await store.batch(Array.from({ length: 100 }, (_, n) => put(`k/${i}/${n}`, "x")));
    const range = store.range({})[Symbol.asyncIterator]();
    await range.next();
    await store.batch([put("later", "1")]);
    const now = await session.client.once(({ kv }, call) => kv.range({ key: utf8("none") }, call));
    const revision = now.ok ? (now.value.header?.revision ?? 0n) : 0n;
    await session.client.once(({ kv }, call) => kv.compact({ revision }, call));
    const rest = async (): Promise<void> => {
      while (!(await range.next()).done);
    };
    await refusedAs(rest(), "outOfRange");
    assert.equal(Object.keys(await all(store)).length, 2_001);
    await session.resign();
  }),
);

test("three members: the leader is killed, a member is lost for good, and every batch that was answered is there", options, () =>
  withServers(3, async (servers) => {
    const { session, store } = await elected(servers.endpoints);
    let written = 0;
    let longestMs = 0;
    const write = async (): Promise<void> => {
      const sinceMs = performance.now();
      await store.batch([put(`k/${written}`, String(written))]);
      longestMs = Math.max(longestMs, performance.now() - sinceMs);
      written += 1;
    };
    for (let i = 0; i < 50; i++) await write();
    const leader = await servers.led();
    await servers.kill(leader);
    for (let i = 0; i < 100; i++) await write();
    console.log(`# longest batch while the leader of etcd was killed: ${Math.round(longestMs)} ms`);
    servers.startMember(leader);
    const follower = servers.names.find((name) => name !== leader) as string;
    await sleep(1_000);
    await servers.kill(follower);
    for (let i = 0; i < 50; i++) await write();
    assert.equal(session.ended.aborted, false, session.why);
    const kept = await all(store);
    for (let i = 0; i < written; i++) assert.equal(kept[`k/${i}`], String(i));
    await session.resign();
  }),
);

test("two of three members lost: nothing is written or confirmed, and it goes on by itself when one is back", options, () =>
  withServers(3, async (servers) => {
    const { session, store } = await elected(servers.endpoints);
    await store.batch([put("before", "1")]);
    const [first, second] = servers.names as [string, string];
    await servers.kill(first);
    await servers.kill(second);
    const batch = store.batch([put("during", "1")]).then(() => "done");
    const confirmed = store.confirm().then(() => "done");
    assert.equal(await Promise.race([batch, confirmed, sleep(5_000).then(() => "waits")]), "waits");
    servers.startMember(first);
    await Promise.all([batch, confirmed]);
    assert.equal(session.ended.aborted, false, session.why);
    assert.deepEqual(await all(store), { before: "1", during: "1" });
    await session.resign();
  }),
);

test("a member that stands still is left for another, and a standby is elected when the active one is cut off", options, () =>
  withServers(3, async (servers) => {
    const { store, session } = await elected(servers.endpoints);
    await store.batch([put("k", "1")]);
    const still = servers.names.find((name) => servers.endpoints[servers.names.indexOf(name)] === servers.endpoints[0]) as string;
    servers.signal(still, "SIGSTOP");
    await store.batch([put("k", "2")]);
    const client = new EtcdClient(world, { endpoints: servers.endpoints, prefix: "/stamp/test/" });
    const keys = new EtcdKeys("/stamp/test/");
    const standby = new Election(client, { keys, name: "two", address: () => "two:1", ttlSeconds }, allRules);
    const next = standby.campaign(AbortSignal.timeout(30_000));
    for (const endMs = performance.now() + 20_000; standby.holder === undefined && performance.now() < endMs; ) await sleep(50);
    assert.equal(standby.holder?.address, "one:1");
    session.end("its process is gone");
    const sinceMs = performance.now();
    const successor = await next;
    console.log(`# elected ${Math.round(performance.now() - sinceMs)} ms after the active one went away (etcd lease of ${ttlSeconds} s)`);
    servers.signal(still, "SIGCONT");
    assert.deepEqual(await all(new EtcdKeyValue(successor, allRules)), { k: "2" });
    await successor.resign();
  }),
);

test("a standby that is elected knows since when its predecessor confirms nothing", options, () =>
  withServers(3, async (servers) => {
    const { store, session } = await elected(servers.endpoints);
    const next = elected(servers.endpoints, "two");
    let judgedMs = 0;
    for (const endMs = performance.now() + 2_000; performance.now() < endMs; await sleep(50)) {
      const nowMs = world.clock.monotonicMs();
      await store.confirm();
      judgedMs = nowMs;
    }
    session.end("its process is gone");
    const { session: second } = await next;
    const electedMs = world.clock.monotonicMs();
    assert.ok(second.lastJudgedMs !== undefined && second.lastJudgedMs >= judgedMs && second.lastJudgedMs < electedMs, "a moment is known");
    console.log(`# ${Math.round(second.lastJudgedMs - judgedMs)} ms after the last answer, ${Math.round(electedMs - judgedMs)} ms elected`);
    await second.resign();
  }),
);
