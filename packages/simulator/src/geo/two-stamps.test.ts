/** An account at two stamps: what was there before is seeded, what is written afterwards is shipped, in order, over crashes, moves and splits. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type RuleName, rulesWithout } from "@stamp/base";
import { sleep } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { PartitionManager, RoleCommand } from "@stamp/wire";
import { beginPair, type EntityAt, type OneStamp, until, untilShipped } from "./two-stamps.ts";

test("two stamps: entities of before and after are at the second one, in order for each PartitionKey, with their timestamps", async () => {
  const sim = new Simulation({ seed: 1, rules: allRules });
  const names = ["foo", "bar", "baz"];
  const keys: EntityAt[] = [];
  let count = 0;
  await sim.run(async () => {
    const pair = async (a: OneStamp): Promise<void> => {
      const partitionKey = names[count % names.length] ?? "";
      const rowKey = `${String(++count).padStart(4, "0")}`;
      // B is never there without A.
      await a.write(partitionKey, [{ rowKey: `${rowKey}-A`, text: `${count}` }]);
      await a.write(partitionKey, [
        { rowKey: `${rowKey}-B`, text: "x".repeat(100) },
        { rowKey: "last", text: rowKey },
      ]);
      keys.push({ partitionKey, rowKey: `${rowKey}-A` }, { partitionKey, rowKey: `${rowKey}-B` }, { partitionKey, rowKey: "last" });
    };
    const { a, b } = await beginPair(sim, async (a) => {
      for (let i = 0; i < 20; i++) await pair(a);
    });
    const inOrder = async (): Promise<void> => {
      for (const partitionKey of names) {
        const last = /"last|text","(\d+)"/.exec((await b.read({ partitionKey, rowKey: "last" })) ?? "")?.[1];
        if (last === undefined) continue;
        for (const suffix of ["A", "B"])
          assert.ok(await b.read({ partitionKey, rowKey: `${last}-${suffix}` }), `${partitionKey} ${last}-${suffix}`);
      }
    };
    const manager = a.world.transport.client(a.manager, PartitionManager);
    for (let i = 0; i < 40; i++) {
      await pair(a);
      if (i % 5 === 0) await inOrder();
      if (i === 8) sim.crash(a.server(1));
      if (i === 14) sim.crash(b.server(2));
      if (i === 20) sim.crash(b.door);
      const range = i === 12 ? (await a.ranges()).find(({ table }) => table === "Entity") : undefined;
      if (range !== undefined) await manager.splitPartition({ rangeId: range.rangeId }, { timeoutMs: 10_000 });
    }
    await a.write("foo", [{ rowKey: "0001-A", text: undefined }]);
    await untilShipped(a);
    for (const key of keys) assert.equal(await b.read(key), await a.read(key), JSON.stringify(key));
    await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
    assert.deepEqual([(await a.progress())?.pendingCommits, (await a.progress())?.trouble], [0n, ""]);
  });
});

for (const without of [[], ["geoCopiesNotCollected"]] as readonly RuleName[][]) {
  const told = without.length === 0 ? "a copy's entities stay though their table is not there yet" : "without its rule they are collected";
  test(`two stamps: ${told}`, async () => {
    const sim = new Simulation({ seed: 2, rules: rulesWithout(...without) });
    await sim.run(async () => {
      const rows = [{ rowKey: "r", text: "kept" }];
      const { a, b } = await beginPair(sim, (at) => at.write("p", rows));
      await untilShipped(a);
      const key = { partitionKey: "p", rowKey: "r" };
      assert.equal(await b.read(key), await a.read(key));
      await b.dropTable();
      await b.collect(3);
      assert.equal(await b.read(key), without.length === 0 ? await a.read(key) : undefined);
      // The primary's own garbage goes.
      await a.dropTable();
      await a.collect(3);
      assert.equal(await a.read(key), undefined);
    });
  });
}

test("two stamps: a stamp that does not follow the account, or follows another primary, takes nothing, and the sender tells why", async () => {
  const sim = new Simulation({ seed: 3, rules: allRules });
  await sim.run(async () => {
    const { a, b } = await beginPair(sim, (at) => at.write("p", [{ rowKey: "r", text: "1" }]), { epoch: 7n });
    const { clock } = a.world;
    const told = async (wanted: RegExp): Promise<void> => {
      const endMs = clock.monotonicMs() + 20_000;
      while (!a.shipping().some(({ failure }) => wanted.test(failure))) {
        assert.ok(clock.monotonicMs() < endMs, JSON.stringify(a.shipping()));
        await sleep(clock, 200);
      }
    };
    await told(/shipped under role epoch 1, this stamp follows role epoch 7/);
    assert.equal(await b.read({ partitionKey: "p", rowKey: "r" }), undefined);
    await b.obey(RoleCommand.REMOVE, 3);
    await told(/account acct is not at this stamp/);
    // The copy is begun again, under the primary's epoch, and the primary is told of it: everything gets there.
    await a.obey(RoleCommand.UNPAIR, 3);
    await b.obey(RoleCommand.FOLLOW, 4, { epoch: 1n, peer: "a" });
    await a.obey(RoleCommand.PAIR, 4, { peer: "b", peerDoors: [b.door] });
    await untilShipped(a);
    assert.equal(await b.read({ partitionKey: "p", rowKey: "r" }), await a.read({ partitionKey: "p", rowKey: "r" }));
    // The account has one stamp again: the log is not kept any more.
    await a.obey(RoleCommand.UNPAIR, 5);
    const endMs = clock.monotonicMs() + 20_000;
    while (a.shipping().length > 0) {
      assert.ok(clock.monotonicMs() < endMs, JSON.stringify(a.shipping()));
      await sleep(clock, 200);
    }
  });
});

test("two stamps: Last Sync Time follows the clock while nothing is written, stands while the link is cut, and never passes a write", async () => {
  const sim = new Simulation({ seed: 4, rules: allRules });
  await sim.run(async () => {
    const { a, b } = await beginPair(sim, (at) => at.write("p", [{ rowKey: "0", text: "0" }]));
    const { clock } = a.world;
    await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
    await until(a, "an idle copy follows the clock", async () => ((await b.lastSyncMs()) ?? 0) > clock.wallMs() - 3_000);
    // A cut link: the copy stays where it was, and the backlog has a size.
    sim.partition([a.server(1), a.server(2)], [b.door]);
    const cutMs = clock.wallMs();
    for (let i = 1; i <= 20; i++) await a.write("p", [{ rowKey: `${i}`, text: "x".repeat(500) }]);
    await sleep(clock, 20_000);
    const backlog = await a.progress();
    assert.ok(Number(backlog?.pendingCommits) >= 20 && Number(backlog?.pendingBytes) > 20 * 500, JSON.stringify(backlog?.ranges, replaced));
    assert.ok(Number(backlog?.lastSyncMs) <= cutMs, "what was written behind the cut is not synced");
    assert.match(backlog?.trouble ?? "", /^range entity-1: .*no connection/);
    assert.ok(((await b.lastSyncMs()) ?? 0) <= cutMs);
    sim.heal();
    await until(a, "everything arrives", async () => (await a.progress())?.pendingCommits === 0n);
    await until(a, "the copy follows the clock", async () => ((await b.lastSyncMs()) ?? 0) > cutMs + 10_000);
    assert.equal(await b.read({ partitionKey: "p", rowKey: "20" }), await a.read({ partitionKey: "p", rowKey: "20" }));
  });
});

test("two stamps: a copy that was given up and begun anew is seeded anew, though the role epoch is the same", async () => {
  const sim = new Simulation({ seed: 6, rules: allRules });
  await sim.run(async () => {
    const { a, b } = await beginPair(sim, (at) => at.write("p", [{ rowKey: "r", text: "1" }]));
    await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
    // The partition servers do not hear of the moment without a copy.
    await b.obey(RoleCommand.REMOVE, 3);
    await a.obey(RoleCommand.UNPAIR, 3);
    await b.obey(RoleCommand.FOLLOW, 4, { epoch: 1n, peer: "a" });
    void a.obey(RoleCommand.PAIR, 4, { peer: "b", peerDoors: [b.door] });
    await until(a, "the copy is seeded anew", async () => (await a.progress())?.paired === 4n && (await b.role()) === "secondary");
    const seeded = a.shipping().filter(({ seededBytes }) => seededBytes > 0);
    assert.ok(seeded.length > 0, JSON.stringify(a.shipping()));
  });
});

const replaced = (_key: string, value: unknown) => (typeof value === "bigint" ? Number(value) : value);

test("two stamps: ranges that were seeded each by itself are merged when the copy is complete, and nothing is seeded again", async () => {
  const sim = new Simulation({ seed: 11, rules: allRules });
  await sim.run(async () => {
    const wire = { timeoutMs: 20_000 };
    const { a, b } = await beginPair(sim, async (at) => {
      for (let i = 0; i < 40; i++) await at.write(`p${i}`, [{ rowKey: "1", text: "x".repeat(5_000) }]);
      const rangeId = (await at.ranges()).find(({ table }) => table === "Entity")?.rangeId ?? "";
      const manager = at.world.transport.client(at.manager, PartitionManager);
      await at.until("a split", () => manager.splitPartition({ rangeId }, wire));
      for (let i = 0; i < 10; i++) await at.write(`p${i}`, [{ rowKey: "2", text: "in one of the two" }]);
    });
    const ends = async () => a.shipping().filter(({ rangeId }) => rangeId.startsWith("entity"));
    await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
    await untilShipped(a);
    assert.equal((await ends()).length, 2);
    const manager = a.world.transport.client(a.manager, PartitionManager);
    const rangeId = (await a.ranges()).find(({ table }) => table === "Entity")?.rangeId ?? "";
    const merged = await a.until("a merge", () => manager.mergePartition({ rangeId }, wire));
    const follows = async (): Promise<boolean> => (await ends()).some((one) => one.rangeId === merged.ranges[0]?.rangeId);
    await until(a, "the merged range is shipped", follows);
    assert.deepEqual(
      (await ends()).filter((one) => one.rangeId === merged.ranges[0]?.rangeId).map(({ state }) => state),
      ["shipping"],
    );
    await a.write("p3", [{ rowKey: "3", text: "behind the merge" }]);
    await untilShipped(a);
    assert.equal(await b.read({ partitionKey: "p3", rowKey: "3" }), await a.read({ partitionKey: "p3", rowKey: "3" }));
  });
});
