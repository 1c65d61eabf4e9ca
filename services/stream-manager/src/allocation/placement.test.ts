/** Where new extents go when there are few nodes, or no room. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { ExtentNodeRole, extentNodeSchema } from "@stamp/extent-node";
import { Cluster, first, nodeNames } from "../testing/cluster.ts";

test("placement: with fewer nodes than copies it goes down to minCopies, repairs later, and below that says what it waits for", async () => {
  const cluster = new Cluster({ nodes: ["en1", "en2"] });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const extent = first(await cluster.next("/s", 1, 0n));
    assert.equal(extent.addresses.length, 2);
    const next = await cluster.next("/s", 1, extent.extentId);
    sim.addProcess(
      "en3",
      (world) =>
        new ExtentNodeRole(
          world,
          extentNodeSchema.parse({
            name: "en3",
            listen: "en3",
            lockService: "lock",
            journalSegmentBytes: 1 << 20,
            appendBytesMax: 900_000,
          }),
        ),
    );
    await cluster.until("a third copy of the sealed one", async () =>
      (await cluster.extents()).some((one) => one.location?.extentId === extent.extentId && one.intactCopies === 3),
    );
    sim.crash("en2", { stayDown: true });
    sim.crash("en3", { stayDown: true });
    await sim.sleep(4_000);
    await cluster.tryNext("/s", 1, first(next).extentId, 0n, [], 3_000);
    const status = sim.role("sm1")?.status;
    assert.equal(status?.ready, false);
    assert.match(status?.waitingFor.join() ?? "", /extent nodes: 1 of at least 2/);
  });
});

test("placement: who waits for an extent is told that there is no room: on the metadata store's disk, or on the nodes', also when they don't answer a fence", async () => {
  const cluster = new Cluster();
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    let extent = first(await cluster.next("/s", 1, 0n));
    const fill = (name: string): (() => void) => {
      const disk = sim.disk(name);
      const roomy = disk.options;
      disk.options = { ...roomy, totalBytes: disk.usedBytes() };
      return () => {
        disk.options = roomy;
      };
    };
    const cut = (name: string): (() => void) => {
      sim.partition([name], ["sm1"]);
      return () => sim.heal();
    };
    const lacks = async (): Promise<string> => unwrap(await cluster.sm((sm, timeoutMs) => sm.getRoom({}, { timeoutMs }))).lacks.join("; ");
    assert.equal(await lacks(), "");
    for (const [away, names, why, applied, lacking] of [
      [fill, ["lock"], /nothing is recorded: the disk of the metadata store is full/, "unknown", /nothing is recorded/],
      [fill, nodeNames, /0 of 4 extent nodes that are up have room/, "no", /^0 of 4 extent nodes that are up have room/],
      [cut, nodeNames, /can't be sealed: no intact replica answers/, "unknown", /^0 of 0 extent nodes that are up/],
    ] as const) {
      const back = names.map(away);
      await sim.sleep(15_000);
      void cluster.tryNext("/s", 1, extent.extentId, 0n, [], 500);
      await sim.sleep(15_000);
      const refused = await cluster.tryNext("/s", 1, extent.extentId, 0n, [], 5_000);
      assert.ok(!refused.ok);
      assert.deepEqual([refused.failure.reason, refused.failure.applied], ["noPlacement", applied]);
      assert.match(refused.failure.message, why);
      assert.match(JSON.stringify(sim.role("sm1")?.status.facts.waits), why);
      assert.match(await lacks(), lacking);
      for (const one of back) one();
      await cluster.until("there is room", async () => (await lacks()) === "");
      extent = first(await cluster.next("/s", 1, extent.extentId));
    }
  });
});
