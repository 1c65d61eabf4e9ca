/** The journal of a new disk begins with a small segment and grows when it is used; what was acknowledged survives the loss of power meanwhile. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { Cluster, pattern } from "../testing/harness.ts";
import { firstSegmentBytes } from "./segment-pool.ts";

const mebibyte = 1024 * 1024;
const segmentBytes = 16 * mebibyte;
const config = { journalSegmentBytes: segmentBytes, appendBytesMax: 8 * mebibyte, inPlaceBytesMin: 0 };
const recordBytes = 200_000;
const timeoutMs = 60_000;

const segmentsOf = ({ sim }: Cluster, name: string): string[] =>
  sim
    .disk(name)
    .paths()
    .filter((path) => path.endsWith(".segment"))
    .map((path) => `${path.slice(path.lastIndexOf("/") + 1)} ${sim.disk(name).sizeOf(path)}`)
    .sort();

test("journal: the first segment has room for any record and any batch, and is no larger than the others", () => {
  const sizes = { journalSegmentsMax: 4, reserveBytes: 0 };
  assert.equal(firstSegmentBytes({ ...sizes, journalSegmentBytes: 64 * mebibyte, journalBatchBytesMax: 8 * mebibyte }), 9 * mebibyte);
  assert.equal(firstSegmentBytes({ ...sizes, journalSegmentBytes: 64 * mebibyte, journalBatchBytesMax: 20 * mebibyte }), 21 * mebibyte);
  assert.equal(firstSegmentBytes({ ...sizes, journalSegmentBytes: mebibyte, journalBatchBytesMax: 8 * mebibyte }), mebibyte);
});

test("journal: a new disk holds one small segment; a whole one is made when it is half full, and both stay", async () => {
  const cluster = new Cluster(61, { nodes: ["en-1"], config });
  const { sim } = cluster;
  await cluster.run(async () => {
    await cluster.ready("en-1");
    await sim.sleep(2_000);
    const small = `000001.segment ${9 * mebibyte}`;
    const reserve = `reserve.segment ${4 * mebibyte}`;
    assert.deepEqual(segmentsOf(cluster, "en-1"), [small, reserve]);
    const id = await cluster.create(["en-1"]);
    let end = 0n;
    const append = async (bytes: number): Promise<void> => {
      for (let left = bytes; left > 0; left -= recordBytes)
        end = unwrap(await cluster.append("en-1", id, Number(end), [pattern(recordBytes, Number(end % 97n))], 1, timeoutMs)).endBytes;
    };
    await append(3 * mebibyte);
    await sim.sleep(2_000);
    assert.deepEqual(segmentsOf(cluster, "en-1"), [small, reserve], "it is not half full");
    await append(2 * mebibyte);
    await sim.sleep(2_000);
    const whole = `000002.segment ${segmentBytes}`;
    assert.deepEqual(segmentsOf(cluster, "en-1"), [small, whole, reserve]);
    // The largest append goes into the small segment when that is used again.
    await append(40 * mebibyte);
    const largest = [pattern(4_190_000, 5), pattern(4_190_000, 6)];
    for (let i = 0; i < 6; i++) end = unwrap(await cluster.append("en-1", id, Number(end), largest, 1, timeoutMs)).endBytes;
    assert.ok(segmentsOf(cluster, "en-1").includes(small));
    sim.crash("en-1", { unsynced: "lost" });
    sim.restart("en-1");
    await cluster.ready("en-1");
    assert.ok(segmentsOf(cluster, "en-1").includes(small), "a restart does not make it larger");
    assert.equal((await cluster.replica("en-1", id)).durableBytes, end);
  });
});

test("journal: the power goes while it grows: what was acknowledged is there, and it goes on", async () => {
  let grown = 0;
  for (let seed = 0; seed < 5; seed++) {
    const cluster = new Cluster(seed, { nodes: ["en-1"], config });
    const { sim } = cluster;
    const { prng } = sim;
    await cluster.run(async () => {
      await cluster.ready("en-1");
      for (let round = 0; round < 2; round++) {
        const id = await cluster.create(["en-1"]);
        let acknowledged = 0n;
        let running = true;
        const appending = (async () => {
          while (running) {
            const appended = await cluster.append("en-1", id, Number(acknowledged), [pattern(recordBytes, round)], 1, timeoutMs);
            if (!appended.ok) return;
            acknowledged = appended.value.endBytes;
          }
        })();
        // About the time in which half of the small segment is written, and the next one made.
        await sim.until(() => acknowledged > BigInt(4 * mebibyte + prng.below(mebibyte)), 60_000, "half of it is written");
        await sim.sleep(prng.float() * 4);
        sim.crash("en-1", { unsynced: "lost" });
        running = false;
        await appending;
        sim.restart("en-1");
        await cluster.ready("en-1");
        const { durableBytes } = await cluster.replica("en-1", id);
        assert.ok(durableBytes >= acknowledged, `seed ${seed}, round ${round}: ${durableBytes} of ${acknowledged}`);
      }
      if (segmentsOf(cluster, "en-1").length > 2) grown += 1;
    });
  }
  assert.ok(grown > 0);
});
