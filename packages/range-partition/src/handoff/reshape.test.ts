/** Splits and merges over the real stream layer on virtual time: what children have, what they don't, and what comes of a change that fails. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, ownerEpoch, present, unwrap, utf8 } from "@stamp/base";
import type { PartitionState } from "@stamp/lsm";
import { makeCaches } from "../cache/caches.ts";
import { RangePartition } from "../index.ts";
import { limitDefaults } from "../limits.ts";
import { childState, loadPartition, replayRest } from "../load/load.ts";
import { put, read, remove, rows, Stamp, streamsOf, write } from "../testing/harness.ts";
import {
  become,
  expected,
  fill,
  from,
  handOverTo,
  keyOf,
  keysOf,
  leave,
  limits,
  owned,
  type Place,
  splitAt200,
} from "../testing/reshape-harness.ts";
import { allocateForChildren, handOver } from "./hand-over.ts";

test("split: each child has its keys as they were, newest versions, no key of the other, and goes on", async () => {
  const stamp = new Stamp(1, { limits });
  await stamp.sim.run(async () => {
    const { parent, left, right } = await splitAt200(stamp);
    assert.deepEqual(
      await keysOf(left),
      expected.filter((key) => key < keyOf(200)),
    );
    assert.deepEqual(
      await keysOf(right),
      expected.filter((key) => key >= keyOf(200)),
    );
    assert.equal(await read(right, keyOf(399)), "last");
    assert.match((await read(left, keyOf(150))) ?? "", /^second/);
    assert.equal(await read(left, keyOf(250)), undefined);
    assert.equal(await read(left, keyOf(300)), undefined, "a key of the other");
    assert.ok(right.stats.sequence >= parent.stats.sequence, "sequences go on");
    const late = await write(parent, "l", [put(keyOf(1), "late")]);
    assert.ok(!late.ok && late.failure.applied === "no", "the parent writes no more");
    await fill(left, 0, 200, "third");
    await fill(right, 200, 400, "third");
    assert.match((await read(left, keyOf(5))) ?? "", /^third/);
    assert.equal((await keysOf(right)).length, 200);
    assert.deepEqual(stamp.lost, []);
  });
});

test("split, merge: what a range of its own counts with starts apart from all others, the same for whoever loads it", () => {
  const left = { rangeId: "blob-1", ownerEpoch: 3, recordNumber: 9, checkpoints: [], checkpointedSequence: 70, lastTicket: 90 };
  const all = { low: utf8(""), high: utf8("") };
  const parent = { ...left, logStartExtentId: 5, nextCheckpointId: 2, heirs: ["blob-e7", "blob-e8"] };
  const [low, high] = ["blob-e7", "blob-e8"].map((child) => childState(parent, child, all)) as [PartitionState, PartitionState];
  assert.ok(low.lastTicket > 90 && high.lastTicket - low.lastTicket >= 2 ** 24);
  assert.deepEqual(childState(parent, "blob-e7", all), low);
  assert.equal(low.checkpointedSequence, 70, "commits go on without a gap");
  const far = { ...parent, lastTicket: 2 ** 40 };
  assert.equal(childState(far, "blob-e9", all).lastTicket, 2 ** 40, "never back");
  assert.ok(Number.isSafeInteger(childState(parent, `blob-e${2 ** 50}`, all).lastTicket));
});

test("split: children made from memory are those that are loaded, also after more was written; their streams can be taken over", async () => {
  const stamp = new Stamp(8, { limits });
  await stamp.sim.run(async () => {
    const parent = unwrap(await stamp.load(1, "ps"));
    await fill(parent, 0, 400, "first");
    unwrap(await parent.departure.prepare(true));
    unwrap(await write(parent, "l", [remove(keyOf(5)), put(keyOf(399), "last")]));
    const children = [
      { rangeId: "r2", epoch: 2, low: "", high: keyOf(200) },
      { rangeId: "r3", epoch: 3, low: keyOf(200), high: "~" },
    ];
    await allocateForChildren(stamp.client("ps"), [parent.streams], children.map(owned));
    const left = unwrap(await leave([parent], ["r2", "r3"]));
    const ofParent = parent.streams.commitLog.extents.map(({ extentId }) => extentId);
    const late = await parent.checkpoint();
    assert.equal(late.ok ? "written" : late.failure.reason, "partitionLoading", "what left writes no checkpoint, and waits for none");
    const [world, client] = [stamp.sim.world("ps"), stamp.client("ps")];
    const parents = [{ ...owned({ rangeId: "r1", epoch: 1 }), left: parent.streams }];
    const handed = unwrap(await handOver(world, client, parents, children.map(owned), 10_000));
    const make = async ({ rangeId, epoch, low, high }: (typeof children)[number]): Promise<RangePartition> => {
      const options = {
        rangeId,
        streams: streamsOf(rangeId),
        ownerEpoch: ownerEpoch(epoch),
        lowKey: utf8(low),
        highKey: utf8(high),
        limits,
      };
      return present(await RangePartition.inherit(world, client, options, [parent], left, handed), "a child");
    };
    const [lower, upper] = (await Promise.all(children.map(make))) as [RangePartition, RangePartition];
    for (const { streams } of [lower, upper]) {
      const log = streams.commitLog.extents.map(({ extentId }) => extentId);
      assert.deepEqual(log.slice(0, -1), ofParent, "the parent's log, and what was opened when it was handed over");
    }
    const all = from(0, 400).filter((key) => key !== keyOf(5));
    assert.deepEqual(
      [await keysOf(lower), await keysOf(upper)],
      [all.filter((key) => key < keyOf(200)), all.filter((key) => key >= keyOf(200))],
    );
    await fill(lower, 0, 60, "child");
    await fill(upper, 200, 260, "child");
    unwrap(await upper.checkpoint());
    const [again, other] = [
      unwrap(await stamp.load(4, "other", { rangeId: "r2", high: keyOf(200), create: false })),
      unwrap(await stamp.load(5, "other", { rangeId: "r3", low: keyOf(200), create: false })),
    ];
    assert.deepEqual(await keysOf(again), from(0, 200));
    for (const partition of [again, other]) {
      const [first] = await rows(partition.scan({}));
      assert.match(first?.[1] ?? "", /^child/);
    }
    assert.equal(await read(other, keyOf(399)), "last");
  });
});

test("split: a child merges checkpoints a second later, and not at all when it leaves again before", async () => {
  for (const leavesAgain of [false, true]) {
    const stamp = new Stamp(27, { limits: { memoryTableBytesMax: 8 * 1024 * 1024, checkpointsMax: 8 } });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      unwrap(await parent.departure.prepare(true));
      for (let round = 0; round < 6; round++) {
        await fill(parent, 0, 200, `round ${round}`);
        unwrap(await parent.checkpoint());
      }
      const left = unwrap(await leave([parent], ["r2"]));
      const [world, client] = [stamp.sim.world("ps"), stamp.client("ps")];
      const children = [owned({ rangeId: "r2", epoch: 2 })];
      const handed = unwrap(
        await handOver(world, client, [{ ...owned({ rangeId: "r1", epoch: 1 }), left: parent.streams }], children, 10_000),
      );
      const options = {
        rangeId: "r2",
        streams: streamsOf("r2"),
        ownerEpoch: ownerEpoch(2),
        lowKey: utf8(""),
        highKey: utf8("~"),
        limits: { memoryTableBytesMax: 8 * 1024 * 1024, checkpointsMax: 4 },
      };
      const child = present(await RangePartition.inherit(world, client, options, [parent], left, handed), "a child");
      unwrap(await write(child, "l", [put("k", "v")]));
      await stamp.sim.sleep(900);
      assert.equal(child.stats.checkpoints, 6);
      if (leavesAgain) unwrap(await child.departure.prepare(true));
      await stamp.sim.sleep(20_000);
      assert.equal(child.stats.storage.mergedBytes > 0, !leavesAgain);
    });
  }
});

test("split: what was in memory is in the log of the children, through the merges of one and the next split, until it is in a checkpoint", async () => {
  const stamp = new Stamp(17, { limits: { ...limits, checkpointsMax: 8 }, extentTargetBytes: 50_000 });
  await stamp.sim.run(async () => {
    const parent = unwrap(await stamp.load(1, "ps"));
    await fill(parent, 0, 1_024, "first");
    unwrap(await parent.checkpoint());
    unwrap(await write(parent, "l", [remove(keyOf(1_001)), put(keyOf(1_002), "memory"), put(keyOf(1_030), "memory")]));
    // The last one is the other child's: what this one counts on from is not what it has.
    unwrap(await write(parent, "l", [put(keyOf(3), "memory")]));
    const flushed = parent.stats.storage.flushedBytes;
    const children = [2, 3].map((epoch) => ({ rangeId: `r${epoch}`, epoch }));
    unwrap(await become(stamp, "ps", [[{ rangeId: "r1", epoch: 1 }, parent]], children));
    assert.equal(parent.stats.storage.flushedBytes, flushed, "no checkpoint is written while writes wait");
    const wanted = [...from(1_000, 1_024).filter((key) => key !== keyOf(1_001)), keyOf(1_030)];
    const isWhole = async (child: RangePartition): Promise<void> => {
      assert.deepEqual(await keysOf(child), wanted);
      assert.equal(await read(child, keyOf(1_002)), "memory");
      assert.equal(child.stats.sequence, parent.stats.sequence);
      assert.equal(child.stats.memoryTableEntries, 3, "its own");
    };
    const right = unwrap(await stamp.load(3, "ps", { rangeId: "r3", low: keyOf(1_000), create: false }));
    await stamp.sim.sleep(60_000);
    assert.ok(right.stats.storage.mergedBytes > 0, "it has recorded a merge");
    assert.equal(right.stats.storage.flushedBytes, 0, "and no checkpoint of what it has in memory");
    const { memoryTableFirstSequence, checkpointedSequence } = right.stats;
    assert.ok(memoryTableFirstSequence > checkpointedSequence);
    await isWhole(right);
    const moved = unwrap(await stamp.load(4, "other", { rangeId: "r3", low: keyOf(1_000), create: false }));
    await isWhole(moved);
    unwrap(await become(stamp, "other", [[{ rangeId: "r3", epoch: 4 }, moved]], [{ rangeId: "r5", epoch: 5 }]));
    const child = unwrap(await stamp.load(5, "other", { rangeId: "r5", low: keyOf(1_000), create: false }));
    await isWhole(child);
    unwrap(await write(child, "l", [put(keyOf(1_002), "newer")]));
    const loaded = unwrap(await stamp.load(6, "third", { rangeId: "r5", low: keyOf(1_000), create: false }));
    assert.equal(await read(loaded, keyOf(1_002)), "newer");
    assert.equal(loaded.stats.sequence, parent.stats.sequence + 1, "counted on");
    const shared = loaded.streams.commitLog.extents.length;
    unwrap(await loaded.checkpoint());
    assert.ok(loaded.streams.commitLog.extents.length < shared, "the parents' log is let go");
    const last = unwrap(await stamp.load(7, "ps", { rangeId: "r5", low: keyOf(1_000), create: false }));
    assert.deepEqual(await keysOf(last), wanted);
    assert.equal(await read(last, keyOf(1_002)), "newer");
    assert.equal(last.stats.memoryTableEntries, 0, "a checkpoint has it");
  });
});

test("split: a child that has no row of what is in the log lets it go, and goes on with the numbers behind it", async () => {
  for (const inherits of [false, true]) {
    const stamp = new Stamp(33, { limits });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      unwrap(await parent.departure.prepare(true));
      await fill(parent, 0, 20, "lower");
      const children = [2, 3].map((epoch) => ({ rangeId: `r${epoch}`, epoch }));
      const parents: [Place, RangePartition][] = [[{ rangeId: "r1", epoch: 1 }, parent]];
      const client = stamp.client("ps");
      await allocateForChildren(client, [parent.streams], children.map(owned));
      const left = unwrap(await leave([parent], ["r2", "r3"]));
      const handed = unwrap(await handOverTo(stamp, "ps", parents, left, children));
      const options = {
        rangeId: "r3",
        streams: streamsOf("r3"),
        ownerEpoch: ownerEpoch(3),
        lowKey: utf8(keyOf(200)),
        highKey: utf8("~"),
        limits,
      };
      const upper = inherits
        ? present(await RangePartition.inherit(stamp.sim.world("ps"), client, options, [parent], left, handed), "a child")
        : unwrap(await stamp.load(4, "ps", { rangeId: "r3", low: keyOf(200), create: false }));
      unwrap(await write(upper, "l", [put(keyOf(300), "own")]));
      const loaded = unwrap(await stamp.load(5, "other", { rangeId: "r3", low: keyOf(200), create: false }));
      assert.deepEqual([await keysOf(loaded), loaded.stats.sequence], [[keyOf(300)], parent.stats.sequence + 1]);
      await loaded.close();
      const rested = unwrap(await stamp.load(6, "other", { rangeId: "r3", low: keyOf(250), high: keyOf(260), create: false }));
      await stamp.sim.sleep(2_000);
      assert.deepEqual([rested.stats.logBytes, rested.stats.checkpointedSequence], [0, parent.stats.sequence + 1]);
      const ofParent = new Set(parent.streams.commitLog.extents.map(({ extentId }) => extentId));
      assert.ok(!rested.streams.commitLog.extents.some(({ extentId }) => ofParent.has(extentId)));
      unwrap(await write(rested, "l", [put(keyOf(255), "next")]));
      const again = unwrap(await stamp.load(7, "other", { rangeId: "r3", low: keyOf(250), high: keyOf(260), create: false }));
      assert.deepEqual(await keysOf(again), [keyOf(255)]);
    });
  }
});

test("split: a state that was left with what was in memory, its log empty, is loaded as it was (before 0340)", () => {
  const all = { low: utf8(""), high: utf8("") };
  const facts = { rangeId: "r1", ownerEpoch: 3, recordNumber: 9, checkpoints: [], checkpointedSequence: 70, lastTicket: 90 };
  const rest = [{ kind: "put", key: utf8("k"), value: utf8("v") }] as const;
  const state = childState({ ...facts, logStartExtentId: 5, nextCheckpointId: 2, heirs: ["r2"], rest }, "r2", all);
  const { table, lastSequence } = replayRest(state);
  assert.deepEqual([lastSequence, fromUtf8(table.get(utf8("k"), lastSequence)?.value ?? utf8(""))], [71, "v"]);
});

test("split: however often a range is split, its metadata stream holds no more than the last record", async () => {
  const stamp = new Stamp(9, { limits });
  await stamp.sim.run(async () => {
    let partition = unwrap(await stamp.load(1, "ps"));
    await fill(partition, 0, 40, "first");
    for (let epoch = 2; epoch <= 8; epoch++) {
      const child = { rangeId: `r${epoch}`, epoch };
      unwrap(await become(stamp, "ps", [[{ rangeId: `r${epoch - 1}`, epoch: epoch - 1 }, partition]], [child]));
      partition = unwrap(await stamp.load(epoch, "ps", { rangeId: child.rangeId, create: false }));
      unwrap(await write(partition, "l", [put(keyOf(epoch), `by ${epoch}`)]));
      assert.ok(partition.streams.metadata.extents.length <= 2, `${partition.streams.metadata.extents.length} extents`);
    }
    assert.equal((await keysOf(partition)).length, 40);
    assert.equal(await read(partition, keyOf(3)), "by 3");
  });
});

test("split: the children are loaded elsewhere with what they had and wrote, and the parent is gone for good", async () => {
  const stamp = new Stamp(2, { limits });
  await stamp.sim.run(async () => {
    const { left, right } = await splitAt200(stamp);
    await fill(left, 0, 50, "third");
    await left.close();
    await right.close();
    const movedLeft = unwrap(await stamp.load(4, "other", { rangeId: "r2", high: keyOf(200), create: false }));
    const movedRight = unwrap(await stamp.load(5, "other", { rangeId: "r3", low: keyOf(200), create: false }));
    assert.match((await read(movedLeft, keyOf(5))) ?? "", /^third/);
    assert.deepEqual(
      await keysOf(movedRight),
      expected.filter((key) => key >= keyOf(200)),
    );
    const parent = await stamp.load(6, "other", { create: false });
    assert.ok(!parent.ok && parent.failure.reason === "streamNotFound", "it is not made again, empty");
  });
});

test("split: at any moment of checkpoints and merges the change finds nothing open", async () => {
  for (let leavesAfterMs = 0; leavesAfterMs < 60; leavesAfterMs += 12) {
    const stamp = new Stamp(7, { limits });
    await stamp.sim.run(async () => {
      const parent = unwrap(await stamp.load(1, "ps"));
      const filled = fill(parent, 0, 2_000, "first").catch(() => {});
      await stamp.sim.sleep(60 + leavesAfterMs);
      unwrap(await become(stamp, "ps", [[{ rangeId: "r1", epoch: 1 }, parent]], [{ rangeId: "r2", epoch: 2 }]));
      await filled;
      const child = unwrap(await stamp.load(2, "ps", { rangeId: "r2", create: false }));
      assert.ok((await keysOf(child)).length >= 50);
    });
  }
});

test("merge: the child has the rows of both neighbours, each one's keys only, and sheds the rest as it merges checkpoints", async () => {
  const stamp = new Stamp(3, { limits });
  await stamp.sim.run(async () => {
    const { left, right } = await splitAt200(stamp);
    // Both have the parent's checkpoints; what the one deletes must not come back from those of the other.
    unwrap(await write(left, "l", from(0, 100).map(remove)));
    await fill(right, 300, 350, "third");
    const parents: [Place, RangePartition][] = [
      [{ rangeId: "r2", epoch: 2 }, left],
      [{ rangeId: "r3", epoch: 3 }, right],
    ];
    unwrap(await become(stamp, "ps", parents, [{ rangeId: "r4", epoch: 7 }]));
    let merged = unwrap(await stamp.load(7, "ps", { rangeId: "r4", create: false }));
    const all = expected.filter((key) => key >= keyOf(100));
    assert.deepEqual(await keysOf(merged), all);
    assert.match((await read(merged, keyOf(320))) ?? "", /^third/);
    for (let round = 0; round < 6; round++) await fill(merged, 100, 400, `round ${round}`);
    await stamp.sim.sleep(30_000);
    merged = unwrap(await stamp.load(8, "other", { rangeId: "r4", create: false }));
    assert.deepEqual(await keysOf(merged), from(100, 400));
    assert.ok(merged.stats.checkpoints <= 4, `${merged.stats.checkpoints} checkpoints`);
    const liveBytes = 300 * 230;
    assert.ok(
      merged.stats.checkpointBytes < 4 * liveBytes,
      `${merged.stats.checkpointBytes} bytes of checkpoints for ${liveBytes} of rows`,
    );
  });
});

test("split: when somebody else has opened the parent meanwhile nothing happens, and the parent is loaded as it was", async () => {
  const stamp = new Stamp(4, { limits });
  await stamp.sim.run(async () => {
    const parent = unwrap(await stamp.load(1, "ps"));
    await fill(parent, 0, 100, "first");
    const children = [
      { rangeId: "r2", epoch: 2 },
      { rangeId: "r3", epoch: 3 },
    ];
    unwrap(await leave([parent], ["r2", "r3"]));
    // The manager gave the split up: it fences the parent.
    unwrap(await stamp.client("pm").openForOwner(streamsOf("r1").metadata, ownerEpoch(4), { create: false, timeoutMs: 5_000 }));
    const late = await handOver(
      stamp.sim.world("ps"),
      stamp.client("ps"),
      [owned({ rangeId: "r1", epoch: 1 })],
      children.map(owned),
      10_000,
    );
    assert.ok(!late.ok && late.failure.reason === "staleOwnerEpoch" && late.failure.applied === "no", JSON.stringify(late));
    const child = await stamp.load(2, "ps", { rangeId: "r2", high: keyOf(50), create: false });
    assert.ok(!child.ok && child.failure.reason === "streamNotFound");
    const again = unwrap(await stamp.load(5, "other", { create: false }));
    assert.deepEqual(await keysOf(again), from(0, 100));
    unwrap(await write(again, "l", [put("k", "v")]));
    const third = unwrap(await stamp.load(6, "third", { create: false }));
    assert.equal(await read(third, "k"), "v");
  });
});

test("split: what a child merges of its parent's checkpoints are its own keys only, at either bound", async () => {
  const limits = { memoryTableBytesMax: 8 * 1024, checkpointsMax: 4 };
  const stamp = new Stamp(14, { limits });
  await stamp.sim.run(async () => {
    const parent = unwrap(await stamp.load(1, "ps"));
    await fill(parent, 0, 400, "first");
    const children = [2, 3, 4].map((epoch) => ({ rangeId: `r${epoch}`, epoch }));
    unwrap(await become(stamp, "ps", [[{ rangeId: "r1", epoch: 1 }, parent]], children));
    for (const [i, { rangeId, epoch }] of children.entries()) {
      const [low, high] = [0, 37, 200, 400].slice(i) as [number, number];
      const [world, client] = [stamp.sim.world("ps"), stamp.client("ps")];
      const options = {
        ...{ rangeId, streams: streamsOf(rangeId), ownerEpoch: ownerEpoch(epoch), create: false, timeoutMs: 10_000 },
        ...{ lowKey: utf8(keyOf(low)), highKey: utf8(keyOf(high)) },
      };
      const { checkpoints } = unwrap(await loadPartition(world, client, options, makeCaches({ ...limitDefaults, ...limits })));
      const keys = new Set<string>();
      for (const checkpoint of checkpoints) {
        for await (const { entries } of checkpoint.versions()) for (const { key } of entries) keys.add(fromUtf8(key));
      }
      assert.deepEqual([...keys].sort(), from(low, high), rangeId);
    }
  });
});

test("split: a range that was prepared to leave and stays merges its checkpoints as before, and can leave later", async () => {
  const stamp = new Stamp(15, { limits });
  await stamp.sim.run(async () => {
    const parent = unwrap(await stamp.load(1, "ps"));
    await fill(parent, 0, 100, "first");
    unwrap(await parent.departure.prepare(true));
    parent.departure.resume();
    for (let round = 0; round < 10; round++) await fill(parent, 0, 100, `round ${round}`);
    await stamp.sim.sleep(30_000);
    assert.ok(parent.stats.checkpoints <= limits.checkpointsMax, `${parent.stats.checkpoints} checkpoints`);
    unwrap(await become(stamp, "ps", [[{ rangeId: "r1", epoch: 1 }, parent]], [{ rangeId: "r2", epoch: 2 }]));
    const child = unwrap(await stamp.load(2, "ps", { rangeId: "r2", create: false }));
    assert.deepEqual(await keysOf(child), from(0, 100));
    assert.match((await read(child, keyOf(5))) ?? "", /^round 9/);
  });
});

test("split: key samples divide what is stored into even parts, and an empty partition has none", async () => {
  const stamp = new Stamp(5, { limits });
  await stamp.sim.run(async () => {
    const parent = unwrap(await stamp.load(1, "ps"));
    assert.deepEqual(parent.keySamples(), []);
    await fill(parent, 0, 1, "first");
    assert.deepEqual(new Set(parent.keySamples().map((key) => new TextDecoder().decode(key))), new Set(["k0000"]));
    await fill(parent, 1, 400, "first");
    const divided = (): void => {
      const samples = parent.keySamples().map((key) => new TextDecoder().decode(key));
      assert.deepEqual([...samples].sort(), samples);
      const middle = Number(samples[Math.floor(samples.length / 2)]?.slice(1));
      assert.ok(middle > 100 && middle < 300, samples.join());
    };
    divided();
    unwrap(await parent.checkpoint());
    divided();
  });
});

test("split: a child of little rewrites it, and gives back what it inherited and does not own", async () => {
  const stamp = new Stamp(7, { limits: { ...limits, checkpointsMax: 8 }, extentTargetBytes: 50_000 });
  await stamp.sim.run(async () => {
    const parent = unwrap(await stamp.load(1, "ps"));
    await fill(parent, 0, 1_024, "first");
    unwrap(await parent.checkpoint());
    await stamp.sim.sleep(30_000);
    // So few that none is merged for its size.
    assert.ok(parent.stats.checkpoints <= 4, `${parent.stats.checkpoints} checkpoints`);
    const children = [
      { rangeId: "r2", epoch: 2 },
      { rangeId: "r3", epoch: 3 },
    ];
    unwrap(await become(stamp, "ps", [[{ rangeId: "r1", epoch: 1 }, parent]], children));
    const right = unwrap(await stamp.load(3, "ps", { rangeId: "r3", low: keyOf(1_000), create: false }));
    const held = (): number => right.streams.rowData.extents.reduce((sum, { sealedLengthBytes = 0 }) => sum + sealedLengthBytes, 0);
    const inherited = held();
    assert.ok(inherited > 200_000, `${inherited} bytes inherited`);
    unwrap(await write(right, "l", [put(keyOf(1_000), "second")]));
    await stamp.sim.sleep(60_000);
    assert.ok(held() < 150_000, `${held()} bytes are held for ${right.stats.checkpointBytes} in ${right.stats.checkpoints}`);
    assert.equal((await keysOf(right)).length, 24);
    const left = unwrap(await stamp.load(2, "ps", { rangeId: "r2", high: keyOf(1_000), create: false }));
    assert.equal((await keysOf(left)).length, 1_000, "what the other one has is there");
  });
});
