/** Full disks as an owner sees them: one node full is nobody's trouble, all full is a refusal with the reason, and reads go on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import type { OwnedStream, Place } from "./index.ts";
import { nodeNames, Stamp } from "./testing/harness.ts";

const mebibyte = 1 << 20;
const content = (i: number): Uint8Array => new Uint8Array(200_000).fill(i + 1);

function leaveFree(stamp: Stamp, node: string, freeBytes: number): void {
  const disk = stamp.sim.disk(node);
  disk.options = { ...disk.options, totalBytes: disk.usedBytes() + freeBytes };
}

interface Written {
  readonly places: Place[];
  readonly refused: string | undefined;
}

async function write(stream: OwnedStream, count: number, from = 0, timeoutMs = 10_000): Promise<Written> {
  const places: Place[] = [];
  for (let i = 0; i < count; i++) {
    const outcome = await stream.append([content(from + i)], { timeoutMs });
    if (!outcome.ok) return { places, refused: `${outcome.failure.reason}: ${outcome.failure.message}` };
    places.push(outcome.value[0] as Place);
  }
  return { places, refused: undefined };
}

test("disk full: with one node of four full an owner goes on writing on the others", async () => {
  const stamp = new Stamp(41, { journalSegmentBytes: 4 * mebibyte });
  await stamp.sim.run(async () => {
    const stream = await stamp.open("/a", 1);
    const first = await write(stream, 3);
    await stamp.sim.sleep(2_000);
    leaveFree(stamp, first.places.length > 0 ? "en1" : "", 100 * mebibyte);
    await stamp.sim.sleep(2_000);
    const written = await write(stream, 40, 3);
    assert.equal(written.refused, undefined);
    const reader = stamp.client("reader").reader;
    for (const [i, place] of [...first.places, ...written.places].entries()) {
      assert.deepEqual(unwrap(await reader.read(place, { timeoutMs: 5_000 })), content(i));
    }
  });
});

test("disk full: with all nodes full writes are refused with the reason, reads go on, and when there is room again so do writes", async () => {
  const stamp = new Stamp(42, { journalSegmentBytes: 4 * mebibyte });
  await stamp.sim.run(async () => {
    const stream = await stamp.open("/a", 1);
    const first = await write(stream, 10);
    assert.equal(first.refused, undefined);
    await stamp.sim.sleep(2_000);
    // Below the reserve of every node.
    for (const node of nodeNames) leaveFree(stamp, node, 100 * mebibyte);
    await stamp.sim.sleep(2_000);
    const full = await write(stream, 5, 10, 15_000);
    assert.equal(full.places.length, 0);
    assert.match(full.refused ?? "", /0 of 4 extent nodes that are up have room on their disks/);
    // The reason is told at once from now on.
    const askedMs = stamp.sim.nowMs;
    assert.match(
      (await write(stream, 1, 10, 15_000)).refused ?? "",
      /^noPlacement: 0 of 4 extent nodes that are up have room on their disks/,
    );
    assert.ok(stamp.sim.nowMs - askedMs < 100, `${stamp.sim.nowMs - askedMs} ms`);
    const reader = stamp.client("reader").reader;
    for (const [i, place] of first.places.entries()) {
      assert.deepEqual(unwrap(await reader.read(place, { timeoutMs: 5_000 })), content(i));
    }
    for (const node of nodeNames) stamp.sim.disk(node).options = { ...stamp.sim.disk(node).options, totalBytes: 2 ** 34 };
    await stamp.sim.sleep(3_000);
    const again = await write(stream, 5, 20);
    assert.equal(again.refused, undefined);
    for (const [i, place] of again.places.entries()) {
      assert.deepEqual(unwrap(await reader.read(place, { timeoutMs: 5_000 })), content(20 + i));
    }
  });
});

/** With an open extent that was written to, and then no room on any node. */
async function fullBehind(stamp: Stamp): Promise<OwnedStream> {
  const stream = await stamp.open("/a", 1);
  assert.equal((await write(stream, 3)).refused, undefined);
  await stamp.sim.sleep(2_000);
  for (const node of nodeNames) leaveFree(stamp, node, 100 * mebibyte);
  await stamp.sim.sleep(2_000);
  return stream;
}

test("disk full: the first append to an extent that was closed meanwhile is refused at once as not done", async () => {
  const stamp = new Stamp(44, { journalSegmentBytes: 4 * mebibyte });
  await stamp.sim.run(async () => {
    const stream = await fullBehind(stamp);
    // No node takes appends to an extent that was open when the node stopped.
    for (const node of nodeNames) {
      stamp.sim.crash(node, { unsynced: "kept" });
      stamp.sim.restart(node);
    }
    await stamp.sim.sleep(5_000);
    const askedMs = stamp.sim.nowMs;
    const first = await stream.append([content(0)], { timeoutMs: 30_000 });
    assert.ok(!first.ok);
    assert.deepEqual([first.failure.reason, first.failure.applied], ["noPlacement", "no"], first.failure.message);
    assert.ok(stamp.sim.nowMs - askedMs < 1_000, `${stamp.sim.nowMs - askedMs} ms`);
  });
});

test("disk full: the first append, also one without a deadline, is refused at once as not done, and the stream goes on", async () => {
  for (const options of [{ timeoutMs: 30_000 }, { timeoutMs: Number.POSITIVE_INFINITY, refusedWithoutRoom: true }]) {
    const stamp = new Stamp(43, { journalSegmentBytes: 4 * mebibyte });
    await stamp.sim.run(async () => {
      const stream = await fullBehind(stamp);
      const askedMs = stamp.sim.nowMs;
      const several = await Promise.all([0, 1, 2].map((i) => stream.append([content(i)], options)));
      for (const first of several) {
        assert.ok(!first.ok);
        assert.equal(first.failure.applied, "no", first.failure.message);
        assert.equal(first.failure.reason, "noPlacement", first.failure.message);
      }
      assert.ok(stamp.sim.nowMs - askedMs < 1_000, `${stamp.sim.nowMs - askedMs} ms`);
      assert.equal(stream.pendingAppends, 0);
      for (const node of nodeNames) leaveFree(stamp, node, 2 ** 33);
      await stamp.sim.sleep(3_000);
      const again = await write(stream, 2, 7);
      assert.equal(again.refused, undefined);
      await stream.close();
      const found = await stamp.open("/a", 2, "next");
      let blocks = 0;
      for await (const { payload } of found.readAll()) {
        const expected = blocks < 3 ? blocks : blocks + 4;
        assert.deepEqual(payload, content(expected));
        blocks += 1;
      }
      assert.equal(blocks, 5);
    });
  }
});

test("disk full: an append that one replica may have taken is told at once as in doubt, and is there or not when there is room", async () => {
  let inDoubt = 0;
  for (const free of nodeNames) {
    const stamp = new Stamp(45, { journalSegmentBytes: 4 * mebibyte });
    await stamp.sim.run(async () => {
      const stream = await stamp.open("/a", 1);
      assert.equal((await write(stream, 3)).refused, undefined);
      // Nobody has looked at the disks yet: the open extent is written to, and a secondary can't take it.
      for (const node of nodeNames) if (node !== free) leaveFree(stamp, node, 100_000);
      for (let i = 3; ; i++) {
        const askedMs = stamp.sim.nowMs;
        const outcome = await stream.append([content(i)], { timeoutMs: 30_000 });
        assert.ok(stamp.sim.nowMs - askedMs < 5_000, `${stamp.sim.nowMs - askedMs} ms`);
        assert.ok(i < 1_000);
        if (outcome.ok) continue;
        assert.equal(outcome.failure.reason, "noPlacement", outcome.failure.message);
        if (outcome.failure.applied === "unknown") inDoubt += 1;
        break;
      }
      for (const node of nodeNames) leaveFree(stamp, node, 2 ** 33);
      await stamp.sim.sleep(3_000);
      assert.equal((await write(stream, 1, 7)).refused, undefined);
    });
  }
  assert.ok(inDoubt > 0);
});

test("disk full: an append without a deadline waits for room unless it is told not to", async () => {
  const stamp = new Stamp(44, { journalSegmentBytes: 4 * mebibyte });
  await stamp.sim.run(async () => {
    const stream = await fullBehind(stamp);
    const waits = stream.append([content(3)], { timeoutMs: Number.POSITIVE_INFINITY });
    await stamp.sim.sleep(20_000);
    assert.equal(stream.pendingAppends, 1);
    for (const node of nodeNames) leaveFree(stamp, node, 2 ** 33);
    unwrap(await waits);
  });
});
