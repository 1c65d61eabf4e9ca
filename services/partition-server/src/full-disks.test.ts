/** Full extent nodes and the real partition layer over them: what is served stays served. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8 } from "@stamp/base";
import type { Simulation } from "@stamp/virtual-time";
import { PartitionManager, type RangePartition } from "@stamp/wire";
import { Client, container1, name, stamp } from "./testing/stack-harness.ts";

const nodes = ["en-1", "en-2", "en-3", "en-4"];

async function mapOf(sim: Simulation): Promise<readonly RangePartition[]> {
  const map = await sim.world("client").transport.client("pm", PartitionManager).getMap({}, { timeoutMs: 1_000 });
  return map.ok ? map.value.ranges : [];
}

/** Until they are given back their room. */
function fill(sim: Simulation): () => void {
  const roomy = nodes.map((node) => sim.disk(node).options);
  for (const node of nodes) sim.disk(node).options = { ...sim.disk(node).options, totalBytes: sim.disk(node).usedBytes() };
  return () => {
    for (const [i, node] of nodes.entries()) sim.disk(node).options = roomy[i] as (typeof roomy)[number];
  };
}

test("full disks: ranges are not evened out over a server that joins before there is room, and reads go on", async () => {
  const sim = stamp(7);
  await sim.run(async () => {
    const client = new Client(sim);
    const incarnation = await container1(client);
    const blob = { name: name("a", incarnation), conditions: {} };
    const put = await client.execute({ case: "putBlob", value: { ...blob, body: { inline: utf8("kept") } } });
    assert.equal(put.case, "blob");
    sim.crash("ps-2", { stayDown: true });
    const atOne = async (): Promise<boolean> => {
      const ranges = await mapOf(sim);
      return ranges.length > 0 && ranges.every(({ server, loaded }) => server === "ps-1" && loaded);
    };
    await sim.until(atOne, 60_000, "one has all");
    const empty = fill(sim);
    await sim.sleep(10_000);
    sim.restart("ps-2");
    await sim.sleep(30_000);
    assert.ok(await atOne());
    const plan = await sim.world("client").transport.client("pm", PartitionManager).getRebalancePlan({}, { timeoutMs: 1_000 });
    assert.match(plan.ok ? plan.value.waitsFor.join() : plan.failure.message, /^0 of 4 extent nodes/);
    const got = await client.execute({ case: "getBlob", value: blob });
    assert.equal(got.case, "content");
    empty();
    const evened = async (): Promise<boolean> => {
      const ranges = await mapOf(sim);
      return ranges.filter(({ server }) => server === "ps-2").length === ranges.length / 2 && ranges.every(({ loaded }) => loaded);
    };
    await sim.until(evened, 60_000, "evened out");
  });
});
