/** Blob data while a range is split: the parent takes it until rows are about to wait, then the child that holds the blob's key appends it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules } from "@stamp/base";
import { routeOf } from "@stamp/objects";
import { PartitionManager, PartitionServer } from "@stamp/wire";
import { blob, Client, cluster, serveable } from "../testing/moves-harness.ts";

const timeoutMs = 10_000;
const allocateMs = 1_500;

test("split: while the first extents of the heirs are made blob data do not wait; after it whoever knows only the parent is served by the heir", async () => {
  const { sim, streams } = cluster(3, allRules, ["pm-1"]);
  streams.neverLate = true;
  await sim.run(async () => {
    const [client, operator] = [new Client(sim, "client-1"), new Client(sim, "client-2")];
    await serveable(sim, client);
    await operator.refresh();
    const parent = operator.ranges.find(({ table }) => table === "Blob");
    assert.ok(parent);
    assert.equal(await client.write(1, ""), "done", "a range that is written to");
    streams.allocateMs = allocateMs;
    const key = (container: string) =>
      routeOf(sim.rules, { case: "getBlob", value: { name: { ...blob, container } } } as Parameters<typeof routeOf>[1]).key;
    const { transport } = sim.world("client-3");
    const server = transport.client(parent.serverAddress, PartitionServer);
    const manager = transport.client("pm-1", PartitionManager);
    const append = async (container: string): Promise<{ taken: boolean; tookMs: number }> => {
      const sinceMs = sim.nowMs;
      const request = { rangeId: parent.rangeId, rangeVersion: parent.rangeVersion, payload: new Uint8Array(10) };
      const answer = await server.writeData({ ...request, key: container === "" ? new Uint8Array(0) : key(container) }, { timeoutMs });
      return { taken: answer.ok, tookMs: sim.nowMs - sinceMs };
    };
    let over = false;
    const split = manager.splitPartition({ rangeId: parent.rangeId, atKey: key("b") }, { timeoutMs: 30_000 }).finally(() => {
      over = true;
    });
    await sim.sleep(200);
    for (let sinceMs = sim.nowMs; sim.nowMs - sinceMs < allocateMs - 500; await sim.sleep(100)) {
      assert.ok(!over);
      const { taken, tookMs } = await append("a");
      assert.ok(taken && tookMs < 300, `${tookMs} ms while it is prepared`);
    }
    await split;
    const loads = streams.loads;
    for (const container of ["a", "c"]) assert.ok((await append(container)).taken, container);
    assert.equal((await append("")).taken, false, "who does not say the key has to look at the map");
    assert.equal(streams.loads, loads);
  });
});
