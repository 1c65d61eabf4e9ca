/** A term ends when it is said to, whatever is under way in it: until then nobody else may lead. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, refused, unwrap } from "@stamp/base";
import { encodeMapRow, mapKey } from "@stamp/partition-map";
import { sleep } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { toWire } from "@stamp/wire";
import { partitionManagerConfigSchema } from "../config.ts";
import { partitionManagerHandlers } from "../server.ts";
import { rangeOf, type Surroundings, surroundings } from "../testing/term-harness.ts";
import { Term } from "./term.ts";

const busy = rangeOf("Entity", "entity-1");

/** A term with one range that is to be split by itself as soon as there is room. */
async function aboutToSplit(sim: Simulation): Promise<Surroundings & { readonly term: Term; readonly over: Promise<string> }> {
  const around = await surroundings(sim);
  const { world, store, table, streams, answers } = around;
  unwrap(await table.write([{ key: mapKey(busy), value: encodeMapRow(busy) }]));
  const figures = { rangeId: busy.rangeId, ownerEpoch: 1n, state: "serving", ageMs: 60_000n, load: { writesPerSecond: 1_000 } };
  answers["ps-1"] = {
    listPartitions: async () => ok({ partitions: [figures] }),
    reshapePartitions: async () => {
      await sleep(world.clock, 50_000);
      return ok({});
    },
  };
  const config = partitionManagerConfigSchema.parse({
    lockService: "lock",
    accounts: [],
    balanceEveryMs: 1_000,
    balanceRestMs: 1,
    splitRequestsPerSecond: 500,
  });
  const term = new Term(world, config, { store, openTable: async () => ok(table), streams }, 1);
  return { ...around, term, over: term.run() };
}

test("term: it is over at once, also while a split by itself waits for its server", async () => {
  const sim = new Simulation({ seed: 2 });
  await sim.run(async () => {
    const { term, over, asked, world } = await aboutToSplit(sim);
    await sim.until(async () => asked.includes("ps-1 reshapePartitions entity-1"), 30_000, "a split by itself");
    const sinceMs = world.clock.monotonicMs();
    term.end("the map was not written");
    assert.equal(await over, "the map was not written");
    assert.ok(world.clock.monotonicMs() - sinceMs < 5_000, `after ${world.clock.monotonicMs() - sinceMs} ms`);
  });
});

test("term: nothing is split by itself while no extent can be made, or nobody says so; the plan says why", async () => {
  const sim = new Simulation({ seed: 2 });
  await sim.run(async () => {
    const { term, over, asked, lacks, refusals, world } = await aboutToSplit(sim);
    const why = "1 of 4 extent nodes that are up have room";
    lacks.push(why);
    const waits = async (text: RegExp): Promise<void> => {
      await sim.sleep(30_000);
      assert.equal(term.balancer?.plan()[0]?.kind, "split");
      assert.match(term.waitsForRoom.join(), text);
      const plan = await partitionManagerHandlers(world.clock, () => ok(term)).getRebalancePlan({} as never, {} as never);
      assert.deepEqual(plan.ok && plan.value.waitsFor, [...term.waitsForRoom]);
      assert.ok(!asked.some((call) => /reshape|suggest/.test(call)), asked.join());
    };
    await waits(/1 of 4 extent nodes/);
    lacks.length = 0;
    refusals.lacks = refused("unavailable", "connectFailed", "nobody is there");
    await waits(/does not say .*nobody is there/);
    delete refusals.lacks;
    await sim.until(async () => asked.includes("ps-1 reshapePartitions entity-1"), 10_000, "a split by itself");
    assert.deepEqual(term.waitsForRoom, []);
    term.end("the test is over");
    await over;
  });
});

test("term: ranges that are not served are counted by why, and servers that no range can be at", async () => {
  const sim = new Simulation({ seed: 2 });
  await sim.run(async () => {
    const { term, over, leases, lacks } = await aboutToSplit(sim);
    lacks.push("nothing is split in this test");
    const servers = Object.keys(leases).length;
    const nothing = { unassigned: 0, serverAway: 0, loading: 0 };
    const isNothing = (): boolean => Object.values(term.unserved ?? { none: 1 }).every((count) => count === 0);
    await sim.until(async () => isNothing(), 30_000, "everything is served");
    assert.deepEqual([term.unserved, term.serversAway], [nothing, 0]);
    for (const server of Object.keys(leases)) leases[server] = 0;
    await sim.until(async () => !isNothing(), 30_000, "the ends of the leases are seen");
    const ranges = term.map?.current.ranges.length ?? 0;
    const { unassigned = 0, serverAway = 0, loading = 0 } = term.unserved ?? {};
    assert.deepEqual([unassigned + serverAway, loading, term.serversAway], [ranges, 0, servers]);
    term.end("the test is over");
    await over;
  });
});

test("term: when a server becomes silent, the map's log is touched once, and no row of the map changes", async () => {
  const sim = new Simulation({ seed: 2 });
  await sim.run(async () => {
    const { term, over, answers, table, written } = await aboutToSplit(sim);
    const servesAt = (at: string) => async () => {
      const ranges = (term.map?.current.ranges ?? []).filter(({ server }) => server === at);
      return ok({ partitions: ranges.map(({ rangeId, ownerEpoch }) => ({ rangeId, ownerEpoch: toWire(ownerEpoch), state: "serving" })) });
    };
    const silent = async () => refused("unavailable", "timeout", "its host is dead");
    answers["ps-1"] = { listPartitions: servesAt("ps-1") };
    answers["ps-2"] = { listPartitions: servesAt("ps-2") };
    await sim.until(async () => term.assigner?.calm === true, 10_000, "every range is served");
    await sim.sleep(3_000);
    const [before, rows, version] = [written.count, unwrap(await table.readAll()), term.map?.current.version];
    answers["ps-1"] = { listPartitions: silent };
    await sim.sleep(1_100);
    assert.equal(written.count, before + 1);
    await sim.sleep(2_000);
    assert.equal(written.count, before + 1, "once for each silence");
    assert.deepEqual([unwrap(await table.readAll()), term.map?.current.version], [rows, version]);
    answers["ps-1"] = { listPartitions: servesAt("ps-1") };
    await sim.sleep(2_000);
    answers["ps-1"] = { listPartitions: silent };
    await sim.sleep(1_100);
    assert.equal(written.count, before + 2);
    term.end("the test is over");
    await over;
  });
});
