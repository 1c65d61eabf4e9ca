/** Keys and settings of an account at two stamps: changes are pushed to the copy, and a copy that hears of nobody is not read from. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type Rules, rulesWithout, unwrap } from "@stamp/base";
import { sleep } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { RoleCommand } from "@stamp/wire";
import { BlobsAt, bytesOf } from "./blob-client.ts";
import { account, beginPair, type OneStamp, until } from "./two-stamps.ts";

const options = { timeoutMs: 3_000 };
/** Longer than a copy serves without a word of its primary, in milliseconds. */
const silentMs = 75_000;

/** Two stamps with a blob at both, and a reader of the copy. */
async function inScene(rules: Rules, work: (scene: Awaited<ReturnType<typeof begin>>) => Promise<void>): Promise<void> {
  const sim = new Simulation({ seed: 5, rules });
  await sim.run(async () => work(await begin(sim)));
}

async function begin(sim: Simulation) {
  const { a, b } = await beginPair(sim, async (at) => {
    const blobs = await BlobsAt.of(sim, at);
    await blobs.done("PUT", "/con?restype=container");
    await blobs.done("PUT", "/con/one", { "x-ms-blob-type": "BlockBlob" }, bytesOf("one", 100));
  });
  await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
  const reader = await BlobsAt.of(sim, b, { secondary: true });
  await reader.done("GET", "/con/one");
  const read = async (): Promise<number> => (await reader.ask("GET", "/con/one")).status;
  return { sim, a, b, read, servers: [a.server(1), a.server(2)] };
}

const inForce = async (at: OneStamp) => unwrap(await at.accounts.getSettingsInForce({ account }, options));
const untilInForce = (at: OneStamp) => until(at, "the change is in force", async () => (await inForce(at)).inForce);
const rotate = async (at: OneStamp) => unwrap(await at.accounts.rotateKey({ account, keyNumber: 1 }, options));

test("settings: a key that was rotated, and is said to be in force, is taken at the copy no more, without any location service", async () => {
  await inScene(allRules, async ({ a, read, sim, b }) => {
    await rotate(a);
    assert.equal((await inForce(a)).inForce, false, "the copy has not heard of it yet");
    await untilInForce(a);
    assert.equal(await read(), 403, "the old key");
    const fresh = await BlobsAt.of(sim, b, { secondary: true });
    assert.equal((await fresh.ask("GET", "/con/one")).status, 200, "the new key");
    // Revoked delegation keys and forbidden public access go the same way.
    unwrap(await a.accounts.revokeDelegationKeys({ account }, options));
    unwrap(await a.accounts.setBlobSettings({ account, allowPublicAccess: false }, options));
    await untilInForce(a);
    // The tag is a hash over all that the copy shares with its primary.
    const [here, there] = await Promise.all([inForce(a), inForce(b)]);
    assert.equal(here?.tag.length, 32);
    assert.deepEqual(there?.tag, here?.tag);
  });
});

test("settings: a manager of the copy that has just begun to lead is told all of it again", async () => {
  await inScene(allRules, async ({ a, b, read, sim }) => {
    sim.crash(b.manager);
    await until(b, "the stamp is back", async () => b.ready);
    await rotate(a);
    await untilInForce(a);
    assert.equal(await read(), 403);
  });
});

for (const [rules, expected] of [
  [allRules, 503],
  [rulesWithout("copiesServeWhileHeard"), 200],
] as const) {
  test(`settings: while the link is cut the change is not in force, and the copy ${expected === 503 ? "ceases to serve" : "goes on with the old key without the rule"}`, async () => {
    await inScene(rules, async ({ a, b, read, sim, servers }) => {
      sim.partition(servers, [b.door]);
      await rotate(a);
      await sleep(a.world.clock, silentMs);
      const told = await inForce(a);
      assert.ok(!told.inForce && /stamp b has not confirmed/.test(told.where), JSON.stringify(told.where));
      assert.equal(await read(), expected);
      sim.heal();
      await untilInForce(a);
      assert.equal(await read(), 403);
    });
  });
}

test("settings: a copy whose primary is gone is read from while the location service vouches for it", async () => {
  await inScene(allRules, async ({ a, b, read, sim }) => {
    for (const name of a.processes) sim.crash(name, { stayDown: true });
    const vouch = (epoch: bigint) => b.accounts.vouchForCopy({ account, epoch }, options);
    for (let i = 0; i < 10; i++) {
      unwrap(await vouch(1n));
      await sleep(b.world.clock, 10_000);
      assert.equal(await read(), 200, `after ${i + 1} words`);
    }
    const stale = await vouch(2n);
    assert.ok(!stale.ok && stale.failure.reason === "staleRoleEpoch");
    await sleep(b.world.clock, silentMs);
    assert.equal(await read(), 503, "nobody has said anything");
    unwrap(await vouch(1n));
    await until(b, "it serves again", async () => (await read()) === 200);
    // The primary for good: what it serves depends on nobody's word.
    await b.obey(RoleCommand.PROMOTE, 3, { peer: "a" });
    const own = await BlobsAt.of(sim, b);
    await sleep(b.world.clock, silentMs);
    assert.equal((await own.done("GET", "/con/one")).status, 200);
  });
});
