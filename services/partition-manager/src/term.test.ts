/** A term ends when it is said to, whatever is under way in it: until then nobody else may lead. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, unwrap } from "@stamp/base";
import { encodeMapRow, mapKey } from "@stamp/partition-map";
import { sleep } from "@stamp/ports";
import { Simulation } from "@stamp/simulator";
import { partitionManagerConfigSchema } from "./config.ts";
import { Term } from "./term.ts";
import { rangeOf, surroundings } from "./term-harness.test.ts";

test("term: it is over at once, also while a split by itself waits for its server", async () => {
  const sim = new Simulation({ seed: 2 });
  await sim.run(async () => {
    const around = await surroundings(sim);
    const { world, store, table, fence, answers, asked } = around;
    const busy = rangeOf("Entity", "entity-1");
    unwrap(await table.write([{ key: mapKey(busy), value: encodeMapRow(busy) }]));
    const figures = { rangeId: busy.rangeId, ownerEpoch: 1n, state: "serving", ageMs: 60_000n, load: { writesPerSecond: 1_000 } };
    answers["ps-1"] = {
      listPartitions: async () => ok({ partitions: [figures] }),
      reshapePartitions: async () => {
        await sleep(world.clock, 50_000);
        return ok({});
      },
    };
    const config = partitionManagerConfigSchema.parse({
      lockService: "lock",
      accounts: [],
      balanceEveryMs: 1_000,
      balanceRestMs: 1,
      splitRequestsPerSecond: 500,
    });
    const term = new Term(world, config, { store, openTable: async () => ok(table), fence }, 1);
    const over = term.run();
    await sim.until(async () => asked.includes("ps-1 reshapePartitions entity-1"), 30_000, "a split by itself");
    const sinceMs = world.clock.monotonicMs();
    term.end("the map was not written");
    assert.equal(await over, "the map was not written");
    assert.ok(world.clock.monotonicMs() - sinceMs < 5_000, `after ${world.clock.monotonicMs() - sinceMs} ms`);
  });
});
