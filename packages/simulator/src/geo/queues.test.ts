/** Queues of an account that are copied to a second stamp: messages, receipts and times are the same there, and stay so over failovers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, unwrap } from "@stamp/base";
import type { QueueAnswer, ToldMessage } from "@stamp/histories";
import { accountKeys } from "@stamp/objects";
import { sleep } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { type DivergedRow, GeoDoor, PartitionManager, RoleCommand } from "@stamp/wire";
import { QueueClient } from "../workloads/clients/queue-client.ts";
import { account, beginPair, type OneStamp, until, untilShipped } from "./two-stamps.ts";

const options = { timeoutMs: 10_000 };
const week = 7 * 24 * 3_600;
const jobs = "jobs";
/** A second queue, so that the range can be split between two PartitionNames. */
const other = "other";

async function queuesAt(sim: Simulation, stamp: OneStamp, secondary = false): Promise<QueueClient> {
  const { keys } = unwrap(await stamp.accounts.get({ account }, options));
  const accountKey = Uint8Array.from(Buffer.from(keys[0] ?? "", "base64"));
  const name = `client-${stamp.name}`;
  const door = { account, accountKey, frontEnd: stamp.door, ...(secondary && { pathName: `${account}-secondary` }) };
  return new QueueClient(sim, sim.world(name), name, door);
}

/** Repeats a request while the stamp is busy, or does not answer. */
async function done<T>(at: OneStamp, ask: () => Promise<QueueAnswer<T>>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    const answer = await ask();
    if (answer.kind === "ok") return answer.value;
    assert.ok(attempt < 100 && (answer.kind === "unknown" || answer.code === "ServerBusy"), JSON.stringify(answer));
    await sleep(at.world.clock, 200);
  }
}

const codeOf = (answer: QueueAnswer<unknown>): string => (answer.kind === "refused" ? answer.code : answer.kind);

/** Facts of messages without receipts, which a peek does not tell. */
const facts = (messages: readonly ToldMessage[]) =>
  messages.map(({ messageId, text, dequeueCount, insertedS, expiresS }) => ({ messageId, text, dequeueCount, insertedS, expiresS }));
const textsOf = (messages: readonly ToldMessage[]): string[] => messages.map(({ text }) => text).sort();

/** An account with queues at stamp a, and a complete copy at stamp b. Returns messages that were taken before the copy was begun, and beside it. */
async function begin(sim: Simulation) {
  const taken: ToldMessage[] = [];
  let client: QueueClient | undefined;
  const { a, b } = await beginPair(
    sim,
    async (at) => {
      client = await queuesAt(sim, at);
      const own = client;
      for (const queue of [jobs, other]) await done(at, () => own.create(queue));
      for (let i = 0; i < 10; i++) await done(at, () => own.put(other, "x".repeat(500), 0, week));
      for (let i = 0; i < 20; i++) await done(at, () => own.put(jobs, `before-${i}`, 0, week));
      taken.push(...(await done(at, () => own.take(jobs, 4, 600))));
    },
    { withQueues: true },
  );
  assert.ok(client !== undefined);
  const own = client;
  await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
  for (let i = 0; i < 8; i++) await done(a, () => own.put(jobs, `beside-${i}`, 0, week));
  taken.push(...(await done(a, () => own.take(jobs, 4, 600))));
  return { a, b, own, taken };
}

/** Everything that only a stamp had when it was deposed by force. */
async function reported(at: OneStamp): Promise<DivergedRow[]> {
  const rows: DivergedRow[] = [];
  for (let marker = "", more = true; more; more = marker !== "") {
    const page = await at.until("a page", () => at.accounts.listDiverged({ account, marker }, options));
    rows.push(...page.rows);
    marker = page.nextMarker;
  }
  return rows;
}

/** Takes and deletes everything that is visible. */
async function emptied(at: OneStamp, client: QueueClient): Promise<string[]> {
  const all: ToldMessage[] = [];
  for (;;) {
    const some = await done(at, () => client.take(jobs, 32, 600));
    if (some.length === 0) return textsOf(all);
    all.push(...some);
    for (const message of some) await done(at, () => client.delete(jobs, message));
  }
}

test("queues: a copy shows the messages as the primary does and takes no writes; after a planned failover receipts still count", async () => {
  for (const seed of [41, 42]) {
    const sim = new Simulation({ seed, rules: allRules });
    await sim.run(async () => {
      const { a, b, own, taken } = await begin(sim);
      if (seed === 42) {
        const range = (await a.ranges()).find(({ table }) => table === "Message");
        const manager = a.world.transport.client(a.manager, PartitionManager);
        await a.until("a split", () => manager.splitPartition({ rangeId: range?.rangeId ?? "" }, options));
        sim.crash(a.server(1));
      }
      const [deleted, updated, kept, given] = taken as [ToldMessage, ToldMessage, ToldMessage, ToldMessage];
      await done(a, () => own.delete(jobs, deleted));
      const { popReceipt } = await done(a, () => own.update(jobs, updated, "updated", 600));
      await done(a, () => own.put(jobs, "brief", 0, 3));
      await untilShipped(a);
      const copy = await queuesAt(sim, b, true);
      assert.deepEqual(facts(await done(b, () => copy.peek(jobs))), facts(await done(a, () => own.peek(jobs))));
      await sleep(a.world.clock, 5_000);
      assert.equal(await done(b, () => copy.count(jobs)), 27);
      assert.ok(!(await done(b, () => copy.peek(jobs))).some(({ text }) => text === "brief"));
      const refused = "InsufficientAccountPermissions";
      assert.equal(codeOf(await copy.put(jobs, "at the copy", 0, week)), refused);
      assert.equal(codeOf(await copy.take(jobs, 1, 1)), refused);
      assert.equal(codeOf(await copy.delete(jobs, kept)), refused);
      assert.deepEqual(await done(a, () => own.count(jobs)), 27);

      await a.obey(RoleCommand.DRAIN, 3);
      await untilShipped(a);
      assert.equal((await done(a, () => own.peek(jobs))).length, 20, "a drained primary is read");
      await b.obey(RoleCommand.PROMOTE, 3, { peer: "a", peerDoors: [a.door] });
      await a.obey(RoleCommand.DEMOTE, 3, { peer: "b", peerDoors: [b.door] });
      const there = await queuesAt(sim, b);
      await done(b, () => there.delete(jobs, kept));
      assert.equal(codeOf(await there.delete(jobs, updated)), "MessageNotFound", "an update gave another receipt");
      await done(b, () => there.delete(jobs, { ...updated, popReceipt }));
      assert.equal(codeOf(await there.delete(jobs, deleted)), "MessageNotFound");
      // Messages that were taken and not deleted stay hidden: there are twenty others.
      const expected = [...Array.from({ length: 20 }, (_, i) => `before-${i}`), ...Array.from({ length: 8 }, (_, i) => `beside-${i}`)];
      const held = new Set([...textsOf(taken)]);
      assert.deepEqual(await emptied(b, there), expected.filter((text) => !held.has(text)).sort());
      await until(b, "the way back is complete", async () => (await a.role()) === "secondary");
      await untilShipped(b);
      const back = await queuesAt(sim, a, true);
      assert.equal(await done(a, () => back.count(jobs)), 5);
      await done(b, () => there.delete(jobs, given));
    });
  }
});

test("queues: a forced failover reports the messages that were not shipped, and none of them comes back", async () => {
  const sim = new Simulation({ seed: 43, rules: allRules });
  await sim.run(async () => {
    const { a, b, own, taken } = await begin(sim);
    await untilShipped(a);
    sim.partition([a.server(1), a.server(2)], [b.door]);
    await done(a, () => own.put(jobs, "lost", 0, week));
    await done(a, () => own.delete(jobs, taken[0] as ToldMessage));
    await b.obey(RoleCommand.PROMOTE, 3, { peer: "a", peerDoors: [a.door] });
    sim.heal();
    await a.obey(RoleCommand.DEMOTE, 3, { peer: "b", peerDoors: [b.door] });
    const there = await queuesAt(sim, b);
    assert.equal(await done(b, () => there.count(jobs)), 28, "without the message that was lost, with the one whose deletion was lost");
    await until(b, "the old primary has reported and is a copy", async () => (await a.role()) === "secondary");
    const told = (await reported(a))
      .filter(({ kind }) => kind === "message")
      .map(({ name, deleted, text }) => `${name} ${deleted ? "deleted" : text}`);
    assert.deepEqual(told.sort(), ["jobs deleted", "jobs lost"]);
    await untilShipped(b);
    const back = await queuesAt(sim, a, true);
    assert.equal(await done(a, () => back.count(jobs)), 28);
    assert.ok(!(await done(a, () => back.peek(jobs))).some(({ text }) => text === "lost"));
  });
});

test("queues: messages that are not shipped keep a drained primary from its end, and none is applied behind the promotion", async () => {
  const sim = new Simulation({ seed: 45, rules: allRules });
  await sim.run(async () => {
    const { a, b, own } = await begin(sim);
    await untilShipped(a);
    const pending = async () => (await a.progress())?.pendingCommits;
    sim.partition([a.server(1), a.server(2)], [b.door]);
    await done(a, () => own.put(jobs, "at last", 0, week));
    await a.obey(RoleCommand.DRAIN, 3);
    for (let i = 0; i < 20; i++) {
      assert.notEqual(await pending(), 0n, "the message is not there");
      await sleep(a.world.clock, 500);
    }
    sim.heal();
    await untilShipped(a);
    const door = a.world.transport.client(b.door, GeoDoor);
    // A PartitionName of the account that nobody uses.
    const name = Uint8Array.from([...accountKeys(account).low, 0x05, 0x02, 0x71, 0x00, 0x00]);
    const late = (sequence: bigint) => {
      const shipment = { epoch: 1n, paired: 2n, name, commits: [{ sequence, lastTicket: 1n, rows: [] }] };
      return door.ship({ account, epoch: 1n, table: "Message", shipment }, options);
    };
    unwrap(await late(1_000_000n));
    await b.obey(RoleCommand.PROMOTE, 3, { peer: "a", peerDoors: [a.door] });
    const refused = await late(1_000_001n);
    assert.ok(!refused.ok && /behind the promotion/.test(refused.failure.message), JSON.stringify(refused));
    const there = await queuesAt(sim, b);
    assert.equal(await done(b, () => there.count(jobs)), 29);
  });
});

test("queues: a removed copy goes with its queues, and a stamp with queues of its own takes no copy of others", async () => {
  const sim = new Simulation({ seed: 44, rules: allRules });
  await sim.run(async () => {
    const { a, b } = await begin(sim);
    await untilShipped(a);
    assert.deepEqual(unwrap(await b.accounts.listQueues({ account }, options)).names, [jobs, other]);
    await b.obey(RoleCommand.REMOVE, 3);
    await a.obey(RoleCommand.UNPAIR, 3);
    const gone = async (): Promise<boolean> => {
      const left = await b.accounts.listQueues({ account }, options);
      return left.ok && left.value.names.length === 0;
    };
    await until(b, "its queues are deleted", gone);
    assert.deepEqual(unwrap(await a.accounts.listQueues({ account }, options)).names, [jobs, other]);
    // A copy without queues is promoted, and the stamp before keeps its queues, out of reach.
    await b.obey(RoleCommand.FOLLOW, 4, { epoch: 1n, peer: "a" });
    await a.obey(RoleCommand.PAIR, 4, { peer: "b", peerDoors: [b.door] });
    await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
    assert.ok(await gone(), "queues are not copied without being asked for");
    await a.obey(RoleCommand.DRAIN, 5);
    await untilShipped(a);
    await b.obey(RoleCommand.PROMOTE, 5, { peer: "a", peerDoors: [a.door] });
    await a.obey(RoleCommand.DEMOTE, 5, { peer: "b", peerDoors: [b.door] });
    await b.obey(RoleCommand.UNPAIR, 6);
    await a.obey(RoleCommand.REMOVE, 6);
    const follow = { account, command: RoleCommand.FOLLOW, operation: 7n, epoch: 5n, peer: "b", withQueues: true };
    const refused = await a.accounts.obey(follow, options);
    assert.ok(
      !refused.ok && /has queues of account acct from an earlier time \(jobs, other\)/.test(refused.failure.message),
      JSON.stringify(refused),
    );
  });
});

test("queues: a copy without queues waits until those of the copy before it are deleted, so that none comes back", async () => {
  const sim = new Simulation({ seed: 46, rules: allRules });
  await sim.run(async () => {
    const { a, b, own } = await begin(sim);
    await untilShipped(a);
    await a.obey(RoleCommand.UNPAIR, 3);
    await b.obey(RoleCommand.REMOVE, 3);
    const follow = { account, command: RoleCommand.FOLLOW, operation: 4n, epoch: 1n, peer: "a" };
    const early = await b.accounts.obey(follow, options);
    assert.ok(!early.ok && /still deletes queues of account acct .*\(jobs, other\)/.test(early.failure.message), JSON.stringify(early));
    await until(b, "the copy begins", async () => (await b.accounts.obey(follow, options)).ok);
    assert.deepEqual(unwrap(await b.accounts.listQueues({ account }, options)).names, []);
    await a.obey(RoleCommand.PAIR, 4, { peer: "b", peerDoors: [b.door] });
    await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
    await emptied(a, own);
    await a.obey(RoleCommand.DRAIN, 5);
    await untilShipped(a);
    await b.obey(RoleCommand.PROMOTE, 5, { peer: "a", peerDoors: [a.door] });
    await a.obey(RoleCommand.DEMOTE, 5, { peer: "b", peerDoors: [b.door] });
    const there = await queuesAt(sim, b);
    assert.equal(codeOf(await there.take(jobs, 32, 600)), "QueueNotFound");
  });
});

test("queues: a primary that was told to give its copy up, and is deposed by force, becomes a copy with queues", async () => {
  const sim = new Simulation({ seed: 47, rules: allRules });
  await sim.run(async () => {
    const { a, b, own } = await begin(sim);
    await untilShipped(a);
    await a.obey(RoleCommand.UNPAIR, 3);
    await done(a, () => own.put(jobs, "behind the end", 0, week));
    await b.obey(RoleCommand.PROMOTE, 4, { peer: "a", peerDoors: [a.door] });
    await a.obey(RoleCommand.DEMOTE, 4, { peer: "b", peerDoors: [b.door], withQueues: true });
    await until(b, "the old primary has reported and is a copy", async () => (await a.role()) === "secondary");
    const [there, back] = [await queuesAt(sim, b), await queuesAt(sim, a, true)];
    await done(b, () => there.put(jobs, "at the new primary", 0, week));
    await untilShipped(b);
    const count = await done(b, () => there.count(jobs));
    assert.ok(count >= 29, `${count} messages`);
    assert.equal(await done(a, () => back.count(jobs)), count);
  });
});

test("queues: a copy that is promoted by force gives no id of a message that the primary before has given", async () => {
  const sim = new Simulation({ seed: 145, rules: allRules });
  await sim.run(async () => {
    const { a, b, own } = await begin(sim);
    await untilShipped(a);
    sim.partition([a.server(1), a.server(2)], [b.door]);
    const lost = new Set<string>();
    for (let i = 0; i < 40; i++) lost.add((await done(a, () => own.put(jobs, `lost-${i}`, 0, week))).messageId);
    await b.obey(RoleCommand.PROMOTE, 3, { peer: "a", peerDoors: [a.door] });
    sim.heal();
    const there = await queuesAt(sim, b);
    const given = async () => (await done(b, () => there.put(jobs, "made", 0, week))).messageId;
    for (let i = 0; i < 60; i++) assert.ok(!lost.has(await given()), `message ${i}`);
    // The next owners of the ranges know it, too.
    for (const i of [1, 2]) sim.crash(b.server(i));
    for (let i = 0; i < 60; i++) assert.ok(!lost.has(await given()), `message ${i} of the next owner`);
  });
});

test("queues: a peek and a count at a copy commit nothing, also when messages have expired there", async () => {
  const sim = new Simulation({ seed: 48, rules: allRules });
  await sim.run(async () => {
    const { a, b, own } = await begin(sim);
    await done(a, () => own.put(jobs, "brief", 0, 3));
    await untilShipped(a);
    await sleep(a.world.clock, 5_000);
    interface RangeFacts {
      readonly rangeId: string;
      readonly sequence?: number;
    }
    const commits = (): number =>
      [1, 2]
        .flatMap((i) => (sim.role(b.server(i))?.status.facts.ranges ?? []) as readonly RangeFacts[])
        .reduce((sum, range) => sum + (range.rangeId.startsWith("message") ? (range.sequence ?? 0) : 0), 0);
    const before = commits();
    assert.ok(before > 0, "the copy has messages");
    const copy = await queuesAt(sim, b, true);
    assert.ok(!(await done(b, () => copy.peek(jobs))).some(({ text }) => text === "brief"));
    assert.equal(await done(b, () => copy.count(jobs)), 28);
    assert.equal(commits(), before);
  });
});
