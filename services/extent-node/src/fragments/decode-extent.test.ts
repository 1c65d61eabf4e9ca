/** Decodings onto a node that still has a replica of the extent which nobody sealed: it was away when the others were. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { Coding } from "../testing/coding.ts";
import { pattern, reasonOf, stampId } from "../testing/harness.ts";

const timeoutMs = 60_000;
const node = "en-7";

/** Gives `node` an open replica of the coded extent, with these blocks. */
async function leaveReplica({ cluster, id }: Coding, blocks: readonly Uint8Array[]): Promise<void> {
  const replicas = [{ nodeId: node, address: node, diskId: String(cluster.facts(node).diskId) }];
  const identity = { smTerm: BigInt(cluster.smTerm), extentId: BigInt(id), ownerEpoch: 1n, version: 1n };
  unwrap(await cluster.node(node).createExtent({ ...identity, replicas, stampId }, { timeoutMs }));
  let end = 0;
  for (const block of blocks) end = Number(unwrap(await cluster.append(node, id, end, [block])).endBytes);
}

const cases: readonly (readonly [name: string, blocks: readonly Uint8Array[]])[] = [
  ["is empty", []],
  ["is shorter", [pattern(400_000, 0)]],
  ["is shorter and has other content", [pattern(300_000, 77)]],
  ["is shorter and has small blocks of other content", Array.from({ length: 5 }, (_, i) => pattern(3_000, i + 50))],
  ["is as long and has other content", Array.from({ length: 5 }, (_, i) => pattern(400_000 + i, i + 9))],
  ["has no block that ends where the extent does", Array.from({ length: 3 }, (_, i) => pattern(850_000, i))],
];

for (const [name, blocks] of cases) {
  test(`decoding: an unsealed replica that ${name} is made anew, and stays what it is over a loss of power`, async () => {
    const coding = new Coding(19, "rs-4-2", 2);
    const { cluster } = coding;
    await coding.run(async () => {
      cluster.givenVersion = 50;
      unwrap(await coding.make());
      await leaveReplica(coding, blocks);
      assert.equal(unwrap(await coding.decode(node, 10n)).checksum, coding.checksum);
      assert.deepEqual(await coding.raw(node), coding.content);
      cluster.sim.crash(node, { unsynced: "lost" });
      cluster.sim.restart(node);
      await cluster.ready(node);
      const { sealedLengthBytes, version } = await cluster.replica(node, coding.id);
      assert.deepEqual([sealedLengthBytes, version], [BigInt(coding.content.length), 10n]);
      assert.deepEqual(await coding.raw(node), coding.content);
      assert.equal(unwrap(await coding.decode(node, 10n)).checksum, coding.checksum, "all of it is read again");
    });
  });
}

test("decoding: an unsealed replica that is fenced at a higher version is left alone", async () => {
  const coding = new Coding(19, "rs-4-2", 2);
  const { cluster } = coding;
  await coding.run(async () => {
    cluster.givenVersion = 50;
    unwrap(await coding.make());
    await leaveReplica(coding, [pattern(400_000, 3)]);
    unwrap(await cluster.fence(node, coding.id, cluster.smTerm, 11));
    assert.equal(reasonOf(await coding.decode(node, 10n)), "extentStale");
    const { durableBytes, sealedLengthBytes } = await cluster.replica(node, coding.id);
    assert.ok(durableBytes > 400_000n);
    assert.equal(sealedLengthBytes, undefined);
  });
});
