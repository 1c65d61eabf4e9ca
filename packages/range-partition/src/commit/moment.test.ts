/** Moments of a range: what began before is in the log, or came to nothing. Last Sync Time is told by them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap, utf8 } from "@stamp/base";
import { put, Stamp, write } from "../testing/harness.ts";

test("moments: a transaction in progress holds the time at its begin, and lets it go when it is durable", async () => {
  const stamp = new Stamp(5);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    const { clock } = stamp.sim.world("server-1");
    unwrap(await write(partition, "l", [put("k", "1")]));
    const { sequence } = partition.stats;
    assert.equal(partition.stats.overBeforeMs, clock.wallMs());
    const beganMs = clock.wallMs();
    const beganMonotonicMs = clock.monotonicMs();
    assert.equal(partition.stats.overBeforeMonotonicMs, beganMonotonicMs);
    const decide = Promise.withResolvers<void>();
    const slow = partition.transact(
      utf8("slow"),
      async () => {
        await decide.promise;
        return { writes: [put("s", "1")], result: undefined };
      },
      { timeoutMs: 10_000 },
    );
    await stamp.sim.sleep(500);
    unwrap(await write(partition, "l", [put("k", "2")]));
    assert.deepEqual([partition.stats.sequence, partition.stats.overBeforeMs], [sequence + 1, beganMs]);
    assert.equal(partition.stats.overBeforeMonotonicMs, beganMonotonicMs);
    decide.resolve();
    unwrap(await slow);
    assert.deepEqual([partition.stats.sequence, partition.stats.overBeforeMs], [sequence + 2, clock.wallMs()]);
    const refused = partition.transact(utf8("slow"), async () => ({ writes: [], result: undefined }), { timeoutMs: 10_000 });
    unwrap(await refused);
    assert.equal(partition.stats.sequence, sequence + 2);
  });
});
