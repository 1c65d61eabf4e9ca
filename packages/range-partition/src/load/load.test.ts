/** Loading checks what it finds: a log with a hole or the state of another range is refused, never served. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { frameRecord, ownerEpoch, present, type RuleName, unwrap, utf8 } from "@stamp/base";
import { encodeCommit, encodeState, type LogPlace } from "@stamp/lsm";
import type { Transport } from "@stamp/ports";
import type { Place } from "@stamp/stream-client";
import { LockService, MetadataStore, StreamManager } from "@stamp/wire";
import { RangePartition } from "../index.ts";
import { nodeNames, put, read, Stamp, streamsOf, write } from "../testing/harness.ts";

/** Appends a commit as an owner of this epoch would, beside everything that knows what comes next. */
async function appendCommit(stamp: Stamp, epoch: number, firstSequence: number): Promise<void> {
  const client = stamp.client(`stranger-${epoch}`);
  const log = unwrap(await client.openForOwner(streamsOf("r1").commitLog, ownerEpoch(epoch), { create: false, timeoutMs: 10_000 }));
  const writes = [put("k", `of epoch ${epoch}`)];
  const record = { ownerEpoch: epoch, firstSequence, lastTicket: 100, transactions: [writes] };
  unwrap(await log.append([encodeCommit(record, stamp.sim.world("x").digest.crc32c)], { timeoutMs: 10_000 }));
  await log.close();
}

test("load: a commit log in which one is missing is refused as damaged; one that goes on without a gap is taken", async () => {
  const stamp = new Stamp(1);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    for (let i = 0; i < 5; i++) unwrap(await write(partition, "l", [put("k", `value ${i}`)]));
    const { sequence } = partition.stats;
    await partition.close();
    await appendCommit(stamp, 2, sequence + 1);
    const next = await stamp.open(3);
    assert.equal(await read(next, "k"), "of epoch 2");
    await next.close();
    await appendCommit(stamp, 4, sequence + 3);
    const refused = await stamp.load(5);
    assert.ok(!refused.ok && refused.failure.reason === "damaged", JSON.stringify(refused.ok || refused.failure));
    assert.match(refused.failure.message, new RegExp(`the commit log goes from ${sequence + 1} to ${sequence + 3}`));
  });
});

test("load: the state of another range is refused as damaged", async () => {
  const stamp = new Stamp(2);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await write(partition, "l", [put("k", "value")]));
    unwrap(await partition.checkpoint());
    await partition.close();
    const other = await RangePartition.load(stamp.sim.world("ps"), stamp.client("ps"), {
      rangeId: "r2",
      streams: streamsOf("r1"),
      ownerEpoch: ownerEpoch(2),
      lowKey: utf8(""),
      highKey: utf8("~"),
      timeoutMs: 60_000,
    });
    assert.ok(!other.ok && other.failure.reason === "damaged", JSON.stringify(other.ok || other.failure));
    assert.match(other.failure.message, /the metadata of r1 where that of r2 belongs/);
    assert.equal(await read(await stamp.open(3), "k"), "value", "its own range is not hurt");
  });
});

test("load: what is in checkpoints is not replayed again, though the log still has it (rule replayBySequence)", async () => {
  const replayed = async (without: readonly RuleName[]): Promise<number> => {
    const stamp = new Stamp(3, { without });
    return stamp.sim.run(async () => {
      const partition = await stamp.open(1);
      for (let i = 0; i < 5; i++) unwrap(await write(partition, "l", [put(`k${i}`, "written out")]));
      unwrap(await partition.checkpoint());
      for (let i = 0; i < 2; i++) unwrap(await write(partition, "l", [put(`k${i}`, "in the log only")]));
      const { sequence } = partition.stats;
      await partition.close();
      const next = await stamp.open(2);
      assert.equal(next.stats.sequence, sequence);
      assert.equal(next.stats.memoryTableEntries, 2, "replay begins behind what is written out");
      assert.equal(await read(next, "k0"), "in the log only");
      assert.equal(await read(next, "k4"), "written out");
      // Before it has a commit of its own: it only knows the extent in which the log ends.
      unwrap(await next.checkpoint());
      await next.close();
      return (await stamp.open(3)).stats.memoryTableEntries;
    });
  };
  assert.equal(await replayed([]), 0);
  assert.equal(await replayed(["replayBySequence"]), 7);
});

test("load: where in the log replay begins counts only for the extent that it names", async () => {
  const entries = async (logStart: (behind: LogPlace) => LogPlace): Promise<number> => {
    const stamp = new Stamp(4, { without: ["replayBySequence"] });
    return stamp.sim.run(async () => {
      const partition = await stamp.open(1);
      const places: Place[] = [];
      for (let i = 0; i < 5; i++) unwrap(await write(partition, "l", [put(`k${i}`, "value")]));
      await partition.close();
      const client = stamp.client("stranger");
      const open = async (name: string) => unwrap(await client.openForOwner(name, ownerEpoch(2), { create: false, timeoutMs: 10_000 }));
      const [log, metadata] = [await open(streamsOf("r1").commitLog), await open(streamsOf("r1").metadata)];
      for await (const { place } of log.readAll()) places.push(place);
      const last = present(places.at(-1), "the last commit");
      const state = {
        rangeId: "r1",
        ownerEpoch: 2,
        recordNumber: 1,
        checkpoints: [],
        checkpointedSequence: 5,
        lastTicket: 5,
        logStartExtentId: last.extentId,
        logStart: logStart({ extentId: last.extentId, offsetBytes: last.offsetBytes + last.lengthBytes }),
        nextCheckpointId: 1,
      };
      unwrap(await metadata.append([encodeState(state, stamp.sim.world("x").digest.crc32c)], { timeoutMs: 10_000 }));
      await Promise.all([log.close(), metadata.close()]);
      return (await stamp.open(3)).stats.memoryTableEntries;
    });
  };
  assert.equal(await entries((behind) => behind), 0);
  assert.equal(await entries(({ extentId, offsetBytes }) => ({ extentId: extentId + 1, offsetBytes })), 5);
});

test("load: all streams of a range are opened by one call, of one transaction", async () => {
  const stamp = new Stamp(7);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await write(partition, "l", [put("k", "v")]));
    const world = stamp.sim.world("counted");
    const calls: string[] = [];
    const client = ((address: string, service: typeof StreamManager) => {
      const real = world.transport.client(address, service);
      if (service !== StreamManager) return real;
      return new Proxy(real, {
        get: (target, name) => {
          calls.push(String(name));
          return Reflect.get(target, name);
        },
      });
    }) as Transport["client"];
    const transport = new Proxy(world.transport, { get: (target, name) => (name === "client" ? client : Reflect.get(target, name)) });
    const next = unwrap(await stamp.load(2, "counted", { world: { ...world, transport } }));
    assert.deepEqual(calls, ["openStreams"]);
    assert.equal(await read(next, "k"), "v");
  });
});

/** Has the stream manager tell a lineage of the metadata store, as after a restore. */
async function restore({ sim }: Stamp): Promise<void> {
  const world = sim.world("restore");
  const value = frameRecord(0x4c, 1, utf8(JSON.stringify({ number: 1_000_000, wallMs: 1 })), world.digest.crc32c);
  const leaseName = "stream-manager";
  await sim.stop("sm1");
  const { leaseEpoch } = unwrap(await world.transport.client("lock", LockService).getLease({ name: leaseName }, { timeoutMs: 5_000 }));
  const lineage = { fence: { leaseName, leaseEpoch }, conditions: [], writes: [{ key: "lineage", value }] };
  unwrap(await world.transport.client("lock", MetadataStore).transact(lineage, { timeoutMs: 5_000 }));
  sim.restart("sm1");
}

for (const without of [[], ["restoredLogsMayLack"]] satisfies RuleName[][])
  test(`load: a commit log that lacks commits after a restore ${without.length === 0 ? "is replayed over the gap, also by later owners" : "keeps the range away without the rule"}`, async () => {
    const stamp = new Stamp(11, { without });
    await stamp.sim.run(async () => {
      const partition = await stamp.open(1);
      for (let i = 0; i < 5; i++) unwrap(await write(partition, "l", [put("k", `value ${i}`)]));
      const { sequence } = partition.stats;
      await partition.close();
      await appendCommit(stamp, 2, sequence + 4);
      assert.equal((await stamp.load(3)).ok, false, "nobody has restored anything");
      await restore(stamp);
      const loaded = await stamp.load(4);
      if (without.length > 0) {
        assert.ok(!loaded.ok && loaded.failure.reason === "damaged");
        return;
      }
      const served = unwrap(loaded);
      assert.equal(await read(served, "k"), "of epoch 2");
      assert.deepEqual(served.stats.losses, { commits: [[sequence + 1, sequence + 3]], checkpoints: 0 });
      unwrap(await write(served, "l", [put("k", "after")]));
      await served.close();
      const again = await stamp.open(5);
      unwrap(await again.checkpoint());
      await again.close();
      const last = await stamp.open(6);
      assert.equal(await read(last, "k"), "after");
      assert.deepEqual(last.stats.losses, { commits: [[sequence + 1, sequence + 3]], checkpoints: 0 });
    });
  });

/** Takes the first extent of a stream from all disks, as if it had been deleted after the copy of the metadata store. */
async function loseFirst({ sim }: Stamp, stream: string): Promise<void> {
  await sim.sleep(60_000);
  const manager = sim.world("look").transport.client("sm1", StreamManager);
  const { extents } = unwrap(await manager.getStream({ name: stream }, { timeoutMs: 5_000 }));
  const file = `${present(extents[0], "the first extent").extentId.toString(16).padStart(14, "0")}.extent`;
  for (const node of nodeNames) {
    await sim.stop(node);
    for (const path of sim.disk(node).paths()) if (path.endsWith(file)) sim.disk(node).lose(path);
    sim.restart(node);
  }
  await sim.sleep(60_000);
}

test("load: records that no node has any more, before the newest one, keep no range away after a restore", async () => {
  const stamp = new Stamp(12);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await write(partition, "l", [put("k", "value")]));
    unwrap(await partition.checkpoint());
    await partition.close();
    // The record once more, in the extent of the next owner, who does not truncate.
    const name = streamsOf("r1").metadata;
    const metadata = unwrap(await stamp.client("next").openForOwner(name, ownerEpoch(2), { create: false, timeoutMs: 10_000 }));
    const records: Uint8Array[] = [];
    for await (const { payload } of metadata.readAll()) records.push(payload.slice());
    unwrap(await metadata.append([present(records.at(-1), "the record")], { timeoutMs: 10_000 }));
    await metadata.close();
    await loseFirst(stamp, streamsOf("r1").metadata);
    assert.equal((await stamp.load(3)).ok, false, "nobody has restored anything");
    await restore(stamp);
    const loaded = await stamp.open(4);
    assert.equal(await read(loaded, "k"), "value");
  });
});

test("load: a log whose first extent is lost after a restore is replayed from the next one, and the gap is told", async () => {
  const stamp = new Stamp(13);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await write(partition, "l", [put("lost", "value")]));
    await partition.close();
    await appendCommit(stamp, 2, partition.stats.sequence + 1);
    await loseFirst(stamp, streamsOf("r1").commitLog);
    assert.equal((await stamp.load(3)).ok, false, "nobody has restored anything");
    await restore(stamp);
    const loaded = await stamp.open(4);
    assert.deepEqual([await read(loaded, "lost"), await read(loaded, "k")], [undefined, "of epoch 2"]);
    assert.ok((loaded.stats.losses?.commits.length ?? 0) > 0);
  });
});
