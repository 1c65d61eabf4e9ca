/** Holdings of a server while a split is on its way, and when it holds as many ranges as it may. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, ok, type Rules, rulesWithout, unwrap, utf8 } from "@stamp/base";
import { childRanges, firstRangeOf, type Range, splitRecord } from "@stamp/partition-map";
import { sleep } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import type { Engines, RangeEngine } from "../operations/engine.ts";
import { TestStreams } from "../testing/streams.ts";
import { Holdings, heldMax } from "./holdings.ts";

const command = (range: Range) => ({ pmTerm: 1, leaseEpoch: 1, rangeId: range.rangeId, ownerEpoch: range.ownerEpoch });
const parent: Range = { ...firstRangeOf("Entity"), ownerEpoch: 1 };
const record = unwrap(splitRecord(parent, utf8("m"), [2, 3]));
const children = childRanges([record], true);

async function servesAfterClose(rules: Rules, closed: Range): Promise<boolean> {
  const sim = new Simulation({ seed: 1, rules });
  return sim.run(async () => {
    const world = sim.world("ps-1");
    // It happens, and this server never hears of it.
    const made = new TestStreams().engines(world);
    const never = { handOver: () => new Promise<never>(() => {}) };
    const engines: Engines = { ...made, handoff: (...those) => Object.assign(made.handoff(...those), never) };
    const holdings = new Holdings(world, engines);
    holdings.leaseTaken(1);
    unwrap(await holdings.load(command(parent), parent));
    void holdings.reshape({ pmTerm: 1, leaseEpoch: 1 }, [parent], children, world.clock.monotonicMs() + 60_000);
    await sleep(world.clock, 1_000);
    assert.ok(holdings.serving(parent.rangeId, parent.rangeVersion).ok, "it still believes to serve the parent");
    unwrap(await holdings.close(command(closed)));
    return holdings.serving(parent.rangeId, parent.rangeVersion).ok;
  });
}

test("holdings: Closed of a child, never loaded here, is not said while its parent is served (rule childEndsParents)", async () => {
  const other = { ...firstRangeOf("Blob"), ownerEpoch: 4 };
  for (const child of children) assert.equal(await servesAfterClose(allRules, child), false, child.rangeId);
  assert.equal(await servesAfterClose(allRules, other), true, "another range says nothing of it");
  assert.equal(await servesAfterClose(rulesWithout("childEndsParents"), children[0] as Range), true);
});

test("holdings: a server that is full refuses one more, and says of those that it holds that it does", async () => {
  const sim = new Simulation({ seed: 1 });
  await sim.run(async () => {
    const world = sim.world("ps-1");
    const streams = new TestStreams().engines(world);
    const engine = { close: async () => {} } as RangeEngine;
    const holdings = new Holdings(world, { ...streams, load: async () => ok(engine) });
    holdings.leaseTaken(1);
    const ranges = Array.from({ length: heldMax + 1 }, (_, i): Range => {
      const key = (n: number) => utf8(String(n).padStart(6, "0"));
      return { ...parent, rangeId: `entity-${i}`, low: key(i), high: key(i + 1) };
    });
    const more = ranges.pop() as Range;
    for (const loaded of await Promise.all(ranges.map((range) => holdings.load(command(range), range)))) unwrap(loaded);
    const refused = await holdings.load(command(more), more);
    assert.equal(refused.ok || refused.failure.reason, "overloaded");
    const [first] = ranges as [Range];
    unwrap(await holdings.load(command(first), first));
    unwrap(await holdings.load({ ...command(first), ownerEpoch: 9 }, { ...first, ownerEpoch: 9 }));
    assert.equal(holdings.all.length, heldMax);
  });
});

test("holdings: what the cache has of a range is forgotten when it goes elsewhere, not when the lease is lost: it mostly comes back", async () => {
  const sim = new Simulation({ seed: 1 });
  await sim.run(async () => {
    const world = sim.world("ps-1");
    const forgotten: string[] = [];
    const load: Engines["load"] = async ({ rangeId }) =>
      ok({ close: async () => {}, forgetCached: async () => void forgotten.push(rangeId) } as unknown as RangeEngine);
    const holdings = new Holdings(world, { ...new TestStreams().engines(world), load });
    const [moved, kept] = [parent, { ...firstRangeOf("Blob"), ownerEpoch: 4 }];
    holdings.leaseTaken(1);
    for (const range of [moved, kept]) unwrap(await holdings.load(command(range), range));
    unwrap(await holdings.close(command(moved)));
    holdings.leaseLost();
    await sleep(world.clock, 1_000);
    assert.deepEqual(forgotten, [moved.rangeId]);
  });
});

test("holdings: a second load under the same owner epoch with another range version ends that epoch here (rule epochHasOneVersion)", async () => {
  for (const rules of [allRules, rulesWithout("epochHasOneVersion")]) {
    const sim = new Simulation({ seed: 1, rules });
    await sim.run(async () => {
      const world = sim.world("ps-1");
      const load: Engines["load"] = async () => ok({ close: async () => {} } as RangeEngine);
      const holdings = new Holdings(world, { ...new TestStreams().engines(world), load });
      holdings.leaseTaken(1);
      const far = { ...parent, rangeVersion: Number.MAX_SAFE_INTEGER };
      unwrap(await holdings.load(command(far), far));
      unwrap(await holdings.load(command(far), far));
      const real = await holdings.load(command(parent), parent);
      if (!rules.on("epochHasOneVersion")) {
        assert.ok(real.ok && !holdings.serving(parent.rangeId, parent.rangeVersion).ok, "the manager believes that it is served");
        return;
      }
      assert.ok(!real.ok && real.failure.reason === "staleOwnerEpoch" && real.failure.details?.closedEpoch === "1");
      const again = { ...parent, ownerEpoch: 2 };
      unwrap(await holdings.load(command(again), again));
      assert.ok(holdings.serving(parent.rangeId, parent.rangeVersion).ok);
    });
  }
});
