import assert from "node:assert/strict";
import { test } from "node:test";
import type { Histogram } from "@stamp/base";
import { unwrap } from "@stamp/base";
import { Cluster, first } from "./testing/cluster.ts";

test("times: seals and allocations are counted when they are done, with what a dead replica cost", async () => {
  const cluster = new Cluster({ nodes: ["en1", "en2", "en3", "en4"], managers: ["sm1"] });
  const { sim } = cluster;
  await sim.run(async () => {
    const times = () => sim.role("sm1")?.status.facts as { readonly seals: Histogram; readonly allocations: Histogram };
    await cluster.open("/s", 1);
    await sim.sleep(3_500);
    const extent = first(await cluster.next("/s", 1, 0n));
    assert.equal(times().seals.count, 0);
    const allocated = times().allocations.count;
    assert.ok(allocated > 0);
    const { endBytes } = unwrap(await cluster.append(extent, 1, 0n, "acknowledged"));
    sim.crash(extent.addresses[1] ?? "", { stayDown: true });
    await cluster.next("/s", 1, extent.extentId, endBytes);
    const { seals, allocations } = times();
    assert.equal(seals.count, 1);
    assert.ok(seals.sumMs > 0 && allocations.count > allocated);
  });
});
