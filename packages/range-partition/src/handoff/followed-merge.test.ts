/** A merge of ranges whose logs have followers: the child has them all, or there is no merge. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ownerEpoch, present, unwrap, utf8 } from "@stamp/base";
import type { RangePartition } from "../index.ts";
import { allKeys, follower } from "../testing/followed-world.ts";
import { put, Stamp, streamsOf, write } from "../testing/harness.ts";
import { neighbours, r4 } from "../testing/leave-harness.ts";
import { keyOf, owned } from "../testing/reshape-harness.ts";
import { Handoff } from "./handoff.ts";

const followedWaitMs = 2_000;

/** Two neighbours with a follower that has all of both, and their merge. */
async function followedMerge(stamp: Stamp) {
  const parents = await neighbours(stamp);
  for (const [, { followers }] of parents) unwrap(await followers.begin(follower, allKeys, "note"));
  const world = stamp.sim.world("ps");
  const leaving = parents.map(([place, partition]) => ({ rangeId: place.rangeId, ...owned(place), partition }));
  const child = { rangeId: r4.rangeId, ...owned(r4) };
  const handoff = new Handoff(world, stamp.client("ps"), leaving, [child], { followedWaitMs });
  const [[, first], [, second]] = parents;
  return { handoff, first, second };
}

async function writeRows(partition: RangePartition, rows: number, bytes: number): Promise<void> {
  for (let i = 0; i < rows; i++) unwrap(await write(partition, "l", [put(keyOf(i), "x".repeat(bytes))]));
}

function acknowledge({ followers }: RangePartition): void {
  followers.sent(follower, followers.lastSequence);
  assert.ok(followers.acknowledged(follower, followers.lastSequence));
}

const large = { limits: { memoryTableBytesMax: 64 * 1024 * 1024 } };
const everyone = () => true;

test("merge: what a follower lacks stays in memory until the parents leave, though it fills the memory table", async () => {
  const stamp = new Stamp(61, { limits: { memoryTableBytesMax: 16 * 1024 } });
  await stamp.sim.run(async () => {
    const { handoff, first } = await followedMerge(stamp);
    unwrap(await handoff.prepare(true));
    await writeRows(first, 60, 1_000);
    await handoff.holdData();
    unwrap(await handoff.leave());
    unwrap(await handoff.handOver(10_000));
    const bounds = { rangeId: r4.rangeId, lowKey: utf8(""), highKey: utf8("~") };
    const options = { ...bounds, streams: streamsOf(r4.rangeId), ownerEpoch: ownerEpoch(r4.epoch), limits: {} };
    const { followers } = present(await handoff.inherit(options), "the child");
    const { acknowledged } = present(followers.status(follower), "the follower at the child");
    const lacked = new Set<string>();
    for await (const { writes } of followers.commitsFor(follower, acknowledged)) {
      for (const { key } of writes) lacked.add(Buffer.from(key).toString());
    }
    for (let i = 0; i < 60; i++) assert.ok(lacked.has(keyOf(i)), keyOf(i));
  });
});

test("merge: it is refused at the end if the last record has no room for what a follower lacks; the parents keep the follower", async () => {
  const stamp = new Stamp(62, large);
  await stamp.sim.run(async () => {
    const { handoff, first } = await followedMerge(stamp);
    unwrap(await handoff.prepare(true));
    await writeRows(first, 20, 100_000);
    await handoff.holdData();
    const left = await handoff.leave();
    assert.match(left.ok ? "left" : left.failure.message, /do not fit into the last record of r2/);
    for (const bounds of [
      { rangeId: "r2", high: keyOf(200) },
      { rangeId: "r3", low: keyOf(200) },
    ]) {
      const { followers } = unwrap(await stamp.load(5, "other", { ...bounds, create: false }));
      assert.ok(followers.status(follower) !== undefined, bounds.rangeId);
    }
  });
});

test("merge: it is not prepared if too much came into memory while followers were waited for; what came is written out afterwards", async () => {
  const stamp = new Stamp(63, large);
  await stamp.sim.run(async () => {
    const { handoff, first, second } = await followedMerge(stamp);
    await writeRows(first, 1, 100);
    const prepared = handoff.prepare(true);
    for (let ms = 0; first.departure.recorded === undefined; ms++) {
      assert.ok(ms < 60_000, "rows are held");
      await stamp.sim.sleep(1);
    }
    await writeRows(first, 10, 100_000);
    for (const parent of [first, second]) acknowledge(parent);
    const outcome = await prepared;
    assert.match(outcome.ok ? "prepared" : outcome.failure.message, /bytes of rows of r2 are too many for the last record/);
    handoff.resume(everyone);
    unwrap(await first.checkpoint());
    assert.equal(first.stats.memoryTableBytes, 0);
  });
});

test("merge: if followers do not allow a merge, nothing is written out for it", async () => {
  const stamp = new Stamp(64, large);
  await stamp.sim.run(async () => {
    const { handoff, first } = await followedMerge(stamp);
    await writeRows(first, 1, 100);
    unwrap(await first.checkpoint());
    await writeRows(first, 1, 200);
    const { flushedBytes } = first.stats.storage;
    const outcome = await handoff.prepare(true);
    assert.match(outcome.ok ? "prepared" : outcome.failure.message, /lacks 1 commits of r2/);
    assert.equal(first.stats.storage.flushedBytes, flushedBytes);
  });
});
