/**
 * A stamp of real processes that a person declares lost, and that comes back: accounts end their operations without it, it is told of all of them
 * soon after it answers, deletes what it has, and may then have a copy again.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { doorsOf, present, untilAcked, Writers } from "./testing/judged-writes.ts";
import { isComplete, killStamp, twoStamps, until, untilCopy, waitMs } from "./testing/two-stamps.ts";

const accounts = ["acme", "bravo", "carol", "delta"] as const;
const first = accounts[0];
/** Acknowledged writes of each kind that are enough to judge. */
const enough = 30;

interface StampFacts {
  readonly name: string;
  readonly lost: boolean;
  readonly owed: number;
  readonly state: string;
}

test("geo: a stamp that is declared lost and comes back is told of its accounts, takes no writes, deletes what it has, and gets a copy again", async (t) => {
  const two = await twoStamps(t);
  const { data, portBase, ok, stamp } = two;
  const keys = new Map<string, string>();
  for (const account of accounts) {
    const made = JSON.parse(await ok("account", "create", account, "--location", "north", "--geo", "south", "--json"));
    keys.set(account, made.keys[0]);
    const { table, container } = doorsOf(portBase, account, made.keys[0], 40);
    await table.createTable();
    await container.create();
  }
  for (const account of accounts) await untilCopy(two, account, `a complete copy of ${account}`, isComplete);
  const key = keys.get(first) ?? "";
  const before = new Writers(t, doorsOf(portBase, first, key, 1), "first");
  await untilAcked(before, enough);
  await before.stop();
  await untilCopy(two, first, "everything is shipped", isComplete);

  const lose = (...more: string[]) => stamp("location", "lost", "north-1", "--accept-loss", ...more);
  await killStamp(two, "north-1");
  const early = await lose();
  assert.notEqual(early.code, 0);
  assert.match(early.output, /north-1 is the primary of accounts that another stamp has a copy of \(acme, bravo, carol, delta\)/);
  for (const account of accounts) await ok("geo", "failover", account, "--forced", "--accept-loss", "--to", "south-1");
  assert.equal((await lose()).code, 0, "it is declared lost");
  for (const account of accounts)
    await untilCopy(two, account, `${account} waits for nothing`, ({ stamp: primary, secondary, kind }) => {
      return primary === "south-1" && secondary === "" && kind === "";
    });
  const stampNow = async (): Promise<StampFacts> => {
    const all = JSON.parse(await ok("location", "stamps", "--json")) as StampFacts[];
    return all.find(({ name }) => name === "north-1") ?? assert.fail("the location knows the stamp");
  };
  const declared = await stampNow();
  assert.deepEqual([declared.lost, declared.state, declared.owed], [true, "closed", accounts.length]);
  const refused = await stamp("geo", "protect", first, "--to", "north-1");
  assert.notEqual(refused.code, 0);
  assert.match(refused.output, /north-1 was declared lost/);

  // It comes back and believes what it knew. Clients with an old address write to it, to every account.
  const there = new Writers(t, doorsOf(portBase + 300, first, key, 1), "second");
  const late = accounts.map((account) => new Writers(t, doorsOf(portBase, account, keys.get(account) ?? "", 1), "late"));
  const backMs = Date.now();
  await ok("up", "-d", "--data", join(data, "north-1"), "--ready-timeout-s", "300");
  const readyMs = Date.now();
  await until("it was told everything", stampNow, ({ lost, owed }) => !lost && owed === 0);
  const toldMs = Date.now();
  await waitMs(1_500);
  const taken = late.map(({ acked }) => acked.length);
  await untilAcked(there, enough);
  for (const writers of [...late, there]) await writers.stop();
  assert.deepEqual(
    late.map(({ acked }) => acked.length),
    taken,
    "it takes no write of any account after it was told",
  );
  const times = late.flatMap(({ acked }) => acked.map(({ ackedMs }) => ackedMs));
  const window = times.length === 0 ? "none" : `${times.length}, over ${Math.max(...times) - Math.min(...times)} ms`;
  t.diagnostic(
    `writes that the lost stamp took: ${window}; ready ${readyMs - backMs} ms after its start, told ${toldMs - readyMs} ms later`,
  );

  // It has nothing of them, and may have a copy when a person opens it.
  const patient = doorsOf(portBase, first, key, 1);
  await assert.rejects(patient.table.createEntity({ partitionKey: "foo", rowKey: "bar" }), { statusCode: 400 });
  await ok("location", "set-state", "north-1", "open");
  await ok("geo", "protect", first, "--to", "north-1");
  await untilCopy(two, first, "a complete copy at the stamp that came back", isComplete);
  const now = await present(doorsOf(portBase + 300, first, key, 40));
  const kept = [...before.acked, ...there.acked].filter(({ name }) => !now.has(name));
  assert.deepEqual(kept.slice(0, 3), [], "acknowledged at a stamp that was not lost, or shipped, and gone");
  await ok("geo", "failover", first, "--planned", "--to", "north-1");
  const back = await present(doorsOf(portBase, first, key, 40));
  assert.deepEqual([...back].sort(), [...now].sort(), "the copy has what its primary had, and nothing that only the lost stamp had");
});
