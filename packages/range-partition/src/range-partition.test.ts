import assert from "node:assert/strict";
import { test } from "node:test";
import { FailureError, type Outcome, ownerEpoch, type RuleName, unwrap, utf8 } from "@stamp/base";
import { StreamClient } from "@stamp/stream-client";
import type { RangePartition } from "./index.ts";
import { nodeNames, put, read, remove, rows, Stamp, write } from "./testing/harness.ts";

async function increment(partition: RangePartition, key: string, timeoutMs = 60_000): Promise<Outcome<number>> {
  return partition.transact(
    utf8(key),
    async (tx) => {
      const held = await tx.get(utf8(key));
      const next = Number(held ? new TextDecoder().decode(held) : 0) + 1;
      return { writes: [put(key, `${next}`)], result: next };
    },
    { timeoutMs },
  );
}

test("range partition: transactions of one lock key run one after another, those of others share commit records", async () => {
  const stamp = new Stamp(1);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    const results = await Promise.all(Array.from({ length: 200 }, (_, i) => increment(partition, `k${i % 10}`)));
    assert.deepEqual(
      results.map((outcome) => unwrap(outcome)).sort((a, b) => a - b),
      Array.from({ length: 200 }, (_, i) => 1 + Math.floor(i / 10)),
    );
    for (let i = 0; i < 10; i++) assert.equal(await read(partition, `k${i}`), "20");
    const { commits, groups, sequence } = partition.stats;
    assert.equal(commits, 200);
    assert.equal(sequence, 200);
    assert.ok(groups <= 40, `${groups} records for 20 rounds of 10`);
  });
});

test("range partition: a number given to a transaction is never given again, also after a take-over", async () => {
  const stamp = new Stamp(2);
  await stamp.sim.run(async () => {
    const seen = new Set<number>();
    for (let epoch = 1; epoch <= 4; epoch++) {
      const partition = await stamp.open(epoch);
      const last = Math.max(0, ...seen);
      const numbers = (await Promise.all(Array.from({ length: 20 }, (_, i) => write(partition, `l${i}`, [put(`k${i}`, "v")])))).map(unwrap);
      for (const number of numbers) {
        assert.ok(!seen.has(number) && number > last);
        seen.add(number);
      }
    }
  });
});

test("range partition: a decision without writes appends nothing; one that throws lets the next one in", async () => {
  const stamp = new Stamp(3);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await write(partition, "l", [put("a", "1")]));
    const { groups } = partition.stats;
    assert.equal(unwrap(await partition.transact(utf8("l"), async () => ({ writes: [], result: 7 }), { timeoutMs: 1_000 })), 7);
    assert.equal(partition.stats.groups, groups);
    const failed = await partition.transact(
      utf8("l"),
      () => Promise.reject(new FailureError({ code: "unavailable", reason: "timeout", message: "", applied: "no" })),
      { timeoutMs: 1_000 },
    );
    assert.ok(!failed.ok && failed.failure.reason === "timeout");
    unwrap(await write(partition, "l", [put("a", "2")]));
    assert.equal(partition.stats.transactionsInProgress, 0);
  });
});

test("range partition: a batch is there as a whole or not at all, the last write of a key wins", async () => {
  const stamp = new Stamp(4);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await write(partition, "l", [put("a", "1"), put("b", "1"), put("a", "2"), remove("b"), put("c", "3")]));
    const next = await stamp.open(2);
    assert.deepEqual(await rows(next.scan({})), [
      ["a", "2"],
      ["c", "3"],
    ]);
  });
});

test("range partition: a transaction that never got its turn by its deadline did not happen, one that was sent is unknown", async () => {
  const stamp = new Stamp(5);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await increment(partition, "k"));
    for (const node of nodeNames) stamp.sim.pause(node);
    const sent = increment(partition, "k", 100);
    const waiting = increment(partition, "k", 150);
    await stamp.sim.sleep(5);
    const other = increment(partition, "other", 150);
    for (const [pending, applied] of [
      [sent, "unknown"],
      [waiting, "no"],
      [other, "no"],
    ] as const) {
      const outcome = await pending;
      assert.ok(!outcome.ok && outcome.failure.applied === applied, JSON.stringify(outcome));
    }
    // Its lock is held until it is known: the next one counts on from it.
    const after = increment(partition, "k");
    for (const node of nodeNames) stamp.sim.resume(node);
    assert.equal(unwrap(await after), 3);
    assert.equal(await read(partition, "k"), "3");
    assert.equal(await read(partition, "other"), undefined);
    assert.equal(partition.stats.transactionsInProgress, 0);
  });
});

test("range partition: a new owner fences the old one; every acknowledged commit is there, every refused one is not", async () => {
  for (let seed = 10; seed < 16; seed++) {
    const stamp = new Stamp(seed);
    await stamp.sim.run(async () => {
      const first = await stamp.open(1);
      const outcomes: Promise<Outcome<number>>[] = [];
      const writing = (async () => {
        for (let i = 0; i < 60; i++) {
          outcomes.push(write(first, `l${i}`, [put(`k${i}`, "a"), put(`m${i}`, "a")]));
          await stamp.sim.sleep(1);
        }
      })();
      await stamp.sim.sleep(stamp.sim.prng.below(40));
      const second = await stamp.open(2);
      const found = new Map(await rows(second.scan({})));
      await writing;
      let refused = 0;
      for (const [i, pending] of outcomes.entries()) {
        const outcome = await pending;
        assert.equal(found.has(`k${i}`), found.has(`m${i}`), "a batch is atomic");
        if (outcome.ok) assert.ok(found.has(`k${i}`), `seed ${seed}: commit ${i} was acknowledged and is lost`);
        else refused += 1;
        if (!outcome.ok && outcome.failure.applied === "no")
          assert.ok(!found.has(`k${i}`), `seed ${seed}: commit ${i} was refused and is there`);
      }
      assert.ok(refused > 0);
      assert.equal(stamp.lost.length, 1);
      await assert.rejects(first.get(utf8("k0")), FailureError);
      unwrap(await write(second, "l", [put("after", "b")]));
    });
  }
});

/** Writes, loses the power of everything, takes over, and compares, four times. */
async function powerLosses(seed: number, without: readonly RuleName[]): Promise<void> {
  const limits = { memoryTableBytesMax: 3_000, checkpointsMax: 2 };
  const stamp = new Stamp(seed, { extentTargetBytes: 5_000, restartAfterMs: 200, limits, without });
  await stamp.sim.run(async () => {
    const model = new Map<string, string>();
    for (let life = 1; life <= 4; life++) {
      const partition = await stamp.open(life);
      assert.deepEqual(
        await rows(partition.scan({})),
        [...model].sort(([a], [b]) => (a < b ? -1 : 1)),
        `seed ${seed} life ${life}`,
      );
      for (let i = stamp.sim.prng.below(60); i >= 0; i--) {
        const key = `k${stamp.sim.prng.below(30)}`;
        unwrap(await write(partition, key, [put(key, `${life}.${i}`.repeat(20))]));
        model.set(key, `${life}.${i}`.repeat(20));
      }
      for (const name of [...nodeNames, "sm1", "lock"]) stamp.sim.crash(name, { unsynced: "lost" });
      await stamp.sim.sleep(stamp.sim.prng.below(1_000));
    }
  });
}

test("range partition: acknowledged commits survive the loss of power of everything, at any moment of a checkpoint", async () => {
  for (let seed = 20; seed < 32; seed++) await powerLosses(seed, []);
});

test("range partition: they would not if the log were cut before its checkpoint is safe (rule truncateAfterCheckpoint)", async () => {
  let noticed = 0;
  for (let seed = 20; seed < 32 && noticed === 0; seed++) {
    await powerLosses(seed, ["truncateAfterCheckpoint"]).catch(() => {
      noticed += 1;
    });
  }
  assert.ok(noticed > 0);
});

test("range partition: the log and the metadata do not grow without end", async () => {
  const stamp = new Stamp(40, { extentTargetBytes: 4_000, limits: { memoryTableBytesMax: 3_000, checkpointsMax: 2 } });
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    for (let i = 0; i < 400; i++) unwrap(await write(partition, "l", [put(`k${i % 20}`, `${i}`.repeat(20))]));
    await stamp.sim.sleep(5_000);
    const world = stamp.sim.world("looker");
    const client = new StreamClient(world, { lockService: "lock" });
    await partition.close();
    for (const [name, max] of [
      ["/r1/log", 6],
      ["/r1/metadata", 3],
      ["/r1/rows", 8],
    ] as const) {
      const stream = unwrap(await client.openForOwner(name, ownerEpoch(2), { create: false, timeoutMs: 10_000 }));
      assert.ok(stream.extents.length <= max, `${name}: ${stream.extents.length} extents`);
    }
  });
});

test("range partition: rows of 1 MiB, also through checkpoints; a transaction that is too large is refused", async () => {
  const stamp = new Stamp(41, { journalSegmentBytes: 1 << 24, limits: { memoryTableBytesMax: 3 << 20 } });
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    const large = (i: number): Uint8Array => new Uint8Array(1 << 20).fill(i);
    for (let i = 0; i < 8; i++) {
      unwrap(
        await partition.transact(utf8("l"), async () => ({ writes: [{ kind: "put", key: utf8(`k${i}`), value: large(i) }], result: i }), {
          timeoutMs: 60_000,
        }),
      );
    }
    await stamp.sim.sleep(2_000);
    assert.ok(partition.stats.checkpoints > 0);
    const next = await stamp.open(2);
    for (let i = 0; i < 8; i++) assert.ok(Buffer.from((await next.get(utf8(`k${i}`))) ?? []).equals(large(i)));
    const tooLarge = [0, 1, 2, 3].map((i) => ({ kind: "put", key: utf8(`t${i}`), value: large(i) }) as const);
    const refused = await next.transact(utf8("l"), async () => ({ writes: tooLarge, result: 0 }), { timeoutMs: 1_000 });
    assert.ok(!refused.ok && refused.failure.applied === "no" && refused.failure.reason === "messageTooLarge");
    unwrap(await write(next, "l", [put("a", "still there")]));
  });
});

test("range partition: places in the blob data stream are owned, others are not; the next owner owns them too", async () => {
  const stamp = new Stamp(42);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    const places = unwrap(await partition.appendData([utf8("one"), utf8("two")], { timeoutMs: 5_000 }));
    for (const place of places) assert.equal(partition.ownsPlace(place), true);
    assert.equal(partition.ownsPlace({ extentId: 999, offsetBytes: 0, lengthBytes: 1 }), false);
    const next = await stamp.open(2);
    for (const place of places) assert.equal(next.ownsPlace(place), true);
  });
});

test("range partition: close lets what is in flight end and takes nothing more", async () => {
  const stamp = new Stamp(43);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await write(partition, "l", [put("a", "1")]));
    const pending = write(partition, "l", [put("a", "2")]);
    await Promise.resolve();
    await Promise.resolve();
    await Promise.resolve();
    await partition.close();
    const outcome = await pending;
    const later = await write(partition, "l", [put("a", "3")]);
    assert.ok(!later.ok && later.failure.applied === "no");
    const next = await stamp.open(2);
    assert.equal(await read(next, "a"), outcome.ok ? "2" : "1");
    assert.equal(stamp.lost.length, 0);
  });
});

test("range partition: who waits for transactions that began before does not wait for one that nobody will ever know the end of", async () => {
  const stamp = new Stamp(45);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await increment(partition, "k"));
    for (const node of nodeNames) stamp.sim.pause(node);
    const sent = increment(partition, "k", 50);
    await stamp.sim.sleep(5);
    let left = false;
    const leaving = partition.leaveExtents([]).then(() => {
      left = true;
    });
    const outcome = await sent;
    assert.ok(!outcome.ok && outcome.failure.applied === "unknown");
    await stamp.sim.sleep(100);
    assert.equal(left, false, "its row may still begin to refer to them");
    await partition.close({ timeoutMs: 10 });
    await leaving;
    await partition.leaveExtents([]);
  });
});

test("range partition: too many transactions at once are refused before they begin", async () => {
  const stamp = new Stamp(44, { limits: { transactionsMax: 5 } });
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    const outcomes = await Promise.all(Array.from({ length: 8 }, (_, i) => increment(partition, `k${i}`)));
    assert.equal(outcomes.filter(({ ok }) => ok).length, 5);
    const refused = outcomes.find(({ ok }) => !ok) as Outcome<number>;
    assert.ok(!refused.ok && refused.failure.reason === "overloaded" && refused.failure.applied === "no");
  });
});
