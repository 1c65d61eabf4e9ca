/** A parent prepares the handoff while writes go on: what it writes out, gives back, cuts and gives up. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { present, unwrap } from "@stamp/base";
import { put, Stamp, write } from "../testing/harness.ts";
import { isMoving, r4 } from "../testing/leave-harness.ts";
import { fill, from, handOverTo, keysOf, leave, limits } from "../testing/reshape-harness.ts";
import { restBytesMax } from "./leave.ts";

test("split: the log is cut when it goes to no other extent; writes go on until then", async () => {
  let rolled = 0;
  for (let afterMs = 0; afterMs < 40; afterMs += 2) {
    const stamp = new Stamp(28, { limits: { memoryTableBytesMax: 16 * 1024 * 1024 }, extentTargetBytes: 40_000 });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      unwrap(await parent.departure.prepare(true));
      unwrap(await parent.departure.recordHandoff(["r4"]));
      const acknowledged: string[] = [];
      const writers = from(0, 20).map(async (key) => {
        for (let i = 0; (await write(parent, key, [put(`${key}/${i}`, "x".repeat(1_000))])).ok; i++) acknowledged.push(`${key}/${i}`);
      });
      await stamp.sim.sleep(afterMs);
      const before = parent.streams.commitLog.extents.length;
      const left = unwrap(await leave([parent], ["r4"]));
      rolled += parent.streams.commitLog.extents.length > before ? 1 : 0;
      unwrap(await handOverTo(stamp, "ps", [[{ rangeId: "r1", epoch: 1 }, parent]], left, [r4]));
      await Promise.all(writers);
      const child = unwrap(await stamp.load(4, "other", { rangeId: "r4", create: false }));
      assert.deepEqual(await keysOf(child), acknowledged.sort());
    });
  }
  assert.ok(rolled > 0, "it went to another one");
});

test("split: what is in memory is written out again when the parent stays after all, whatever of leaving was under way", async () => {
  for (const when of ["told", "telling", "before"] as const) {
    const stamp = new Stamp(32, { limits });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      unwrap(await parent.departure.prepare(true));
      if (when === "telling") void fill(parent, 0, 200, "much").catch(() => {});
      const telling = when === "before" ? undefined : parent.departure.recordHandoff(["r4"]);
      if (when === "told") unwrap(present(await telling, "told"));
      if (when !== "before") {
        await fill(parent, 0, 400, "first");
        if (when === "told") {
          const byHand = await parent.checkpoint();
          assert.ok(isMoving(byHand), "nothing is recorded behind what the children are told");
          assert.equal(parent.stats.checkpoints, 0);
        }
      }
      parent.departure.resume();
      await telling;
      if (when === "before") assert.equal((await parent.departure.recordHandoff(["r4"])).ok, false, "it stays");
      await fill(parent, 0, 400, "second");
      unwrap(await parent.checkpoint());
      assert.ok(parent.stats.checkpoints > 0 && parent.stats.memoryTableEntries === 0);
      const again = unwrap(await stamp.load(5, "other", { create: false }));
      assert.deepEqual(await keysOf(again), from(0, 400));
    });
  }
});

test("split: blob data that is not on its way to an extent is given back, what is on its way is in, and where it ends is certain", async () => {
  const stamp = new Stamp(13, { limits });
  await stamp.sim.run(async () => {
    const parent = unwrap(await stamp.load(1, "ps"));
    const append = () => parent.appendData([new Uint8Array(512 * 1024)], { timeoutMs: 60_000 });
    unwrap(await append());
    const appends = Array.from({ length: 30 }, append);
    await parent.departure.holdData();
    const outcomes = await Promise.all(appends);
    const taken = outcomes.filter(({ ok }) => ok).length;
    assert.ok(taken >= 1 && taken < 30, `${taken} were on their way`);
    for (const outcome of [...outcomes.slice(taken), await append()]) {
      assert.ok(!outcome.ok && outcome.failure.reason === "partitionLoading" && outcome.failure.applied === "no", JSON.stringify(outcome));
    }
    unwrap(await write(parent, "l", [put("k", "rows go on")]));
    unwrap(await leave([parent], ["r2"]));
    assert.ok(typeof parent.streams.blobData?.endsAt === "object");
  });
});

test("split: where blob data end is certain also when their extent is being left for the next one", async () => {
  let left = 0;
  for (let afterMs = 0; afterMs < 60; afterMs += 3) {
    const stamp = new Stamp(28, { limits, extentTargetBytes: 300_000 });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      const appends = Array.from({ length: 40 }, () => parent.appendData([new Uint8Array(100_000)], { timeoutMs: 60_000 }));
      await stamp.sim.sleep(afterMs);
      const before = parent.streams.blobData?.extents.length ?? 0;
      await parent.departure.holdData();
      left += (parent.streams.blobData?.extents.length ?? 0) > before ? 1 : 0;
      await Promise.all(appends);
      unwrap(await leave([parent], ["r2"]));
      assert.ok(parent.streams.blobData?.endsAt !== undefined, `${afterMs} ms`);
    });
  }
  assert.ok(left > 0, "one was being left");
});

test("split: what a parent that is written to leaves has extents to go to, though it has no row to write out yet", async () => {
  for (const written of [false, true]) {
    const stamp = new Stamp(16, { limits });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      unwrap(await parent.departure.prepare(written));
      const { metadata, rowData } = parent.streams;
      assert.deepEqual([metadata.extents.length, rowData.extents.length], [1, written ? 1 : 0]);
    });
  }
});

test("split: what is in memory is written out round after round while writes go on, until what comes meanwhile is not much less", async () => {
  for (const [writers, roundsMin, roundsMax] of [
    [1, 1, 1],
    [100, 4, 7],
    [400, 2, 2],
  ] as const) {
    const stamp = new Stamp(26, { limits: { memoryTableBytesMax: 64 * 1024 * 1024 }, journalSegmentBytes: 16 << 20 });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      for (let i = 0; i < 100; i++) {
        const writes = Array.from({ length: 10 }, (_, j) => put(`m${10 * i + j}`, "x".repeat(8_000)));
        unwrap(await write(parent, "m", writes));
      }
      let stopped = false;
      const all = from(0, writers).map(async (key) => {
        for (let i = 0; !stopped; i++) unwrap(await write(parent, key, [put(`${key}/${i}`, "x".repeat(2_000))]));
      });
      unwrap(await parent.departure.prepare(true));
      unwrap(await parent.departure.lighten());
      stopped = true;
      const { checkpoints, memoryTableBytes } = parent.stats;
      assert.ok(checkpoints >= roundsMin && checkpoints <= roundsMax, `${writers} writers, ${checkpoints} rounds`);
      if (writers < 400) assert.ok(memoryTableBytes < restBytesMax, `${memoryTableBytes} bytes fit into the record`);
      await Promise.all(all);
    });
  }
});

test("split: a merge of checkpoints that is under way is given up when the parent prepares to leave", async () => {
  const stamp = new Stamp(14, { limits: { memoryTableBytesMax: 8 * 1024 * 1024, checkpointsMax: 8, rowCacheBytesMax: 4_096 } });
  await stamp.sim.run(async () => {
    const parent = unwrap(await stamp.load(1, "ps"));
    for (let round = 0; round < 4; round++) {
      await fill(parent, 0, 3_000, `round ${round}`);
      unwrap(await parent.checkpoint());
    }
    unwrap(await parent.departure.prepare(true));
    await stamp.sim.sleep(30_000);
    assert.equal(parent.stats.checkpoints, 4);
    assert.equal(parent.stats.storage.mergedBytes, 0);
  });
});
