/** Extents that began after the copy of the metadata come back into their streams in the first term after a restore. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { present, type RuleName, rulesWithout, unwrap } from "@stamp/base";
import { segmentExtentsMax, type TakenBackRecord } from "@stamp/stream";
import type { ExtentLocation } from "@stamp/wire";
import { Cluster, first, nodeNames } from "../testing/cluster.ts";
import { newestCopy, restore } from "../testing/restored-store.ts";

const timeoutMs = 2_000;

/** Appends a text to an extent, and to each of so many successors. Returns them, the last one open. */
async function fill(cluster: Cluster, stream: string, epoch: number, from: bigint, texts: readonly string[]): Promise<ExtentLocation[]> {
  const extents: ExtentLocation[] = [];
  let last = from;
  for (const text of texts) {
    const extent = first(await cluster.next(stream, epoch, last));
    unwrap(await cluster.append(extent, epoch, 0n, text));
    extents.push(extent);
    last = extent.extentId;
  }
  return extents;
}

/** Texts of the extents of a stream, in order, as its next owner reads them. */
async function textsOf(cluster: Cluster, stream: string, epoch: number): Promise<readonly string[]> {
  const { extents } = await cluster.open(stream, epoch);
  return Promise.all(
    extents.map(async ({ addresses, extentId, sealedLengthBytes = 0n }) => {
      if (sealedLengthBytes === 0n) return "";
      for (const node of addresses) {
        const read = await cluster.en(node).readBlocks({ extentId, offsetBytes: 0n, maxBytes: 100_000 }, { timeoutMs });
        if (read.ok) return read.value.payload.map((each) => new TextDecoder().decode(each)).join("");
      }
      return "no node has it";
    }),
  );
}

const takenBack = ({ sim }: Cluster): TakenBackRecord => sim.role("sm1")?.status.facts.takenBack as never;

/** Streams `/s` with an extent in the copy of the metadata, and with more that began afterwards. */
async function inScene(cluster: Cluster, work: (scene: { readonly copy: string; readonly last: bigint }) => Promise<void>): Promise<void> {
  await cluster.sim.run(async () => {
    await cluster.open("/s", 1);
    const [extent] = await fill(cluster, "/s", 1, 0n, ["in the copy, "]);
    await cluster.sim.sleep(70_000);
    await work({ copy: await newestCopy(cluster), last: extent?.extentId ?? 0n });
  });
}

const leads = (cluster: Cluster, withinMs = 60_000): Promise<void> =>
  cluster.until("a manager leads by the restored store", async () => takenBack(cluster)?.absent !== undefined, withinMs);

for (const without of [[], ["extentsComeBack"]] satisfies RuleName[][])
  test(`restore: extents that began after the copy ${without.length === 0 ? "come back, sealed, at their places" : "stay in quarantine without the rule"}`, async () => {
    const cluster = new Cluster({ seed: 31, without });
    await inScene(cluster, async ({ copy, last }) => {
      await fill(cluster, "/s", 1, last, ["one", "two", "three"]);
      await cluster.open("/empty", 1);
      await restore(cluster, copy);
      if (without.length > 0) {
        await cluster.until("the restored list is told", async () => (await textsOf(cluster, "/s", 2)).join() === "in the copy, ");
        return;
      }
      await leads(cluster);
      const texts = await textsOf(cluster, "/s", 2);
      assert.deepEqual(texts, ["in the copy, ", "one", "two", "three"]);
      assert.equal(takenBack(cluster).extents, 3);
      assert.equal(takenBack(cluster).lostCount, 0);
      // The owner goes on behind them, and later terms find nothing more to take back.
      const { extents } = await cluster.open("/s", 3);
      await fill(cluster, "/s", 3, extents.at(-1)?.extentId ?? 0n, ["four"]);
      await cluster.sim.stop("sm1");
      cluster.sim.restart("sm1");
      await leads(cluster);
      assert.deepEqual(await textsOf(cluster, "/s", 4), ["in the copy, ", "one", "two", "three", "four"]);
      assert.equal(takenBack(cluster).extents, 3);
      await cluster.until("the replicas are those of the records", async () =>
        (await cluster.extents()).every(({ intactCopies }) => intactCopies >= 2),
      );
    });
  });

test("restore: a stream that began after the copy is there again, with all that was appended to it", async () => {
  const cluster = new Cluster({ seed: 44 });
  await inScene(cluster, async ({ copy, last }) => {
    await cluster.open("/child", 5);
    await fill(cluster, "/child", 5, 0n, ["one", "two"]);
    await fill(cluster, "/s", 1, last, ["three"]);
    await restore(cluster, copy);
    await leads(cluster);
    assert.deepEqual(await textsOf(cluster, "/child", 6), ["one", "two"]);
    assert.deepEqual(await textsOf(cluster, "/s", 2), ["in the copy, ", "three"]);
    assert.equal(takenBack(cluster).lostCount, 0);
  });
});

test("restore: an extent that was made ahead at the copy and opened afterwards comes back; one that was never opened does not", async () => {
  const cluster = new Cluster({ seed: 32 });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const [extent] = await fill(cluster, "/s", 1, 0n, ["in the copy"]);
    unwrap(
      await cluster.sm((sm, left) =>
        sm.allocateAhead({ name: "/s", ownerEpoch: 1n, extentId: extent?.extentId ?? 0n }, { timeoutMs: left }),
      ),
    );
    await sim.sleep(70_000);
    const copy = await newestCopy(cluster);
    const [opened] = await fill(cluster, "/s", 1, extent?.extentId ?? 0n, ["made ahead"]);
    unwrap(
      await cluster.sm((sm, left) =>
        sm.allocateAhead({ name: "/s", ownerEpoch: 1n, extentId: opened?.extentId ?? 0n }, { timeoutMs: left }),
      ),
    );
    await restore(cluster, copy);
    await leads(cluster);
    assert.deepEqual(await textsOf(cluster, "/s", 2), ["in the copy", "made ahead"]);
  });
});

test("restore: with all processes restarted and one node away everything comes back after a grace; what only nodes that are away have is waited for", async () => {
  const cluster = new Cluster({ seed: 33 });
  const { sim } = cluster;
  await inScene(cluster, async ({ copy, last }) => {
    await fill(cluster, "/s", 1, last, ["one", "two"]);
    await sim.stop("sm1");
    await restore(cluster, copy);
    for (const name of nodeNames) await sim.stop(name);
    for (const name of ["sm1", "en1", "en2"]) sim.restart(name);
    await sim.sleep(60_000);
    assert.match(sim.role("sm1")?.status.waitingFor.join() ?? "", /extent nodes, to tell which extents began after the copy.*en3, en4/);
    sim.restart("en3");
    await leads(cluster);
    assert.deepEqual(takenBack(cluster).absent, ["en4"]);
    assert.deepEqual(await textsOf(cluster, "/s", 2), ["in the copy, ", "one", "two"]);
  });
});

test("restore: nodes that stay away are told after ten minutes, and the stamp serves what is there", async () => {
  const cluster = new Cluster({ seed: 34, nodes: ["en1", "en2", "en3", "en4", "en5", "en6"] });
  const { sim } = cluster;
  await inScene(cluster, async ({ copy, last }) => {
    const [lost] = await fill(cluster, "/s", 1, last, ["one", "two"]);
    for (const node of lost?.addresses ?? []) sim.crash(node, { stayDown: true });
    await restore(cluster, copy);
    await leads(cluster, 700_000);
    assert.deepEqual(takenBack(cluster).absent.toSorted(), [...(lost?.addresses ?? [])].toSorted());
    assert.equal(sim.role("sm1")?.status.state, "leader");
  });
});

test("restore: a term that ends while extents come back is repeated by the next one; a second restore from the same copy finds all again", async () => {
  const cluster = new Cluster({ seed: 35 });
  const { sim } = cluster;
  await inScene(cluster, async ({ copy, last }) => {
    const content = present(await sim.world("en1").disk.readWhole(`metadata-copies/${copy}`), "the copy");
    await fill(cluster, "/s", 1, last, ["one", "two"]);
    await sim.stop("sm1");
    await restore(cluster, copy);
    for (let i = 1; i <= 12; i++) {
      sim.restart("sm1");
      await sim.sleep(i * 40);
      sim.crash("sm1", { stayDown: true });
    }
    sim.restart("sm1");
    await leads(cluster);
    const { extents } = await cluster.open("/s", 2);
    await fill(cluster, "/s", 2, extents.at(-1)?.extentId ?? 0n, ["three"]);
    const file = await sim.world("en1").disk.open(`metadata-copies/${copy}`, { create: true });
    await file.write(0, [content]);
    await file.close();
    await restore(cluster, copy);
    await leads(cluster);
    assert.deepEqual(await textsOf(cluster, "/s", 3), ["in the copy, ", "one", "two", "three"]);
  });
});

test("restore: extents that only nodes have that were added after the copy come back", async () => {
  const cluster = new Cluster({ seed: 36 });
  await inScene(cluster, async ({ copy, last }) => {
    for (const name of ["en5", "en6", "en7"]) cluster.addNode(name);
    await cluster.until("the new nodes are up", async () => cluster.sim.role("sm1")?.status.facts.nodesUp === 7);
    const added = first(await cluster.next("/s", 1, last, 0n, nodeNames));
    assert.deepEqual(added.addresses.toSorted(), ["en5", "en6", "en7"]);
    unwrap(await cluster.append(added, 1, 0n, "on new nodes"));
    await restore(cluster, copy);
    await leads(cluster);
    assert.deepEqual(await textsOf(cluster, "/s", 2), ["in the copy, ", "on new nodes"]);
  });
});

test("restore: an extent comes back although the header of each replica was wrong: the check writes it anew", async () => {
  const cluster = new Cluster({ seed: 37 });
  const { sim } = cluster;
  await inScene(cluster, async ({ copy, last }) => {
    const [one] = await fill(cluster, "/s", 1, last, ["one", "two"]);
    await sim.sleep(2_000);
    const hex = (one?.extentId ?? 0n).toString(16).padStart(14, "0");
    for (const node of one?.addresses ?? [])
      for (const at of [0, 4096]) sim.disk(node).corrupt(`extents/${hex.slice(-2)}/${hex}.extent`, at);
    await restore(cluster, copy);
    await leads(cluster);
    assert.deepEqual(await textsOf(cluster, "/s", 2), ["in the copy, ", "one", "two"]);
  });
});

test("restore: extents of the first term after it lie above the floor, also when its lists needed segments", async () => {
  const cluster = new Cluster({ seed: 38 });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    let last = 0n;
    for (let i = 2; i < segmentExtentsMax; i++) last = first(await cluster.next("/s", 1, last)).extentId;
    await sim.sleep(70_000);
    const copy = await newestCopy(cluster);
    await fill(cluster, "/s", 1, last, ["one", "two", "three"]);
    await restore(cluster, copy);
    await leads(cluster);
    const { extents } = await cluster.open("/s", 2);
    assert.ok(extents.length > segmentExtentsMax, "a segment was needed");
    const [after] = await fill(cluster, "/s", 2, extents.at(-1)?.extentId ?? 0n, ["after"]);
    assert.ok(Number(after?.extentId) >= takenBack(cluster).floor, `${after?.extentId} ${takenBack(cluster).floor}`);
  });
});

test("restore: an open extent of the copy that was truncated away and deleted since holds up no stream that went on behind it", async () => {
  const cluster = new Cluster({ seed: 39, config: { deletionGraceMs: 1_000 } });
  const { sim } = cluster;
  await inScene(cluster, async ({ copy, last }) => {
    const [one] = await fill(cluster, "/s", 1, last, ["one", "two"]);
    const truncation = { name: "/s", ownerEpoch: 1n, beforeExtentId: one?.extentId ?? 0n };
    unwrap(await cluster.sm((sm, left) => sm.truncateStream(truncation, { timeoutMs: left })));
    const holders = async () =>
      (await Promise.all(nodeNames.map((node) => cluster.replica(node, last)))).filter((each) => each !== undefined);
    await cluster.until("it is deleted", async () => (await holders()).length === 0, 120_000);
    await restore(cluster, copy);
    await leads(cluster);
    assert.deepEqual(await textsOf(cluster, "/s", 2), ["", "one", "two"]);
    assert.equal(sim.role("sm1")?.status.facts.sealedWithLoss, 1);
  });
});

/** `afterDeletion`: what happens before the copy is restored. The extent was held by these nodes. */
async function keepsNoOwner(seed: number, afterDeletion: (sim: Cluster["sim"], held: readonly string[]) => void): Promise<void> {
  const cluster = new Cluster({ seed, config: { deletionGraceMs: 1_000 } });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const [gone, one] = await fill(cluster, "/s", 1, 0n, ["gone", "one"]);
    await sim.sleep(70_000);
    const holders = async (): Promise<string[]> => {
      const replicas = await Promise.all(nodeNames.map((node) => cluster.replica(node, gone?.extentId ?? 0n)));
      return nodeNames.filter((_, i) => replicas[i] !== undefined);
    };
    const held = await holders();
    const copy = await newestCopy(cluster);
    const truncation = { name: "/s", ownerEpoch: 1n, beforeExtentId: one?.extentId ?? 0n };
    unwrap(await cluster.sm((sm, left) => sm.truncateStream(truncation, { timeoutMs: left })));
    await cluster.until("it is deleted", async () => (await holders()).length === 0, 120_000);
    afterDeletion(sim, held);
    await sim.sleep(10_000);
    await restore(cluster, copy);
    await leads(cluster);
    // The nodes have told by then that they do not have it.
    await sim.sleep(60_000);
    assert.deepEqual(await textsOf(cluster, "/s", 2), ["no node has it", "one"]);
    await sim.stop("sm1");
    sim.restart("sm1");
    await sim.sleep(60_000);
    assert.deepEqual(await textsOf(cluster, "/s", 3), ["no node has it", "one"], "nor under a later leader");
  });
}

test("restore: a sealed extent of the copy that was truncated away and deleted since keeps no owner from its stream", () =>
  keepsNoOwner(41, () => {}));

test("restore: nor does one of which a node has another disk since", () =>
  keepsNoOwner(42, (sim, held) => {
    const name = held.at(-1) as string;
    sim.crash(name, { stayDown: true });
    sim.disk(name).wipe();
    sim.keyValue(name).wipe();
    sim.restart(name);
  }));

test("restore: a stamp that went on by a release that takes nothing back waits for no node", async () => {
  const cluster = new Cluster({ seed: 40, managers: [] });
  const { sim } = cluster;
  let isOld = true;
  cluster.addManager("sm1", {}, (world) => (isOld ? { ...world, rules: rulesWithout("extentsComeBack") } : world));
  await inScene(cluster, async ({ copy }) => {
    await restore(cluster, copy);
    const { extents } = await cluster.open("/s", 2);
    await fill(cluster, "/s", 2, extents.at(-1)?.extentId ?? 0n, ["after the restore"]);
    await sim.stop("sm1");
    for (const node of ["en3", "en4"]) sim.crash(node, { stayDown: true });
    isOld = false;
    sim.restart("sm1");
    await leads(cluster);
    assert.deepEqual([takenBack(cluster).extents, takenBack(cluster).absent], [0, []]);
  });
});
