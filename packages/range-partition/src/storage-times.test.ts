import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import type { Clock } from "@stamp/ports";
import { StorageTimes } from "./index.ts";
import { put, read, Stamp, write } from "./testing/harness.ts";

test("times: parts of transactions, groups, checkpoints and reads that no cache answers are counted where they are spent", async () => {
  let clock: Clock | undefined;
  const times = new StorageTimes({ monotonicMs: () => clock?.monotonicMs() ?? 0 } as Clock);
  const stamp = new Stamp(8, { times, limits: { rowCacheBytesMax: 64 * 1024, checkpointsMax: 3 } });
  clock = stamp.sim.world("server-1").clock;
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    const { turn, decide, commit } = times.phases;
    let holding = true;
    const first = partition.transact(
      put("a", "").key,
      async () => {
        while (holding) await stamp.sim.sleep(100);
        return { writes: [put("a", "1")], result: 0 };
      },
      { timeoutMs: 60_000 },
    );
    const waiting = write(partition, "a", [put("a", "2")]);
    const tooLate = write(partition, "a", [put("a", "3")], 50);
    assert.equal((await tooLate).ok, false);
    assert.ok(turn.count === 2 && turn.recent.p50Ms !== undefined, "also of who got no turn");
    assert.deepEqual([decide.count, commit.count], [0, 0]);
    await stamp.sim.sleep(5_000);
    holding = false;
    unwrap(await first);
    unwrap(await waiting);
    assert.deepEqual([turn.count, decide.count, commit.count, times.append.count], [3, 2, 2, 2]);
    assert.ok(turn.sumMs >= 5_000 && decide.sumMs >= 5_000 && commit.sumMs < 5_000, `${turn.sumMs}, ${decide.sumMs}, ${commit.sumMs}`);
    unwrap(await partition.transact(put("a", "").key, async () => ({ writes: [], result: 0 }), { timeoutMs: 1_000 }));
    assert.deepEqual([turn.count, decide.count, commit.count], [4, 3, 2], "nothing was committed");

    // A plain transaction waits until what was decided before it is durable: that is a part of its turn.
    const decidedMs = decide.sumMs;
    const turnsMs = turn.sumMs;
    const pipelined = partition.transact(put("a", "").key, async () => ({ writes: [put("a", "4")], result: 0 }), {
      timeoutMs: 60_000,
      pipelined: true,
    });
    unwrap(await write(partition, "a", [put("a", "5")]));
    unwrap(await pipelined);
    assert.ok(turn.sumMs > turnsMs, "the commit before took a while");
    assert.equal(decide.sumMs, decidedMs, "deciding took no time");

    for (let part = 0; part < 8; part++) {
      const rows = Array.from({ length: 100 }, (_, i) => put(`${i}-${part}`, "v".repeat(500)));
      unwrap(await write(partition, "all", rows));
      unwrap(await partition.checkpoint());
    }
    assert.equal(times.checkpoints.flush.count, 8);
    const before = times.blockRead.count;
    for (let i = 0; i < 100; i++) assert.equal(await read(partition, `${i}-1`), "v".repeat(500));
    assert.ok(times.blockRead.count > before);
    await stamp.sim.sleep(10_000);
    assert.ok(times.checkpoints.merge.count > 0);
    await partition.close();
  });
});
