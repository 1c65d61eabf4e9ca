/** A copy that is removed from a stamp: nothing of it is left there, and an account that comes back loses nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules } from "@stamp/base";
import { sleep } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { PartitionManager, RoleCommand } from "@stamp/wire";
import { beginPair, type EntityAt, type OneStamp, until, untilShipped } from "./two-stamps.ts";

const options = { timeoutMs: 3_000 };
const keyOf = (i: number): EntityAt => ({ partitionKey: `p${i % 7}`, rowKey: String(i).padStart(4, "0") });

async function fill(at: OneStamp, count: number): Promise<void> {
  for (let i = 0; i < count; i++) await at.write(keyOf(i).partitionKey, [{ rowKey: keyOf(i).rowKey, text: "x".repeat(200) }]);
}

const removed = async (at: OneStamp): Promise<boolean> => {
  const listed = await at.accounts.listRemovals({}, options);
  return listed.ok && listed.value.removals.length === 0;
};

const there = async (at: OneStamp, count: number): Promise<number> => {
  let found = 0;
  for (let i = 0; i < count; i++) if ((await at.read(keyOf(i))) !== undefined) found++;
  return found;
};

test("removal: a removed copy goes from every range, though servers die and a range is split, and the account can come back", async () => {
  const sim = new Simulation({ seed: 31, rules: allRules });
  await sim.run(async () => {
    const { a, b } = await beginPair(sim, (at) => fill(at, 60));
    await untilShipped(a);
    await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
    assert.equal(await there(b, 60), 60);
    await b.obey(RoleCommand.REMOVE, 3);
    await a.obey(RoleCommand.UNPAIR, 3);
    sim.crash(b.server(1));
    const range = (await b.ranges()).find(({ table }) => table === "Entity");
    const manager = b.world.transport.client(b.manager, PartitionManager);
    await manager.splitPartition({ rangeId: range?.rangeId ?? "" }, { timeoutMs: 10_000 });
    await until(b, "nothing of it is left", () => removed(b));
    assert.equal(await there(b, 60), 0);
    sim.crash(b.server(2));
    await until(b, "nothing of it is left at later owners", () => removed(b));

    await b.obey(RoleCommand.FOLLOW, 4, { epoch: 1n, peer: "a" });
    await a.obey(RoleCommand.PAIR, 4, { peer: "b", peerDoors: [b.door] });
    await until(a, "the copy is complete again", async () => (await b.role()) === "secondary");
    await untilShipped(a);
    assert.equal(await there(b, 60), 60);
  });
});

test("removal: an account that comes back while it is removed gets its copy, and none of it is deleted afterwards", async () => {
  for (const seed of [32]) {
    const sim = new Simulation({ seed, rules: allRules });
    await sim.run(async () => {
      const { a, b } = await beginPair(sim, (at) => fill(at, 40));
      await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
      for (let operation = 3; operation < 9; operation += 2) {
        await b.obey(RoleCommand.REMOVE, operation);
        await a.obey(RoleCommand.UNPAIR, operation);
        // The removal has begun, or has not, or is over.
        await sleep(a.world.clock, sim.prng.below(12_000));
        if (operation === 5) sim.crash(b.server(1 + sim.prng.below(2)));
        await b.obey(RoleCommand.FOLLOW, operation + 1, { epoch: 1n, peer: "a" });
        await a.obey(RoleCommand.PAIR, operation + 1, { peer: "b", peerDoors: [b.door] });
        await until(a, "the copy is complete again", async () => (await b.role()) === "secondary");
        await untilShipped(a);
        await sleep(a.world.clock, 5_000);
        assert.equal(await there(b, 40), 40, `seed ${seed}, operation ${operation}`);
      }
    });
  }
});
