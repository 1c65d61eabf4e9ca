/** A seal that only one replica answered, and what happens when that replica is lost before another one has what only it had. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { ExtentState } from "@stamp/wire";
import { Cluster, first } from "./cluster.test.ts";

for (const failover of [false, true]) {
  test(`seal: a length that one lost disk alone had and nobody was told is made anew${failover ? ", also by the next leader" : ""}`, async () => {
    const cluster = new Cluster({ nodes: ["en1", "en2", "en3"], managers: ["sm1", "sm2"] });
    const { sim } = cluster;
    await sim.run(async () => {
      await cluster.open("/s", 1);
      await sim.sleep(3_500);
      const extent = first(await cluster.next("/s", 1, 0n));
      const { endBytes } = unwrap(await cluster.append(extent, 1, 0n, "acknowledged"));
      const [primary, ...others] = extent.addresses as [string, string, string];
      // The primary alone gets a tail, then it is the only one that answers the seal.
      for (const name of others) sim.crash(name, { stayDown: true });
      assert.ok(!(await cluster.append(extent, 1, endBytes, "on the primary only")).ok);
      const waiting = cluster.tryNext("/s", 1, extent.extentId, endBytes, [], 120_000);
      await cluster.until("sealed with one answer", async () => (await cluster.extents())[0]?.state === ExtentState.SEALED);
      assert.equal((await cluster.extents())[0]?.location?.sealedLengthBytes, undefined, "it is not told");
      sim.crash(primary, { stayDown: true });
      sim.disk(primary).wipe();
      sim.keyValue(primary).wipe();
      if (failover) {
        sim.crash(cluster.calls.leader ?? "", { stayDown: true });
        await sim.sleep(8_000);
      }
      for (const name of extent.addresses) sim.restart(name);
      const next = unwrap(await waiting);
      assert.equal(next.sealedLengthBytes, endBytes, "what was acknowledged, from the others");
      assert.ok((await cluster.append(next.extent, 1, 0n, "goes on")).ok);
      await cluster.until("three copies", async () => (await cluster.extents())[0]?.intactCopies === 3);
    });
  });
}

test("seal: a replica that is only away keeps its length: it comes back and the others are brought to it", async () => {
  const cluster = new Cluster({ nodes: ["en1", "en2", "en3"] });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    await sim.sleep(3_500);
    const extent = first(await cluster.next("/s", 1, 0n));
    const { endBytes } = unwrap(await cluster.append(extent, 1, 0n, "acknowledged"));
    const [primary, ...others] = extent.addresses as [string, string, string];
    for (const name of others) sim.crash(name, { stayDown: true });
    assert.ok(!(await cluster.append(extent, 1, endBytes, "on the primary only")).ok);
    const waiting = cluster.tryNext("/s", 1, extent.extentId, endBytes, [], 120_000);
    await cluster.until("sealed with one answer", async () => (await cluster.extents())[0]?.state === ExtentState.SEALED);
    sim.crash(primary, { stayDown: true });
    for (const name of others) sim.restart(name);
    await sim.sleep(20_000);
    assert.equal((await cluster.extents())[0]?.state, ExtentState.SEALED);
    sim.restart(primary);
    assert.ok(unwrap(await waiting).sealedLengthBytes > endBytes);
  });
});

test("seal: who opens the stream or asks for the next extent while a length is made anew waits for the new one", async () => {
  const cluster = new Cluster({ nodes: ["en1", "en2", "en3"] });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    await sim.sleep(3_500);
    const extent = first(await cluster.next("/s", 1, 0n));
    const { endBytes } = unwrap(await cluster.append(extent, 1, 0n, "acknowledged"));
    const [primary, ...others] = extent.addresses as [string, string, string];
    for (const name of others) sim.crash(name, { stayDown: true });
    assert.ok(!(await cluster.append(extent, 1, endBytes, "on the primary only")).ok);
    const waiting = cluster.tryNext("/s", 1, extent.extentId, endBytes, [], 120_000);
    await cluster.until("sealed with one answer", async () => (await cluster.extents())[0]?.state === ExtentState.SEALED);
    const opening = cluster.tryOpen("/s", 2, 120_000);
    sim.crash(primary, { stayDown: true });
    sim.disk(primary).wipe();
    sim.keyValue(primary).wipe();
    sim.restart(primary);
    await cluster.until("it is being sealed again", async () => (await cluster.extents())[0]?.state === ExtentState.SEALING);
    await sim.sleep(10_000);
    for (const name of others) sim.restart(name);
    const { extents } = unwrap(await opening);
    assert.deepEqual(
      extents.map((one) => one.sealedLengthBytes),
      [endBytes],
      "the new owner is given what was acknowledged",
    );
    const next = await waiting;
    assert.ok(!next.ok || next.value.sealedLengthBytes === endBytes);
  });
});
