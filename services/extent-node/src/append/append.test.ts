import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, extentId, unwrap } from "@stamp/base";
import { encodeFrameHeader } from "@stamp/extent";
import { type AppendResponse, ExtentNode } from "@stamp/wire";
import { Cluster, names, pattern, reasonOf } from "../testing/harness.ts";

const timeoutMs = 5_000;

test("append: pipelined appends are acknowledged in order and read back the same from every replica", async () => {
  const cluster = new Cluster(2);
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    const sizes = [1, 1000, 65_536, 65_537, 300_000, 17];
    const calls: Promise<unknown>[] = [];
    const places: { offset: bigint; bytes: Uint8Array }[] = [];
    let end = 0;
    const order: number[] = [];
    for (const [i, size] of sizes.entries()) {
      const bytes = pattern(size, i);
      const expected = end;
      end += 16 + 4 * Math.ceil(size / 65_536) + size;
      calls.push(
        cluster.append("en-1", id, expected, [bytes]).then((outcome) => {
          const answer: AppendResponse = unwrap(outcome);
          order.push(i);
          places.push({ offset: answer.offsetsBytes[0] as bigint, bytes });
          assert.ok(answer.committedBytes >= answer.endBytes);
        }),
      );
    }
    await Promise.all(calls);
    assert.deepEqual(order, [0, 1, 2, 3, 4, 5]);
    for (const name of names) {
      for (const { offset, bytes } of places) {
        assert.deepEqual(unwrap(await cluster.read(name, id, offset, bytes.length)).payload, bytes);
      }
      const part = places[4] as { offset: bigint; bytes: Uint8Array };
      const middle = unwrap(await cluster.read(name, id, part.offset + 200_001n, 70_000));
      assert.deepEqual(middle.payload, part.bytes.subarray(200_001, 270_001));
      assert.equal((await cluster.replica(name, id)).durableBytes, BigInt(end));
      assert.equal(reasonOf(await cluster.read(name, id, part.offset - 1n, 10)), "badPlace");
    }
  });
});

test("append: several blocks in one append are atomic and each has its place", async () => {
  const cluster = new Cluster(3);
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    const blocks = [pattern(10, 1), pattern(100_000, 2), pattern(5, 3)];
    const answer = unwrap(await cluster.append("en-1", id, 0, blocks));
    assert.equal(answer.offsetsBytes.length, 3);
    for (const [i, block] of blocks.entries()) {
      assert.deepEqual(unwrap(await cluster.read("en-3", id, answer.offsetsBytes[i] as bigint, block.length)).payload, block);
    }
    const whole = unwrap(await cluster.node("en-1").readBlocks({ extentId: BigInt(id), offsetBytes: 0n, maxBytes: 0 }, { timeoutMs }));
    assert.deepEqual(whole.payload, blocks);
    assert.equal(whole.end, false);
    assert.equal(whole.nextOffsetBytes, answer.endBytes);
  });
});

test("append: a gap, a lower owner epoch, a secondary and an unknown extent are refused, and nothing happened", async () => {
  const cluster = new Cluster(4);
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create(names, 5);
    assert.equal(reasonOf(await cluster.append("en-1", id, 100, [pattern(10, 1)], 5)), "offsetGap");
    assert.equal(reasonOf(await cluster.append("en-1", id, 0, [pattern(10, 1)], 4)), "staleOwnerEpoch");
    assert.equal(reasonOf(await cluster.append("en-2", id, 0, [pattern(10, 1)], 5)), "notPrimary");
    assert.equal(reasonOf(await cluster.append("en-1", 999, 0, [pattern(10, 1)], 5)), "unknownExtent");
    assert.equal(reasonOf(await cluster.append("en-1", id, 0, [new Uint8Array(0)], 5)), "badRequest");
    assert.equal((await cluster.replica("en-1", id)).durableBytes, 0n);
    assert.equal(reasonOf(await cluster.append("en-1", id, 0, [pattern(10, 1)], 5)), "ok");
  });
});

test("append: a secondary that is cut off fails it and everything after; the seal decides, the shorter replica copies", async () => {
  const cluster = new Cluster(5);
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    const first = unwrap(await cluster.append("en-1", id, 0, [pattern(1000, 1)]));
    cluster.sim.partition(["en-1"], ["en-3"]);
    const end = Number(first.endBytes);
    const [second, third] = await Promise.all([
      cluster.append("en-1", id, end, [pattern(500, 2)]),
      cluster.append("en-1", id, end + 520, [pattern(500, 3)]),
    ]);
    assert.equal(reasonOf(second), "extentFailed");
    assert.equal(second.ok ? "" : second.failure.applied, "unknown");
    assert.equal(reasonOf(third), "extentFailed");
    assert.equal(reasonOf(await cluster.append("en-1", id, end + 1040, [pattern(5, 4)])), "extentFailed");
    const one = unwrap(await cluster.fence("en-1", id));
    const two = unwrap(await cluster.fence("en-2", id));
    assert.equal(one.durableBytes, BigInt(end + 1040));
    assert.equal(one.committedBytes, first.endBytes);
    assert.equal(two.durableBytes, BigInt(end + 1040));
    const length = end + 1040;
    const sealedOne = unwrap(await cluster.seal("en-1", id, length));
    const sealedTwo = unwrap(await cluster.seal("en-2", id, length));
    assert.equal(sealedOne.checksum, sealedTwo.checksum);
    cluster.sim.heal();
    const sealedThree = unwrap(await cluster.seal("en-3", id, length, ["en-1", "en-2"]));
    assert.equal(sealedThree.checksum, sealedOne.checksum);
    const blocks = unwrap(await cluster.node("en-3").readBlocks({ extentId: BigInt(id), offsetBytes: 0n, maxBytes: 0 }, { timeoutMs }));
    assert.deepEqual(blocks.payload, [pattern(1000, 1), pattern(500, 2), pattern(500, 3)]);
    assert.equal(blocks.end, true);
  });
});

test("append: a replica that stands still is named by the primary before the caller gives up", async () => {
  for (const [still, named] of [
    [["en-3"], "en-3"],
    [["en-2", "en-3"], "en-2,en-3"],
  ] as const) {
    const cluster = new Cluster(8);
    await cluster.run(async () => {
      await cluster.allReady();
      const id = await cluster.create();
      for (const name of still) cluster.sim.pause(name);
      const outcome = await cluster.append("en-1", id, 0, [pattern(500, 2)], 1, 800);
      assert.ok(!outcome.ok && outcome.failure.reason === "extentFailed", "the primary answers, not the caller's own clock");
      assert.equal(outcome.failure.details?.lostReplica, named);
    });
  }
});

test("append: a primary whose own journal is slow names itself", async () => {
  const cluster = new Cluster(9);
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    cluster.sim.disk("en-1").slowFactor = 100_000;
    const outcome = await cluster.append("en-1", id, 0, [pattern(500, 2)], 1, 800);
    assert.ok(!outcome.ok && outcome.failure.details?.lostReplica === "en-1", JSON.stringify(outcome.ok || outcome.failure));
  });
});

test("append: every replica answers a read of blocks with what was acknowledged, and nothing else, also when the primary is away", async () => {
  const cluster = new Cluster(7);
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    const { endBytes } = unwrap(await cluster.append("en-1", id, 0, [pattern(1000, 1)]));
    const blocks = async (node: string, offsetBytes = 0n) =>
      unwrap(await cluster.node(node).readBlocks({ extentId: BigInt(id), offsetBytes, maxBytes: 0 }, { timeoutMs }));
    for (const node of ["en-1", "en-2", "en-3"]) {
      const { payload, end, nextOffsetBytes } = await blocks(node);
      assert.deepEqual([payload, end, nextOffsetBytes], [[pattern(1000, 1)], false, endBytes], node);
    }
    // The second append reaches the secondary en-2 alone: nobody may read it.
    cluster.sim.partition(["en-3"], ["en-1"]);
    const second = cluster.append("en-1", id, Number(endBytes), [pattern(500, 2)]);
    await cluster.sim.sleep(50);
    assert.deepEqual((await blocks("en-2", endBytes)).payload, []);
    await second;
    cluster.sim.crash("en-1", { stayDown: true });
    assert.deepEqual((await blocks("en-2")).payload, [pattern(1000, 1)]);
  });
});

test("append: many segments of the journal are written, released and used again", async () => {
  const cluster = new Cluster(6, { config: { journalSegmentsMax: 2, pendingBytesMax: 300_000 } });
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    let end = 0;
    const places: bigint[] = [];
    for (let i = 0; i < 30; i++) {
      const answer = unwrap(await cluster.append("en-1", id, end, [pattern(200_000, i)]));
      end = Number(answer.endBytes);
      places.push(answer.offsetsBytes[0] as bigint);
    }
    assert.ok(Number(cluster.facts("en-2").journalSegments) <= 2);
    for (const [i, place] of places.entries()) {
      assert.deepEqual(unwrap(await cluster.read("en-2", id, place, 200_000)).payload, pattern(200_000, i));
    }
  });
});

test("append: a secondary takes records from the primary of the extent only, by the name that the caller's certificate proves", async () => {
  const nodes = ["extent-node-1", "extent-node-2", "extent-node-3", "extent-node-4"];
  const cluster = new Cluster(31, { nodes });
  await cluster.run(async () => {
    for (const name of nodes) await cluster.ready(name);
    const id = await cluster.create(nodes.slice(0, 3));
    const payload = pattern(100, 1);
    unwrap(await cluster.append("extent-node-1", id, 0, [payload]));
    const replica = await cluster.replica("extent-node-2", id);
    const { crc32c } = cluster.tester.digest;
    const written = concatBytes([encodeFrameHeader(crc32c, extentId(id), Number(replica.durableBytes), payload), payload]);
    const request = {
      extentId: BigInt(id),
      ownerEpoch: 1n,
      offsetBytes: replica.durableBytes,
      committedBytes: 0n,
      checksum: crc32c(written),
      primaryIncarnation: 1n,
      payload: [written],
    };
    for (const name of ["extent-node-3", "extent-node-4"]) {
      const answer = await cluster.sim.world(name).transport.client("extent-node-2", ExtentNode).replicate(request, { timeoutMs });
      assert.equal(reasonOf(answer), "unauthorized", name);
    }
    assert.equal((await cluster.replica("extent-node-2", id)).durableBytes, replica.durableBytes);
    unwrap(await cluster.append("extent-node-1", id, Number(replica.durableBytes), [payload]));
  });
});
