/** Followers of a commit log get every commit once and in order, over checkpoints, moves, splits and merges; the log is kept for them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type RuleName, unwrap, utf8 } from "@stamp/base";
import type { LoggedCommit, RangePartition } from "../index.ts";
import { FollowedWorld, follower } from "../testing/followed-world.ts";
import { put, Stamp, write } from "../testing/harness.ts";

const allKeys = { low: utf8(""), high: utf8("~") };

async function commitsBehind(partition: RangePartition, after: number): Promise<LoggedCommit[]> {
  const all: LoggedCommit[] = [];
  for await (const commit of partition.followers.commitsFor(follower, after)) all.push(commit);
  return all;
}

async function run(seed: number, without: readonly RuleName[] = []): Promise<FollowedWorld> {
  const world = new FollowedWorld(seed, without);
  await world.stamp.sim.run(async () => {
    await world.begin();
    for (let step = 0; step < 160; step++) await world.step();
    await world.end();
  });
  return world;
}

test("followers: a copy of each PartitionName is what its first commits made, over moves, splits, merges and checkpoints", async () => {
  let [merges, begunAnew] = [0, 0];
  for (let seed = 1; seed <= 8; seed++) {
    const world = await run(seed);
    merges += world.merges;
    begunAnew += world.begunAnew;
  }
  assert.ok(merges > begunAnew && begunAnew > 0, `${merges} merges, after ${begunAnew} of them a follower began anew`);
});

for (const rule of ["geoHeirContinues", "geoCursorAcknowledged"] as const) {
  test(`followers: without the rule ${rule} a copy is as it never was`, async () => {
    let found: unknown;
    for (let seed = 1; seed <= 12 && found === undefined; seed++) {
      await run(seed, [rule]).catch((error: unknown) => {
        found = error;
      });
    }
    assert.match(String(found), /as it never was|at the end/);
  });
}

test("followers: the log is kept behind the recorded cursor, is read where memory has no commit, and goes when the cursor is recorded", async () => {
  const stamp = new Stamp(3, { extentTargetBytes: 3_000, limits: { memoryTableBytesMax: 3_000, followedBytesMax: 500 } });
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await write(partition, "l", [put("k", "before")]));
    unwrap(await partition.followers.begin(follower, allKeys, "note"));
    const { lastSequence: begun } = partition.followers;
    for (let i = 0; i < 60; i++) unwrap(await write(partition, "l", [put("k", `${i} ${"x".repeat(200)}`)]));
    unwrap(await partition.checkpoint());
    assert.ok(partition.stats.checkpointedSequence > begun + 50, "checkpoints have what the follower has not");
    const all = await commitsBehind(partition, begun);
    assert.deepEqual(
      all.map(({ sequence }) => sequence),
      Array.from({ length: 60 }, (_, i) => begun + 1 + i),
    );
    assert.ok(partition.followers.backlogBytes(follower) > 10_000, "the log that is kept has a size");
    const extents = partition.streams.commitLog.extents.length;
    partition.followers.sent(follower, begun + 60);
    assert.equal(partition.followers.acknowledged(follower, begun + 61), false, "nothing that was never sent is acknowledged");
    assert.ok(partition.followers.acknowledged(follower, begun + 60));
    unwrap(await partition.followers.record());
    assert.ok(partition.streams.commitLog.extents.length < extents / 2, `${partition.streams.commitLog.extents.length} of ${extents}`);
    assert.deepEqual(await commitsBehind(partition, begun + 60), []);
    const next = await stamp.open(2);
    assert.deepEqual(next.followers.status(follower), { acknowledged: begun + 60, note: "note", pending: 0 });
  });
});

test("followers: one that ends lets the log go; without one nothing is kept, recorded or held in memory", async () => {
  const stamp = new Stamp(4, { extentTargetBytes: 3_000, limits: { memoryTableBytesMax: 3_000 } });
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    const fill = async (): Promise<void> => {
      for (let i = 0; i < 60; i++) unwrap(await write(partition, "l", [put("k", `${i} ${"x".repeat(200)}`)]));
      unwrap(await partition.checkpoint());
    };
    await fill();
    const alone = partition.streams.commitLog.extents.length;
    unwrap(await partition.followers.begin(follower, allKeys, "note"));
    await fill();
    assert.ok(partition.streams.commitLog.extents.length > alone + 3);
    unwrap(await partition.followers.end(follower));
    assert.ok(partition.streams.commitLog.extents.length <= alone);
    assert.equal(partition.followers.status(follower), undefined);
  });
});
