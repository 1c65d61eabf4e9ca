/** Reports with numbers that their node never had, sent to the leading stream manager: the node is asked, and keeps its place. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RuleName } from "@stamp/base";
import { unwrap } from "@stamp/base";
import { type NodeReport, toWire } from "@stamp/wire";
import { Cluster, first, nodeNames } from "../testing/cluster.ts";

const timeoutMs = 5_000;
const maximum = toWire(Number.MAX_SAFE_INTEGER);

class Stamp extends Cluster {
  /** Returns a node's report; a test changes it. */
  async reportOf(node: string): Promise<NodeReport> {
    const smTerm = toWire(Number(this.sim.role("sm1")?.status.facts.term));
    return unwrap(await this.en(node).getNodeReport({ smTerm }, { timeoutMs }));
  }

  async send(report: NodeReport, more: Partial<NodeReport>): Promise<string> {
    const answer = await this.sm((sm, left) => sm.reportNode({ ...report, ...more }, { timeoutMs: left }), timeoutMs);
    return answer.ok ? "ok" : answer.failure.reason;
  }

  async incarnation(node: string): Promise<bigint | undefined> {
    const { nodes } = unwrap(await this.sm((sm, left) => sm.listNodes({}, { timeoutMs: left })));
    return nodes.find(({ nodeId }) => nodeId === node)?.incarnation;
  }

  get down(): unknown {
    return this.sim.role("sm1")?.status.facts.nodesDown;
  }

  /** All four nodes stay up for longer than a node without reports is taken for up. */
  async staysUp(): Promise<void> {
    for (let i = 0; i < 10; i++) {
      await this.sim.sleep(1_000);
      assert.deepEqual(this.down, []);
    }
  }
}

async function started(body: (cluster: Stamp) => Promise<void>, without: RuleName[] = []): Promise<void> {
  const cluster = new Stamp({ without, seed: 31 });
  await cluster.sim.run(async () => {
    await cluster.open("/s", 1);
    await cluster.sim.sleep(2_000);
    await body(cluster);
  });
}

test("far reports: an incarnation or report number at its maximum is refused, and each node stays in its place, through restarts", () =>
  started(async (cluster) => {
    const { sim } = cluster;
    for (const node of nodeNames) {
      const report = await cluster.reportOf(node);
      assert.equal(await cluster.send(report, { incarnation: maximum, reportNumber: 1n }), "badRequest");
      assert.equal(await cluster.send(report, { reportNumber: maximum }), "badRequest");
      assert.equal(await cluster.send(report, { incarnation: maximum, reportNumber: maximum }), "badRequest");
      assert.equal(await cluster.incarnation(node), report.incarnation);
    }
    await cluster.staysUp();
    for (const name of ["lock", "sm1", ...nodeNames]) sim.crash(name);
    for (const name of ["lock", "sm1", ...nodeNames]) sim.restart(name);
    await cluster.until("it serves again", async () => (await cluster.tryOpen("/s", 2, 2_000)).ok);
    await cluster.staysUp();
    first(await cluster.next("/s", 2, 0n));
  }));

test("far reports: one a little ahead displaces a node's own reports only until the node is asked", () =>
  started(async (cluster) => {
    const report = await cluster.reportOf("en1");
    assert.equal(await cluster.send(report, { incarnation: report.incarnation + 16n, reportNumber: 900n }), "ok");
    assert.equal(await cluster.incarnation("en1"), report.incarnation + 16n);
    await cluster.until("the node's own is recorded", async () => (await cluster.incarnation("en1")) === report.incarnation, 3_000);
    const now = await cluster.reportOf("en1");
    assert.equal(await cluster.send(now, { reportNumber: now.reportNumber + 900n }), "ok");
    await cluster.staysUp();
  }));

test("far reports: a number that can't be checked is refused; the node's place is kept until it answers", () =>
  started(async (cluster) => {
    const { sim } = cluster;
    const report = await cluster.reportOf("en1");
    sim.crash("en1", { stayDown: true });
    assert.equal(await cluster.send(report, { incarnation: maximum }), "notReady");
    sim.restart("en1");
    await cluster.until("it is back", async () => (await cluster.incarnation("en1")) === report.incarnation + 1n);
  }));

test("far reports: a node that started 40 times while no manager led comes back", () =>
  started(async (cluster) => {
    const { sim } = cluster;
    const { incarnation } = await cluster.reportOf("en1");
    await sim.stop("sm1");
    for (let i = 0; i < 40; i++) {
      await sim.stop("en1");
      sim.restart("en1");
      await sim.sleep(200);
    }
    sim.restart("sm1");
    await cluster.until("it is back", async () => (await cluster.incarnation("en1")) === incarnation + 40n);
    await cluster.staysUp();
  }));

test("far reports: if the recorded address is not the node's, the node is asked at the address that it reports", () =>
  started(async (cluster) => {
    const report = await cluster.reportOf("en1");
    assert.equal(await cluster.send(report, { incarnation: report.incarnation + 1n, address: "en2" }), "ok");
    await cluster.until("the node's own is recorded", async () => (await cluster.incarnation("en1")) === report.incarnation, 5_000);
    await cluster.staysUp();
  }));

test("far reports: without the rule one report at the maximum locks the node out", () =>
  started(
    async (cluster) => {
      const { sim } = cluster;
      const report = await cluster.reportOf("en1");
      assert.equal(await cluster.send(report, { incarnation: maximum }), "ok");
      await sim.sleep(10_000);
      assert.deepEqual(cluster.down, ["en1"]);
      sim.crash("en1");
      sim.restart("en1");
      await sim.sleep(10_000);
      assert.deepEqual(cluster.down, ["en1"]);
    },
    ["reportsVouched"],
  ));

test("far reports: copies of the metadata that no node has are not counted; without the rule two such reports end the service", async () => {
  for (const without of [[], ["reportsVouched"]] satisfies RuleName[][]) {
    await started(async (cluster) => {
      const answers: string[] = [];
      for (const node of nodeNames) answers.push(await cluster.send(await cluster.reportOf(node), { metadataVersion: maximum }));
      await cluster.sim.sleep(5_000);
      const expected = without.length === 0 ? "leader" : "damaged";
      assert.equal(cluster.sim.role("sm1")?.status.state, expected, answers.join());
      if (without.length === 0) assert.deepEqual(new Set(answers), new Set(["badRequest"]));
    }, without);
  }
});
