/** Lengths that are taken back: of a seal that only one replica answered, and of one whose second replica is lost while it is told. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { type ExtentLocation, ExtentState } from "@stamp/wire";
import { Cluster, first } from "../testing/cluster.ts";

const nodes = ["en1", "en2", "en3"];

/** An extent with something acknowledged. */
async function appended(cluster: Cluster) {
  await cluster.open("/s", 1);
  await cluster.sim.sleep(3_500);
  const extent = first(await cluster.next("/s", 1, 0n));
  const { endBytes } = unwrap(await cluster.append(extent, 1, 0n, "acknowledged"));
  const [primary, ...others] = extent.addresses as [string, string, string];
  return { extent, endBytes, primary, others };
}

/** The primary alone gets a tail, then it is the only one that answers the seal; `waiting` is who asked for the next extent. */
async function sealedByOne(cluster: Cluster) {
  const made = await appended(cluster);
  const { extent, endBytes, others } = made;
  for (const name of others) cluster.sim.crash(name, { stayDown: true });
  assert.ok(!(await cluster.append(extent, 1, endBytes, "on the primary only")).ok);
  const waiting = cluster.tryNext("/s", 1, extent.extentId, endBytes, [], 120_000);
  await cluster.until("sealed with one answer", async () => (await cluster.extents())[0]?.state === ExtentState.SEALED);
  return { ...made, waiting };
}

function loseDisk({ sim }: Cluster, name: string): void {
  sim.crash(name, { stayDown: true });
  sim.disk(name).wipe();
  sim.keyValue(name).wipe();
}

const lengths = (extents: readonly ExtentLocation[]) => extents.map((one) => one.sealedLengthBytes);

for (const failover of [false, true]) {
  test(`seal: a length that one lost disk alone had and nobody was told is made anew${failover ? ", also by the next leader" : ""}`, async () => {
    const cluster = new Cluster({ nodes, managers: ["sm1", "sm2"] });
    const { sim } = cluster;
    await sim.run(async () => {
      const { extent, endBytes, primary, waiting } = await sealedByOne(cluster);
      assert.equal((await cluster.extents())[0]?.location?.sealedLengthBytes, undefined, "it is not told");
      loseDisk(cluster, primary);
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
  const cluster = new Cluster({ nodes });
  const { sim } = cluster;
  await sim.run(async () => {
    const { endBytes, primary, others, waiting } = await sealedByOne(cluster);
    sim.crash(primary, { stayDown: true });
    for (const name of others) sim.restart(name);
    await sim.sleep(20_000);
    assert.equal((await cluster.extents())[0]?.state, ExtentState.SEALED);
    sim.restart(primary);
    assert.ok(unwrap(await waiting).sealedLengthBytes > endBytes);
  });
});

test("seal: who opens the stream or asks for the next extent while a length is made anew waits for the new one", async () => {
  const cluster = new Cluster({ nodes });
  const { sim } = cluster;
  await sim.run(async () => {
    const { endBytes, primary, others, waiting } = await sealedByOne(cluster);
    const opening = cluster.tryOpen("/s", 2, 120_000);
    loseDisk(cluster, primary);
    sim.restart(primary);
    await cluster.until("it is being sealed again", async () => (await cluster.extents())[0]?.state === ExtentState.SEALING);
    await sim.sleep(10_000);
    for (const name of others) sim.restart(name);
    assert.deepEqual(lengths(unwrap(await opening).extents), [endBytes], "the new owner is given what was acknowledged");
    const next = await waiting;
    assert.ok(!next.ok || next.value.sealedLengthBytes === endBytes);
  });
});

test("open: a length whose second replica is lost while the owner is confirmed is told only when another one holds it", async () => {
  const cluster = new Cluster({ nodes });
  const { sim } = cluster;
  await sim.run(async () => {
    const { extent, endBytes, others } = await appended(cluster);
    const [second, third] = others as [string, string];
    sim.crash(third, { stayDown: true, silent: false });
    // Three transactions of 160 ms and more: the owner's epoch, the sealed length, the owner confirmed.
    sim.disk("lock").slowFactor = 400;
    const opening = cluster.tryOpen("/s", 2, 60_000);
    await cluster.until("fenced", async () => (await cluster.replica(second, extent.extentId))?.fenced === true);
    await sim.sleep(50);
    assert.equal((await cluster.extents())[0]?.state, ExtentState.SEALING, "its length counts, and is being recorded");
    loseDisk(cluster, second);
    sim.restart(second);
    assert.deepEqual(lengths(unwrap(await opening).extents), [endBytes]);
  });
});
