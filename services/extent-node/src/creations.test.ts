/** Numbers of extents that were given twice: no command for one creation touches a replica or a fragment of another, over restarts, also without a header. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, extentId, present, type RuleName, unwrap } from "@stamp/base";
import { Replica, unreadableMeta } from "@stamp/extent";
import { decodeFormatMarker, formatMarkerFile } from "@stamp/ports";
import { isOther } from "./creations.ts";
import { markFormat } from "./format-marks.ts";
import type { Node } from "./node.ts";
import { Cluster, pattern, reasonOf } from "./testing/harness.ts";

const timeoutMs = 2_000;
const [first, second] = [7, 8];

/** An extent of the first creation with content on two nodes, sealed; and the calls that a stream manager of the second creation makes. */
async function givenTwice(cluster: Cluster) {
  cluster.givenVersion = 1_000;
  await cluster.allReady();
  const id = await cluster.create(["en-1", "en-2"], 1, first);
  unwrap(await cluster.append("en-1", id, 0, [pattern(3_000, 1)]));
  const { durableBytes: length } = await cluster.replica("en-1", id);
  const stampId = String(cluster.facts("en-1").stampId);
  const common = (name: string, creation: number) => ({
    smTerm: 1n,
    extentId: BigInt(id),
    version: 2n,
    diskId: String(cluster.facts(name).diskId),
    creation: BigInt(creation),
  });
  const seal = (name: string, creation: number) =>
    cluster.node(name).sealExtent({ ...common(name, creation), sealedLengthBytes: length, sources: [] }, { timeoutMs });
  return {
    id,
    length,
    seal,
    create: async (name: string, creation: number) => {
      const replicas = await cluster.replicas([name]);
      return cluster
        .node(name)
        .createExtent({ ...common(name, creation), version: 1n, ownerEpoch: 1n, replicas, stampId, stream: "/t" }, { timeoutMs });
    },
    fence: (name: string, creation: number) => cluster.node(name).fenceExtent(common(name, creation), { timeoutMs }),
    copy: (name: string, creation: number, from: string, holder = false) =>
      cluster.node(name).copyExtent(
        {
          ...common(name, creation),
          version: 3n,
          sealedLengthBytes: length,
          ownerEpoch: 1n,
          sources: [from],
          stampId,
          stream: "/t",
          holder,
        },
        { timeoutMs },
      ),
    remove: (name: string, creation: number, holder = false) =>
      cluster.node(name).deleteExtent({ ...common(name, creation), version: 100n, holder }, { timeoutMs }),
    raw: (name: string, creation: number) =>
      cluster.node(name).readRaw({ extentId: BigInt(id), offsetBytes: 0n, lengthBytes: 100, creation: BigInt(creation) }, { timeoutMs }),
  };
}

for (const other of [second, 0])
  test(`creations: commands for creation ${other} fence, seal, replace, give and delete no replica of another`, async () => {
    const cluster = new Cluster(41);
    await cluster.run(async () => {
      const { id, seal, create, fence, copy, remove, raw } = await givenTwice(cluster);
      const isAsItWas = async () => {
        const { creation, state, stream, durableBytes } = await cluster.replica("en-1", id);
        assert.ok(creation === BigInt(first) && stream === "/s" && durableBytes > 3_000n, String(state));
      };
      assert.equal(reasonOf(await create("en-1", other)), "extentStale");
      assert.equal(reasonOf(await fence("en-1", other)), "unknownExtent");
      assert.equal(reasonOf(await seal("en-1", other)), "unknownExtent");
      assert.equal((await cluster.replica("en-1", id)).fenced, false);
      for (const name of ["en-1", "en-2"]) unwrap(await seal(name, first));
      assert.equal(reasonOf(await copy("en-1", other, "en-2", true)), "unknownExtent");
      assert.equal(reasonOf(await remove("en-1", other, true)), "unknownExtent");
      assert.equal(reasonOf(await raw("en-1", other)), "unknownExtent");
      assert.equal(reasonOf(await raw("en-1", first)), "ok");
      await isAsItWas();
      cluster.sim.crash("en-1", { unsynced: "lost" });
      cluster.sim.restart("en-1");
      await cluster.ready("en-1");
      assert.equal(reasonOf(await remove("en-1", other, true)), "unknownExtent");
      await isAsItWas();
      assert.equal(reasonOf(await remove("en-1", first)), "ok");
    });
  });

test("creations: a copy keeps its creation, and a copy of another one is made from no replica of this", async () => {
  const cluster = new Cluster(42);
  await cluster.run(async () => {
    const { id, seal, copy } = await givenTwice(cluster);
    for (const name of ["en-1", "en-2"]) unwrap(await seal(name, first));
    assert.notEqual(reasonOf(await copy("en-3", second, "en-1")), "ok");
    assert.equal((await cluster.node("en-3").getExtentReplica({ extentId: BigInt(id) }, { timeoutMs })).ok, false);
    unwrap(await copy("en-3", first, "en-1"));
    const { creation, stream, predecessor } = await cluster.replica("en-3", id);
    assert.deepEqual([creation, stream, predecessor], [BigInt(first), "/t", undefined]);
  });
});

test("creations: no extent is made while a copy of another one of its number is under way, which would take its place", async () => {
  let refused = 0;
  for (let afterMs = 0; afterMs < 24; afterMs++) {
    const cluster = new Cluster(43);
    await cluster.run(async () => {
      const { id, create, seal, copy } = await givenTwice(cluster);
      for (const name of ["en-1", "en-2"]) unwrap(await seal(name, first));
      const later = async () => {
        await cluster.sim.sleep(afterMs);
        return create("en-3", second);
      };
      const [copied, created] = await Promise.all([copy("en-3", first, "en-1"), later()]);
      assert.ok(copied.ok !== created.ok, `${reasonOf(copied)}, ${reasonOf(created)}, after ${afterMs} ms`);
      const { creation } = await cluster.replica("en-3", id);
      assert.equal(creation, BigInt(copied.ok ? first : second));
      if (!created.ok && /a copy of an extent/.test(created.failure.message)) refused += 1;
    });
  }
  assert.ok(refused > 0, "an extent came in the middle of a copy");
});

test("creations: a folder is marked before a replica or fragment has a number, and not before: the release before may still start", async () => {
  const cluster = new Cluster(45);
  await cluster.run(async () => {
    cluster.givenVersion = 1_000;
    await cluster.allReady();
    const world = cluster.sim.world("en-1");
    const versions = async () => {
      const bytes = present(await world.disk.readWhole(formatMarkerFile), "the marker");
      const marker = decodeFormatMarker(bytes, (each) => world.digest.crc32c(each));
      return ["extent", "fragment"].map((format) => marker?.[format]?.version ?? 0);
    };
    await cluster.create(["en-1"], 1, 0);
    unwrap(await markFormat(world, "fragment", undefined));
    assert.deepEqual(await versions(), [1, 1], "nothing with a number lies there");
    unwrap(await markFormat(world, "fragment", first));
    assert.deepEqual(await versions(), [1, 2]);
    cluster.sim.disk("en-1").failNext("sync", "full", formatMarkerFile);
    await assert.rejects(cluster.create(["en-1"], 1, first), /takes no mark of the format extent/);
    assert.deepEqual(await versions(), [1, 2]);
    await cluster.create(["en-1"], 1, first);
    assert.deepEqual(await versions(), [2, 2]);
  });
});

test("creations: a replica that can't be read is the one that a command means only where the record names it", () => {
  const node = { world: { rules: allRules } } as Node;
  const replica = new Replica(unreadableMeta(extentId(9), "its header can't be read"), allRules);
  assert.equal(isOther(node, replica, { creation: 7n }), true, "it may be of another creation");
  assert.equal(isOther(node, replica, { creation: 7n, holder: true }), false, "it is made anew");
  assert.equal(isOther(node, replica, { creation: 0n }), false, "as before creation numbers");
});

test("creations: without the rule the first extent is replaced and deleted", async () => {
  const cluster = new Cluster(44, { off: ["commandsNameCreations"] satisfies RuleName[] });
  await cluster.run(async () => {
    const { id, seal, remove } = await givenTwice(cluster);
    unwrap(await seal("en-1", second));
    assert.equal(reasonOf(await remove("en-1", second)), "ok");
    assert.equal((await cluster.node("en-1").getExtentReplica({ extentId: BigInt(id) }, { timeoutMs })).ok, false);
  });
});
