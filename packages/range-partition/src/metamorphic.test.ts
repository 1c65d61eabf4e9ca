/** The same operations against a partition with sizes so small that everything happens all the time, and against a plain map. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap, utf8 } from "@stamp/base";
import type { Snapshot } from "./index.ts";
import { put, read, remove, rows, Stamp, write } from "./testing/harness.ts";

type Model = Map<string, string>;

const sorted = (model: Model, from?: string, to?: string): [string, string][] =>
  [...model].filter(([key]) => (from === undefined || key >= from) && (to === undefined || key < to)).sort(([a], [b]) => (a < b ? -1 : 1));

test("range partition: gets, scans and snapshots are those of a map, over checkpoints, merges, take-overs and crashes of nodes", async () => {
  let checkpointed = 0;
  let merged = 0;
  for (let seed = 1; seed <= 8; seed++) {
    const stamp = new Stamp(seed, {
      extentTargetBytes: 6_000,
      restartAfterMs: 300,
      limits: { memoryTableBytesMax: 4_000, logBytesMax: 30_000, rowCacheBytesMax: 3_000, indexCacheBytesMax: 500, checkpointsMax: 3 },
    });
    const { prng } = stamp.sim;
    await stamp.sim.run(async () => {
      let epoch = 1;
      let partition = await stamp.open(epoch);
      const model: Model = new Map();
      const snapshots: { snapshot: Snapshot; model: Model }[] = [];
      const key = (): string => `k${prng.below(40).toString().padStart(2, "0")}`;
      for (let step = 0; step < 350; step++) {
        const dice = prng.below(100);
        if (dice < 60) {
          const writes = Array.from({ length: 1 + prng.below(4) }, () =>
            prng.chance(0.25) ? remove(key()) : put(key(), `${step}`.repeat(1 + prng.below(60))),
          );
          unwrap(await write(partition, "all", writes));
          for (const each of writes) {
            const name = new TextDecoder().decode(each.key);
            if (each.kind === "put") model.set(name, new TextDecoder().decode(each.value));
            else model.delete(name);
          }
        } else if (dice < 75) {
          const name = key();
          assert.equal(await read(partition, name), model.get(name), `seed ${seed} step ${step} get ${name}`);
        } else if (dice < 88) {
          const [a, b] = [key(), key()].sort() as [string, string];
          const reverse = prng.chance(0.5);
          const found = await rows(partition.scan({ gte: utf8(a), lt: utf8(b), reverse }));
          const expected = sorted(model, a, b);
          assert.deepEqual(found, reverse ? expected.reverse() : expected, `seed ${seed} step ${step} scan ${a} ${b} ${reverse}`);
        } else if (dice < 91) {
          snapshots.push({ snapshot: partition.snapshot(), model: new Map(model) });
        } else if (dice < 95) {
          const held = snapshots.splice(0, 1)[0];
          if (held !== undefined) {
            assert.deepEqual(await rows(partition.scan({}, held.snapshot)), sorted(held.model), `seed ${seed} step ${step} snapshot`);
            const backwards = await rows(partition.scan({ reverse: true }, held.snapshot));
            assert.deepEqual(backwards, sorted(held.model).reverse(), `seed ${seed} step ${step} snapshot backwards`);
            for (const [name, value] of held.model) {
              assert.equal(new TextDecoder().decode(await partition.get(utf8(name), held.snapshot)), value);
            }
            held.snapshot.close();
          }
        } else if (dice < 97) {
          stamp.sim.crash(prng.pick(["en1", "en2", "en3", "en4", "sm1"]), { unsynced: "kept" });
        } else if (dice < 98) {
          if (prng.chance(0.5)) await partition.close();
          const { checkpoints } = partition.stats;
          checkpointed = Math.max(checkpointed, checkpoints);
          snapshots.length = 0;
          partition = await stamp.open(++epoch);
        }
        if (partition.stats.checkpoints > 0 && partition.stats.checkpoints < checkpointed) merged += 1;
        checkpointed = Math.max(checkpointed, partition.stats.checkpoints);
        assert.ok(partition.stats.memoryTableBytes < 30_000, `${partition.stats.memoryTableBytes} bytes in memory`);
        assert.ok(partition.stats.cacheBytes <= 3_000);
      }
      partition = await stamp.open(++epoch);
      assert.deepEqual(await rows(partition.scan({})), sorted(model), `seed ${seed} at the end`);
    });
  }
  assert.ok(checkpointed >= 2 && merged > 0, "the sizes made checkpoints and merges happen");
});
