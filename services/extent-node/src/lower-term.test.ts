/** A node that learned a term which no leader can ever have obeys the lock service's leader again when a person says so. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { extentNodeSchema } from "./config.ts";
import { ExtentNodeRole } from "./extent-node.ts";
import { Cluster, pattern, reasonOf } from "./testing/harness.ts";

const far = Number.MAX_SAFE_INTEGER;

/** One node, and how it starts the next time. */
class OneNode extends Cluster {
  takeLowerTerm = "false";

  constructor(seed: number) {
    super(seed, { nodes: [] });
    this.sim.addProcess("en-1", (world) => {
      const { takeLowerTerm } = this;
      const base = { name: "en-1", listen: "en-1", lockService: "lock", journalSegmentBytes: 1 << 20, appendBytesMax: 900_000 };
      return new ExtentNodeRole(world, extentNodeSchema.parse({ ...base, metadataCopyEveryMs: 1_000, takeLowerTerm }));
    });
  }

  async again(takeLowerTerm: boolean): Promise<void> {
    this.takeLowerTerm = String(takeLowerTerm);
    this.sim.crash("en-1", { unsynced: "lost", stayDown: true });
    this.sim.restart("en-1");
    await this.ready("en-1");
  }

  /** Makes the node record this term, as if the lock service had given it. */
  async learnFarTerm(id: number): Promise<void> {
    this.smTerm = far;
    unwrap(await this.fence("en-1", id));
    this.smTerm = 12;
  }
}

test("lower term: a node with an unreachable term obeys nobody, until it is started with takeLowerTerm; then as before, for ever", async () => {
  const cluster = new OneNode(1);
  await cluster.run(async () => {
    await cluster.ready("en-1");
    const id = await cluster.create(["en-1"]);
    await cluster.learnFarTerm(id);
    assert.equal(reasonOf(await cluster.fence("en-1", id)), "staleTerm");
    await cluster.again(false);
    assert.equal(reasonOf(await cluster.fence("en-1", id)), "staleTerm");

    await cluster.again(true);
    assert.equal(cluster.facts("en-1").smTerm, 12);
    unwrap(await cluster.fence("en-1", id));
    assert.equal(reasonOf(await cluster.fence("en-1", id, 11)), "staleTerm", "an older leader is refused as ever");
    assert.equal(reasonOf(await cluster.fence("en-1", id, far)), "badRequest");

    for (let i = 0; i < 3; i++) {
      await cluster.again(false);
      assert.equal(cluster.facts("en-1").smTerm, 12 + i);
      cluster.smTerm += 1;
      unwrap(await cluster.fence("en-1", id));
      // Every segment is used again, so that the headers alone carry the term.
      const filled = await cluster.create(["en-1"]);
      let end = 0;
      for (let k = 0; k < 12; k++) end = Number(unwrap(await cluster.append("en-1", filled, end, [pattern(400_000, k)])).endBytes);
    }
    cluster.sim.keyValue("en-1").drop("extents");
    await cluster.again(false);
    assert.equal(cluster.facts("en-1").smTerm, 15, "also with its table rebuilt");
  });
});

test("lower term: it can be lowered twice, and a start with the setting and without need changes nothing", async () => {
  const cluster = new OneNode(2);
  await cluster.run(async () => {
    await cluster.ready("en-1");
    const id = await cluster.create(["en-1"]);
    for (let i = 0; i < 2; i++) {
      await cluster.learnFarTerm(id);
      await cluster.again(true);
      assert.equal(cluster.facts("en-1").smTerm, 12);
    }
    await cluster.again(true);
    await cluster.again(false);
    assert.equal(cluster.facts("en-1").smTerm, 12);
    unwrap(await cluster.fence("en-1", id));
  });
});

test("lower term: a node whose copy of the metadata is newer than the store refuses: the store must be restored, not believed", async () => {
  const cluster = new OneNode(3);
  cluster.metadataVersion = 100;
  cluster.storeVersion = 100;
  await cluster.run(async () => {
    await cluster.ready("en-1");
    const id = await cluster.create(["en-1"]);
    await cluster.learnFarTerm(id);
    const copied = (): unknown => (cluster.facts("en-1").metadataCopy as { version?: number } | undefined)?.version;
    await cluster.sim.until(() => copied() === 100, 10_000, "a copy is kept");
    cluster.storeVersion = 90;
    cluster.takeLowerTerm = "true";
    cluster.sim.crash("en-1", { unsynced: "lost" });
    cluster.sim.restart("en-1");
    await cluster.sim.until(() => cluster.sim.role("en-1")?.status.state === "refusing", 10_000, "it refuses");
    assert.match(cluster.sim.role("en-1")?.status.waitingFor[0] ?? "", /at transaction 90, this node has a copy of 100/);
    cluster.storeVersion = 101;
    await cluster.again(true);
    assert.equal(cluster.facts("en-1").smTerm, 12);
  });
});
