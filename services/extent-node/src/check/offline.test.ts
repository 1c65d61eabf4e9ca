/** A node's disk while the node does not run: what the check says of each damage, and the table made anew. On the simulated disk. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import type { World } from "@stamp/ports";
import { Cluster, names, pattern, reasonOf } from "../testing/harness.ts";
import { checkDisk, rebuildDisk } from "./offline.ts";

interface Scene {
  readonly cluster: Cluster;
  /** A world on the disk of en-2, which does not run. */
  readonly world: World;
  readonly sealed: { readonly id: number; readonly end: number; readonly place: bigint; readonly path: string }[];
  readonly open: { readonly id: number; readonly end: number };
}

async function scene(seed: number, work: (scene: Scene) => Promise<void>): Promise<void> {
  const cluster = new Cluster(seed, { config: { scrubBytesPerSecond: 0 } });
  await cluster.run(async () => {
    await cluster.allReady();
    const sealed: Scene["sealed"][number][] = [];
    for (let i = 0; i < 4; i++) {
      const id = await cluster.create();
      const answer = unwrap(await cluster.append("en-1", id, 0, [pattern(30_000, i)]));
      const end = Number(answer.endBytes);
      for (const name of names) unwrap(await cluster.seal(name, id, end));
      const path = `extents/${id.toString(16).padStart(2, "0")}/${id.toString(16).padStart(14, "0")}.extent`;
      sealed.push({ id, end, place: answer.offsetsBytes[0] as bigint, path });
    }
    const id = await cluster.create();
    const { endBytes } = unwrap(await cluster.append("en-1", id, 0, [pattern(5_000, 9)]));
    await cluster.sim.sleep(1_000);
    await cluster.sim.stop("en-2");
    await work({ cluster, world: cluster.sim.offline("en-2"), sealed, open: { id, end: Number(endBytes) } });
  });
}

test("fsck of a stopped node: a whole disk has no problems, also after a crash with data only in the journal", async () => {
  await scene(81, async ({ cluster, world, sealed, open }) => {
    const checked = await checkDisk({ world, nodeId: "en-2" }, true);
    assert.deepEqual([checked.problems, checked.replicas.length], [[], 5]);
    assert.equal(checked.replicas.find((each) => each.extentId === open.id)?.durableBytes, open.end);
    cluster.sim.restart("en-2");
    await cluster.ready("en-2");
    unwrap(await cluster.seal("en-2", open.id, open.end));
    cluster.sim.crash("en-2", { unsynced: "lost", stayDown: true });
    const again = await checkDisk({ world: cluster.sim.offline("en-2"), nodeId: "en-2" }, true);
    assert.deepEqual(again.problems, []);
    assert.equal(again.replicas.find((each) => each.extentId === open.id)?.state, "sealed", "as the journal says");
    assert.equal(sealed.length, 4);
  });
});

test("fsck of a stopped node: each damage is named, and the others are not", async () => {
  await scene(82, async ({ cluster, world, sealed }) => {
    const disk = cluster.sim.disk("en-2");
    const [rot, cut, gone, headless] = sealed as [(typeof sealed)[0], (typeof sealed)[0], (typeof sealed)[0], (typeof sealed)[0]];
    disk.corrupt(rot.path, 8192 + 20_000);
    disk.get(cut.path)?.setSize(8192 + cut.end - 1);
    disk.remove(gone.path);
    for (const at of [0, 4096]) disk.corrupt(headless.path, at);
    disk.create("extents/zz/notes.txt");
    const shallow = await checkDisk({ world, nodeId: "en-2" }, false);
    const said = (checked: typeof shallow): string[] =>
      checked.problems.map(({ kind, extentId, what }) => `${kind} ${extentId ?? ""} ${what}`);
    assert.ok(!said(shallow).some((each) => each.startsWith(`replica ${rot.id}`)), "not without reading");
    assert.ok(said(shallow).some((each) => each.startsWith(`replica ${cut.id} its file ends at`)));
    assert.ok(said(shallow).some((each) => each === `replica ${gone.id} its file is gone`));
    assert.ok(said(shallow).some((each) => each.startsWith(`replica ${headless.id} its header can't be read`)));
    assert.ok(said(shallow).some((each) => each.includes("extents/zz/notes.txt")));
    const deep = await checkDisk({ world, nodeId: "en-2" }, true);
    assert.ok(
      said(deep).some((each) => each.startsWith(`replica ${rot.id} at 0: frame payload checksum`)),
      said(deep).join("\n"),
    );
    assert.equal(deep.problems.length, shallow.problems.length + 1);
  });
});

test("fsck --rebuild: the table is made anew from files and journal, and the node obeys nobody before it knows the term", async () => {
  await scene(83, async ({ cluster, world, sealed, open }) => {
    cluster.sim.keyValue("en-2").wipe();
    const before = await checkDisk({ world, nodeId: "en-2" }, true);
    assert.deepEqual(
      before.problems.map((each) => each.kind),
      ["table"],
    );
    const rebuilt = unwrap(await rebuildDisk({ world, nodeId: "en-2" }));
    assert.deepEqual([rebuilt.extents, rebuilt.damaged], [5, 0]);
    assert.deepEqual((await checkDisk({ world, nodeId: "en-2" }, true)).problems, []);
    // The lock service does not answer: the node is not ready, however often it is started.
    cluster.smTerm = 12;
    cluster.sim.partition(["en-2"], ["lock"]);
    for (let i = 0; i < 2; i++) {
      cluster.sim.restart("en-2");
      await cluster.sim.until(async () => reasonOf(await cluster.fence("en-2", open.id, 11)) === "notReady", 30_000, "it waits");
      await cluster.sim.sleep(3_000);
      assert.equal(reasonOf(await cluster.fence("en-2", open.id, 11)), "notReady");
      cluster.sim.crash("en-2", { unsynced: "lost", stayDown: true });
      await cluster.sim.sleep(20);
    }
    cluster.sim.heal();
    cluster.sim.restart("en-2");
    await cluster.ready("en-2");
    assert.equal(cluster.facts("en-2").tableRebuilt, false, "it was made by fsck");
    assert.equal(reasonOf(await cluster.fence("en-2", open.id, 11)), "staleTerm");
    for (const { id, place } of sealed) unwrap(await cluster.read("en-2", id, place, 30_000));
    assert.equal(Number(unwrap(await cluster.fence("en-2", open.id)).durableBytes), open.end);
  });
});
