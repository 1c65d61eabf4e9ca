/** The report of a primary that a forced failover deposed: exactly what the new primary lacked, durable before it is seeded again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type RuleName, rulesWithout } from "@stamp/base";
import { sleep } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { type DivergedRow, PartitionManager, RoleCommand } from "@stamp/wire";
import { account, beginPair, type OneStamp, until } from "./two-stamps.ts";

const options = { timeoutMs: 10_000 };
const seconds = 1_000;

/** Every page of the report at a stamp. */
async function report(at: OneStamp) {
  const rows: DivergedRow[] = [];
  for (let marker = ""; ; ) {
    const page = await at.until("a page of the report", () => at.accounts.listDiverged({ account, marker }, options));
    rows.push(...page.rows);
    marker = page.nextMarker;
    if (marker === "") return { rows, complete: page.complete, trouble: page.trouble };
  }
}

/** Deletes every page of the report at a stamp. */
async function forget(at: OneStamp): Promise<number> {
  let rows = 0;
  for (let marker = ""; ; ) {
    const page = await at.until("a page goes", () => at.accounts.forgetDiverged({ account, marker }, options));
    rows += page.rows;
    marker = page.nextMarker;
    if (marker === "") return rows;
  }
}

const textOf = ({ name, deleted, entity }: DivergedRow): string => {
  const { partitionKey = "", rowKey = "" } = entity?.key ?? {};
  const text = deleted ? "deleted" : String(entity?.properties[0]?.value?.kind.value ?? "");
  return `${name} ${partitionKey} ${rowKey} ${text}`;
};

interface Scene {
  readonly seed: number;
  readonly without?: readonly RuleName[];
}

/**
 * Some writes are shipped, and some are not because the link is cut. Then the copy is promoted by force, and the old primary hears of it after its
 * servers were restarted: its cursors are those of the last record, before much that was shipped.
 */
async function deposed({ seed, without = [] }: Scene) {
  const sim = new Simulation({ seed, rules: rulesWithout(...without) });
  return sim.run(async () => {
    const { a, b } = await beginPair(sim, async (at) => {
      for (let i = 0; i < 20; i++) await at.write(`p${i % 5}`, [{ rowKey: `${i}`, text: "seeded" }]);
    });
    const { clock } = a.world;
    await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
    for (let i = 20; i < 40; i++) await a.write(`p${i % 5}`, [{ rowKey: `${i}`, text: "shipped" }]);
    await until(a, "everything is shipped", async () => (await a.progress())?.pendingCommits === 0n);
    const servers = [a.server(1), a.server(2)];
    sim.partition(servers, [b.door]);
    await a.write("p0", [
      { rowKey: "0", text: "changed" },
      { rowKey: "new", text: "lost" },
    ]);
    await a.write("p1", [{ rowKey: "1", text: undefined }]);
    await a.write("q", [{ rowKey: "only", text: "here" }]);
    await b.obey(RoleCommand.PROMOTE, 3, { peer: "a", peerDoors: [a.door] });
    await b.write("p0", [{ rowKey: "0", text: "of the new primary" }]);
    for (const server of servers) sim.crash(server);
    if (seed === 2) {
      const range = (await a.ranges()).find(({ table }) => table === "Entity");
      const manager = a.world.transport.client(a.manager, PartitionManager);
      await a.until("a split", () => manager.splitPartition({ rangeId: range?.rangeId ?? "" }, options));
    }
    const demoted = a.obey(RoleCommand.DEMOTE, 3, { peer: "b", peerDoors: [b.door] });
    await sleep(clock, 900);
    // A front-end may act on the role before for a term of its cache, and acknowledges this write.
    await a.write("p2", [{ rowKey: "late", text: "acknowledged" }]);
    await demoted;
    await sleep(clock, 10 * seconds);
    // While the new primary is away nothing is replaced, and the report says why it is not complete.
    const waiting = await report(a);
    assert.equal(await a.role(), "unseeded");
    assert.equal(waiting.complete, false);
    assert.match(waiting.trouble, /^range entity-.*no connection|^not every range/);
    assert.ok((await a.read({ partitionKey: "q", rowKey: "only" })) !== undefined, "the rows of the deposed primary are still there");
    if (seed === 3) sim.crash(a.server(1));
    sim.heal();
    await until(a, "the old primary is a copy", async () => (await a.role()) === "secondary");
    return { a, b, told: await report(a) };
  });
}

const expected = ["pairs p0 0 changed", "pairs p0 new lost", "pairs p1 1 deleted", "pairs p2 late acknowledged", "pairs q only here"];

for (const seed of [1, 2, 3]) {
  test(`report: a primary deposed by force reports what only it had, and nothing else, and is seeded again (seed ${seed})`, async () => {
    const { a, b, told } = await deposed({ seed });
    assert.deepEqual([told.complete, told.trouble], [true, ""]);
    assert.deepEqual(told.rows.map(textOf).sort(), expected);
    assert.ok(told.rows.every(({ operation }) => operation === 3n));
    assert.ok(a !== b);
  });
}

test("report: without the rule geoReportLacksShipped it has what the new primary has", async () => {
  const { told } = await deposed({ seed: 1, without: ["geoReportLacksShipped"] });
  const texts = told.rows.map(textOf);
  assert.ok(expected.every((row) => texts.includes(row)) && texts.some((row) => row.endsWith("shipped")), JSON.stringify(texts));
});

test("report: the deposed primary has the new one's rows afterwards, and its report outlives splits and restarts", async () => {
  const sim = new Simulation({ seed: 4, rules: allRules });
  await sim.run(async () => {
    const { a, b } = await beginPair(sim, (at) => at.write("p0", [{ rowKey: "0", text: "seeded" }]));
    await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
    sim.partition([a.server(1), a.server(2)], [b.door]);
    for (let i = 0; i < 30; i++) await a.write(`p${i % 3}`, [{ rowKey: `${i}`, text: "x".repeat(1_000) }]);
    await b.obey(RoleCommand.PROMOTE, 3, { peer: "a", peerDoors: [a.door] });
    await a.obey(RoleCommand.DEMOTE, 3, { peer: "b", peerDoors: [b.door] });
    sim.heal();
    await until(a, "the old primary is a copy", async () => (await a.role()) === "secondary");
    for (let i = 0; i < 30; i++) {
      const key = { partitionKey: `p${i % 3}`, rowKey: `${i}` };
      assert.equal(await a.read(key), await b.read(key), `${i}`);
    }
    assert.equal((await report(a)).rows.length, 30);
    const manager = a.world.transport.client(a.manager, PartitionManager);
    const range = (await a.ranges()).find(({ table }) => table === "Entity");
    await a.until("a split", () => manager.splitPartition({ rangeId: range?.rangeId ?? "" }, options));
    for (const server of [a.server(1), a.server(2)]) sim.crash(server);
    assert.equal((await report(a)).rows.length, 30);
    // The way back is a planned failover: nothing is reported, and the report of before is still there.
    await b.write("p0", [{ rowKey: "back", text: "kept" }]);
    await b.obey(RoleCommand.DRAIN, 4);
    await until(b, "everything is shipped", async () => (await b.progress())?.pendingCommits === 0n);
    await a.obey(RoleCommand.PROMOTE, 4, { peer: "b", peerDoors: [b.door] });
    await b.obey(RoleCommand.DEMOTE, 4, { peer: "a", peerDoors: [a.door] });
    assert.ok(await a.read({ partitionKey: "p0", rowKey: "back" }));
    await until(b, "the stamp is a copy again", async () => (await b.role()) === "secondary");
    assert.deepEqual([(await report(b)).rows.length, (await report(a)).rows.length], [0, 30], "a report is not shipped");
  });
});

test("report: ranges are not merged while one of them owes a part of it; a report that is over may be deleted, and nothing else goes", async () => {
  const sim = new Simulation({ seed: 6, rules: allRules });
  await sim.run(async () => {
    const { a, b } = await beginPair(sim, (at) => at.write("p0", [{ rowKey: "0", text: "seeded" }]));
    for (let i = 0; i < 9; i++) await a.write(`p${i}`, [{ rowKey: `${i}`, text: "both" }]);
    await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
    const manager = a.world.transport.client(a.manager, PartitionManager);
    const first = async () => (await a.ranges()).find(({ table }) => table === "Entity")?.rangeId ?? "";
    const rangeId = await first();
    await a.until("a split", () => manager.splitPartition({ rangeId }, options));
    const merge = async () => manager.mergePartition({ rangeId: await first() }, options);
    await until(a, "everything is shipped", async () => (await a.progress())?.pendingCommits === 0n);
    sim.partition([a.server(1), a.server(2)], [b.door]);
    for (let i = 0; i < 9; i++) await a.write(`p${i}`, [{ rowKey: `${i}`, text: "lost" }]);
    const cut = await merge();
    assert.ok(!cut.ok && /lacks \d+ commits of entity/.test(cut.failure.message), JSON.stringify(cut));
    await b.obey(RoleCommand.PROMOTE, 3, { peer: "a", peerDoors: [a.door] });
    await a.obey(RoleCommand.DEMOTE, 3, { peer: "b", peerDoors: [b.door] });
    await sleep(a.world.clock, 5 * seconds);
    const early = await a.accounts.forgetDiverged({ account, marker: "" }, options);
    assert.ok(!early.ok && early.failure.reason === "notReady", "while the report is made nothing of it is deleted");
    const owed = await merge();
    assert.ok(!owed.ok && /lacks \d+ commits of entity/.test(owed.failure.message), JSON.stringify(owed));
    sim.heal();
    await until(a, "the old primary is a copy", async () => (await a.role()) === "secondary");
    const told = await report(a);
    assert.deepEqual([told.complete, told.trouble, told.rows.length], [true, "", 9]);
    const before = await forget(a);
    assert.deepEqual([before, (await report(a)).rows.length], [9, 0], "from both ranges");
    await a.until("a merge", merge);
    assert.deepEqual([await forget(a), (await report(a)).rows.length], [0, 0]);
    for (let i = 0; i < 9; i++) {
      const key = { partitionKey: `p${i}`, rowKey: `${i}` };
      assert.match((await a.read(key)) ?? "", /both/, "rows of the account stay");
      assert.equal(await a.read(key), await b.read(key));
    }
  });
});
