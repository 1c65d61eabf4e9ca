/** A handoff goes through its phases in their order. After it was given up it changes nothing, however late its steps end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ownerEpoch, present, unwrap, utf8 } from "@stamp/base";
import { sleep } from "@stamp/ports";
import type { StreamClient } from "@stamp/stream-client";
import type { RangePartition } from "../index.ts";
import { put, Stamp, streamsOf, write } from "../testing/harness.ts";
import { fill, from, keysOf, limits, owned, type Place } from "../testing/reshape-harness.ts";
import { Handoff } from "./handoff.ts";

const child = (rangeId: string, epoch: number) => ({ rangeId, ...owned({ rangeId, epoch }) });

/** A split of r1 into one child; extents for the child are allocated `allocateMs` late. */
function splitOf(stamp: Stamp, partition: RangePartition, into: Place, allocateMs = 0) {
  const world = stamp.sim.world("ps");
  const client: StreamClient = stamp.client("ps");
  const calls = { allocations: 0 };
  const allocate = client.allocateAhead.bind(client);
  client.allocateAhead = async (...args) => {
    calls.allocations++;
    await sleep(world.clock, allocateMs);
    return allocate(...args);
  };
  const parent = { ...owned({ rangeId: "r1", epoch: 1 }), partition };
  return { handoff: new Handoff(world, client, [parent], [child(into.rangeId, into.epoch)]), calls };
}

const everyone = () => true;

test("handoff: its steps are called in their order, each once", async () => {
  const stamp = new Stamp(51, { limits });
  await stamp.sim.run(async () => {
    const parent = unwrap(await stamp.load(1, "ps"));
    const { handoff } = splitOf(stamp, parent, { rangeId: "r4", epoch: 4 });
    const refusedNow = async (...steps: readonly ("prepare" | "resume" | "holdData" | "leave" | "handOver")[]) => {
      for (const step of steps) {
        const { phase } = handoff;
        const call = { prepare: () => handoff.prepare(true), resume: () => handoff.resume(everyone), holdData: () => handoff.holdData() };
        const later = { leave: () => handoff.leave(), handOver: () => handoff.handOver(1_000) };
        await assert.rejects(async () => ({ ...call, ...later })[step](), /Assertion/, `${step} in phase ${phase}`);
        assert.equal(handoff.phase, phase);
      }
    };
    await refusedNow("resume", "holdData", "leave", "handOver");
    unwrap(await handoff.prepare(true));
    assert.equal(handoff.phase, "prepared");
    await refusedNow("prepare", "leave", "handOver");
    await handoff.holdData();
    await refusedNow("prepare", "resume", "holdData", "handOver");
    unwrap(await handoff.leave());
    await refusedNow("prepare", "resume", "holdData", "leave");
    unwrap(await handoff.handOver(10_000));
    await refusedNow("prepare", "resume", "holdData", "leave", "handOver");
  });
});

test("handoff: extents for children are allocated if somebody writes, and what comes into memory meanwhile goes out after that", async () => {
  for (const written of [true, false]) {
    const stamp = new Stamp(52, { limits: { memoryTableBytesMax: 64 * 1024 * 1024 } });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      const { handoff, calls } = splitOf(stamp, parent, { rangeId: "r4", epoch: 4 }, 3_000);
      const prepared = handoff.prepare(written);
      await stamp.sim.sleep(1_000);
      for (let i = 0; i < 10; i++) unwrap(await write(parent, "l", [put(`k${i}`, "x".repeat(100_000))]));
      unwrap(await prepared);
      assert.equal(calls.allocations > 0, written);
      assert.equal(parent.stats.memoryTableBytes < 256 * 1024, written, `${parent.stats.memoryTableBytes} bytes in memory`);
    });
  }
});

test("handoff: after it was given up it records nothing, though its preparation ends while the next handoff is prepared", async () => {
  const stamp = new Stamp(53, { limits });
  await stamp.sim.run(async () => {
    const parent = unwrap(await stamp.load(1, "ps"));
    await fill(parent, 0, 200, "first");
    const first = splitOf(stamp, parent, { rangeId: "r4", epoch: 4 }, 2_000).handoff;
    const late = first.prepare(true);
    await stamp.sim.sleep(500);
    first.resume(everyone);
    const { handoff } = splitOf(stamp, parent, { rangeId: "r5", epoch: 5 });
    unwrap(await handoff.prepare(true));
    const outcome = await late;
    assert.equal(outcome.ok ? "prepared" : outcome.failure.reason, "notBegun");
    await handoff.holdData();
    unwrap(await handoff.leave());
    unwrap(await handoff.handOver(10_000));
    const options = { rangeId: "r5", streams: streamsOf("r5"), ownerEpoch: ownerEpoch(5), lowKey: utf8(""), highKey: utf8("~"), limits };
    assert.deepEqual(await keysOf(present(await handoff.inherit(options), "the child")), from(0, 200));
    const again = unwrap(await stamp.load(6, "other", { rangeId: "r5", create: false }));
    assert.deepEqual(await keysOf(again), from(0, 200), "the record is for the child that there is");
  });
});

test("departure: a record that waits for a checkpoint is not made if another handoff has begun meanwhile", async () => {
  const stamp = new Stamp(54, { limits });
  await stamp.sim.run(async () => {
    const parent = unwrap(await stamp.load(1, "ps"));
    const { departure } = parent;
    unwrap(await departure.prepare(true));
    await fill(parent, 0, 20, "first");
    const out = parent.checkpoint();
    await stamp.sim.sleep(0.1);
    const late = departure.recordHandoff(["r4"]);
    departure.resume();
    const prepared = departure.prepare(true);
    const outcome = await late;
    assert.equal(outcome.ok ? "recorded" : outcome.failure.reason, "notBegun");
    unwrap(await out);
    unwrap(await prepared);
    assert.equal(departure.recorded, undefined);
  });
});
