/** Tests failures that users of other replicated object stores report, e.g. an object that failed once and is never tried again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules } from "@stamp/base";
import { sleep } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { RoleCommand } from "@stamp/wire";
import { BlobsAt, bytesOf } from "./blob-client.ts";
import { beginPair, until, untilShipped } from "./two-stamps.ts";

const seconds = 1_000;
const put = { "x-ms-blob-type": "BlockBlob" };
const path = (i: number): string => `/con/${i}`;

/** Two stamps with twelve blobs at both. */
async function begin(sim: Simulation) {
  const { a, b } = await beginPair(sim, async (at) => {
    const blobs = await BlobsAt.of(sim, at);
    await blobs.done("PUT", "/con?restype=container");
    for (let i = 0; i < 12; i++) await blobs.done("PUT", path(i), put, bytesOf(`first ${i}`, 20_000));
  });
  await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
  const here = await BlobsAt.of(sim, a);
  const there = await BlobsAt.of(sim, b, { secondary: true });
  const servers = [a.server(1), a.server(2)];
  return { a, b, here, there, servers };
}

async function assertSame(here: BlobsAt, there: BlobsAt, count: number): Promise<void> {
  for (let i = 0; i < count; i++) assert.equal(await there.seen(path(i)), await here.seen(path(i)), path(i));
  assert.equal(await there.list("con"), await here.list("con"));
}

test("users report: an object that failed once is tried again, and what failed is not forgotten when every process of the primary restarts", async () => {
  const sim = new Simulation({ seed: 1, rules: allRules });
  await sim.run(async () => {
    const { a, b, here, there, servers } = await begin(sim);
    sim.partition(servers, [b.door]);
    await here.done("PUT", path(3), put, bytesOf("while the link is cut", 30_000));
    await here.done("PUT", path(12), put, bytesOf("new", 30_000));
    // Its calls fail, again and again.
    await until(a, "a failure", async () => a.shipping().some(({ failure }) => /no connection/.test(failure)));
    await sleep(a.world.clock, 20 * seconds);
    for (const name of a.processes) sim.crash(name);
    await until(a, "the stamp is back", async () => a.ready);
    sim.heal();
    await untilShipped(a);
    await assertSame(here, there, 13);
  });
});

test("users report: what was deleted while the other side was down does not come back, shipped late or seeded again", async () => {
  for (const isSeeded of [false, true]) {
    const sim = new Simulation({ seed: 2, rules: allRules });
    await sim.run(async () => {
      const { a, b, here, there, servers } = await begin(sim);
      sim.partition(servers, [b.door]);
      for (const name of b.processes) sim.crash(name);
      for (let i = 0; i < 12; i += 2) await here.done("DELETE", path(i));
      if (isSeeded) {
        await a.obey(RoleCommand.UNPAIR, 3);
        await sleep(a.world.clock, 10 * seconds);
      }
      await until(b, "the stamp is back", async () => b.ready);
      sim.heal();
      if (isSeeded) {
        // The copy is begun anew over rows that are still there.
        await b.obey(RoleCommand.REMOVE, 3);
        await b.obey(RoleCommand.FOLLOW, 4, { epoch: 1n, peer: "a" });
        await a.obey(RoleCommand.PAIR, 4, { peer: "b", peerDoors: [b.door] });
        await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
      }
      await untilShipped(a);
      assert.equal(await there.seen(path(0)), undefined);
      await assertSame(here, there, 12);
    });
  }
});

test("users report: a side that was lost whole is filled again from the other one", async () => {
  const sim = new Simulation({ seed: 3, rules: allRules });
  await sim.run(async () => {
    const { a, b, here } = await begin(sim);
    await b.obey(RoleCommand.REMOVE, 3);
    await a.obey(RoleCommand.UNPAIR, 3);
    await here.done("PUT", path(12), put, bytesOf("meanwhile", 30_000));
    await b.obey(RoleCommand.FOLLOW, 4, { epoch: 1n, peer: "a" });
    await a.obey(RoleCommand.PAIR, 4, { peer: "b", peerDoors: [b.door] });
    await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
    await untilShipped(a);
    await assertSame(here, await BlobsAt.of(sim, b, { secondary: true }), 13);
  });
});

test("users report: a client that keeps its connection to the old side after a failover writes nothing there", async () => {
  const sim = new Simulation({ seed: 4, rules: allRules });
  await sim.run(async () => {
    const { a, b, here } = await begin(sim);
    await a.obey(RoleCommand.DRAIN, 3);
    await untilShipped(a);
    await b.obey(RoleCommand.PROMOTE, 3, { peer: "a", peerDoors: [a.door] });
    await a.obey(RoleCommand.DEMOTE, 3, { peer: "b", peerDoors: [b.door] });
    const late = await here.ask("PUT", path(0), put, bytesOf("late", 100));
    assert.equal(late.status, 503);
    assert.equal((await here.ask("GET", path(0))).status, 503, "it does not see what may be old, either");
    const now = await BlobsAt.of(sim, b);
    await now.done("PUT", path(0), put, bytesOf("at the new primary", 200));
    assert.match((await now.seen(path(0))) ?? "", /^200 \w+ 200 bytes/);
  });
});
