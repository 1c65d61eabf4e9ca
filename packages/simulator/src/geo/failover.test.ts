/** Failovers between two stamps by commands as a location service gives them: a planned one loses nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type RuleName, rulesWithout, toHex } from "@stamp/base";
import { accountKeys } from "@stamp/objects";
import { sleep } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { GeoDoor, PartitionManager, RoleCommand } from "@stamp/wire";
import { account, beginPair, type OneStamp } from "./two-stamps.ts";

const options = { timeoutMs: 10_000 };
const keyOf = (i: number) => ({ partitionKey: `p${i % 5}`, rowKey: `${i}` });

const seconds = 1_000;

/** An account with some entities at stamp a, and a complete copy at stamp b. */
async function begin(sim: Simulation) {
  const write = async (a: OneStamp): Promise<void> => {
    for (let i = 0; i < 20; i++) await a.write(keyOf(i).partitionKey, [{ rowKey: `${i}`, text: `${i}` }]);
  };
  const { a, b } = await beginPair(sim, write);
  while ((await b.role()) !== "secondary") await sleep(a.world.clock, 200);
  return { a, b };
}

test("failover: a drained primary is known to have shipped everything, and the promoted copy has every write, over crashes and a split", async () => {
  for (let seed = 1; seed <= 3; seed++) {
    const sim = new Simulation({ seed, rules: allRules });
    await sim.run(async () => {
      const { a, b } = await begin(sim);
      const { clock } = a.world;
      const range = (await a.ranges()).find(({ table }) => table === "Entity");
      const manager = a.world.transport.client(a.manager, PartitionManager);
      await manager.splitPartition({ rangeId: range?.rangeId ?? "" }, options);
      for (let i = 20; i < 60; i++) await a.write(keyOf(i).partitionKey, [{ rowKey: `${i}`, text: `${i}` }]);
      sim.crash(seed === 2 ? b.server(1) : a.server(1));
      for (let i = 60; i < 80; i++) await a.write(keyOf(i).partitionKey, [{ rowKey: `${i}`, text: `${i}` }]);
      await a.obey(RoleCommand.DRAIN, 3);
      if (seed === 3) sim.crash(a.server(2));
      const drainedMs = clock.monotonicMs();
      while ((await a.progress())?.pendingCommits !== 0n) {
        assert.ok(clock.monotonicMs() - drainedMs < 60 * seconds, JSON.stringify(a.shipping()));
        await sleep(clock, 100);
      }
      await b.obey(RoleCommand.PROMOTE, 3, { peer: "a", peerDoors: [a.door] });
      await a.obey(RoleCommand.DEMOTE, 3, { peer: "b", peerDoors: [b.door] });
      assert.equal(await b.role(), "primary");
      for (let i = 0; i < 80; i++) assert.equal(await b.read(keyOf(i)), await a.read(keyOf(i)), `seed ${seed}, entity ${i}`);
      await b.write("p0", [{ rowKey: "new", text: "at the new primary" }]);
      // The way back: the old primary owes no report, is seeded again, and becomes the primary of everything.
      while ((await a.role()) !== "secondary") {
        assert.ok(clock.monotonicMs() - drainedMs < 180 * seconds, JSON.stringify(b.shipping()));
        await sleep(clock, 200);
      }
      await b.obey(RoleCommand.DRAIN, 4);
      while ((await b.progress())?.pendingCommits !== 0n) await sleep(clock, 100);
      await a.obey(RoleCommand.PROMOTE, 4, { peer: "b", peerDoors: [b.door] });
      await b.obey(RoleCommand.DEMOTE, 4, { peer: "a", peerDoors: [a.door] });
      const last = { partitionKey: "p0", rowKey: "new" };
      for (const key of [...Array.from({ length: 80 }, (_, i) => keyOf(i)), last]) assert.equal(await a.read(key), await b.read(key));
      assert.ok(await a.read(last));
    });
  }
});

test("failover: a forced one promotes a copy that is behind, and what its old primary still ships comes too late", async () => {
  const sim = new Simulation({ seed: 2, rules: allRules });
  await sim.run(async () => {
    const { a, b } = await begin(sim);
    sim.partition([a.server(1), a.server(2)], [b.door]);
    await a.write("p0", [{ rowKey: "0", text: "lost" }]);
    const before = await b.read(keyOf(0));
    await b.obey(RoleCommand.PROMOTE, 3, { peer: "a", peerDoors: [a.door] });
    sim.heal();
    await sleep(a.world.clock, 30 * seconds);
    assert.equal(await b.read(keyOf(0)), before, "the deposed primary does not know it yet, and ships in vain");
    assert.ok(
      a.shipping().some(({ failure }) => /does not follow another one/.test(failure)),
      JSON.stringify(a.shipping()),
    );
    await a.obey(RoleCommand.DEMOTE, 3, { peer: "b", peerDoors: [b.door] });
    assert.equal(await a.role(), "unseeded");
  });
});

for (const without of [[], ["geoPromotionFences"]] as readonly RuleName[][]) {
  const told = without.length === 0 ? "is not applied, also after a split" : "is applied without the rule geoPromotionFences";
  test(`failover: a shipment that comes to a front-end which has not heard of the promotion ${told}`, async () => {
    const sim = new Simulation({ seed: 3, rules: rulesWithout(...without) });
    await sim.run(async () => {
      const { a, b } = await begin(sim);
      const door = a.world.transport.client(b.door, GeoDoor);
      const { low } = accountKeys(account);
      // A PartitionName of the account that nobody uses.
      const name = Uint8Array.from([...low, 0x05, 0x02, 0x71, 0x00, 0x00]);
      const late = (sequence: number) => {
        const commits = [{ sequence: BigInt(sequence), lastTicket: 1n, rows: [] }];
        return door.ship({ account, epoch: 1n, table: "Entity", shipment: { epoch: 1n, paired: 2n, name, commits } }, options);
      };
      const before = await late(1_000_000);
      assert.ok(before.ok, `${toHex(name)}: ${JSON.stringify(before)}`);
      await b.obey(RoleCommand.PROMOTE, 3, { peer: "a", peerDoors: [a.door] });
      const after = await late(1_000_001);
      assert.equal(after.ok, without.length > 0, JSON.stringify(after));
      if (after.ok) return;
      assert.match(after.failure.message, /behind the promotion/);
      const range = (await b.ranges()).find(({ table }) => table === "Entity");
      const manager = b.world.transport.client(b.manager, PartitionManager);
      await manager.splitPartition({ rangeId: range?.rangeId ?? "" }, options);
      const split = await late(1_000_002);
      assert.ok(!split.ok && split.failure.reason === "staleRoleEpoch", JSON.stringify(split));
    });
  });
}
