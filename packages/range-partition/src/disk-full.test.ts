import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, type Outcome, type RuleName, unwrap, utf8 } from "@stamp/base";
import type { RangePartition } from "./index.ts";
import { nodeNames, put, read, Stamp, write } from "./testing/harness.ts";

const mebibyte = 1 << 20;

test("disk full: a checkpoint that finds no room waits for it; reads go on meanwhile", async () => {
  const stamp = new Stamp(31);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await write(partition, "a", [put("key", "value")]));
    const sizes = nodeNames.map((name) => stamp.sim.disk(name).options);
    for (const name of nodeNames) {
      const disk = stamp.sim.disk(name);
      disk.options = { ...disk.options, totalBytes: disk.usedBytes() + 100 * mebibyte };
    }
    await stamp.sim.sleep(2_000);
    let written = false;
    const checkpoint = partition.checkpoint().then((outcome) => {
      written = true;
      return outcome;
    });
    for (let i = 0; i < 60; i++) {
      await stamp.sim.sleep(1_000);
      assert.equal(await read(partition, "key"), "value");
    }
    assert.equal(written, false);
    for (const [at, name] of nodeNames.entries()) stamp.sim.disk(name).options = sizes[at] as (typeof sizes)[number];
    unwrap(await checkpoint);
    assert.equal(partition.stats.checkpoints, 1);
    unwrap(await write(partition, "a", [put("key", "other")]));
    await partition.close();
  });
});

function setFree(stamp: Stamp, freeBytes: number): void {
  for (const name of nodeNames) {
    const disk = stamp.sim.disk(name);
    disk.options = { ...disk.options, totalBytes: disk.usedBytes() + freeBytes };
  }
}

/** Adds one to a number, decided by what is decided and not durable. `between`: runs after the number was read. */
const increment = (partition: RangePartition, between: () => Promise<void> = async () => {}): Promise<Outcome<number>> =>
  partition.transact(
    utf8("q"),
    async (tx) => {
      const value = await tx.get(utf8("n"));
      await between();
      const next = Number(value === undefined ? "0" : fromUtf8(value)) + 1;
      return { writes: [put("n", `${next}`)], result: next };
    },
    { timeoutMs: 30_000, pipelined: true },
  );

const assertNotDone = (outcome: Outcome<unknown>): void => {
  assert.ok(!outcome.ok);
  assert.deepEqual([outcome.failure.applied, outcome.failure.reason], ["no", "noPlacement"], outcome.failure.message);
};

test("disk full: the first writes are refused at once as not done, the range stays, and writes go on when there is room", async () => {
  const stamp = new Stamp(32);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await write(partition, "a", [put("key", "value")]));
    unwrap(await increment(partition));
    for (let round = 0; round < 3; round++) {
      setFree(stamp, 100 * mebibyte);
      await stamp.sim.sleep(2_000);
      const askedMs = stamp.sim.nowMs;
      const plain = [0, 1, 2].map((i) => write(partition, `lock ${i}`, [put(`lost ${i}`, "value")], 30_000));
      const pipelined = [0, 1, 2].map(() => increment(partition));
      for (const outcome of await Promise.all([...plain, ...pipelined])) assertNotDone(outcome);
      assert.ok(stamp.sim.nowMs - askedMs < 1_000, `${stamp.sim.nowMs - askedMs} ms`);
      assert.equal(await read(partition, "key"), "value");
      setFree(stamp, 2 ** 33);
      await stamp.sim.sleep(3_000);
      unwrap(await write(partition, "a", [put(`round ${round}`, "value")]));
      assert.equal(unwrap(await increment(partition)), round + 2);
    }
    assert.deepEqual(stamp.lost, []);
    await partition.close();
    const next = await stamp.open(2);
    assert.equal(await read(next, "n"), "4");
    for (let i = 0; i < 3; i++) {
      assert.equal(await read(next, `lost ${i}`), undefined);
      assert.equal(await read(next, `round ${i}`), "value");
    }
    await next.close();
  });
});

/** The outcome of a transaction that reads 2, which is taken back, and is decided when there is room again; and what an owner finds then. */
async function decidedByLost(without: readonly RuleName[]): Promise<{ outcome: Outcome<number>; value: string | undefined }> {
  const stamp = new Stamp(33, { without });
  let found: { outcome: Outcome<number>; value: string | undefined } | undefined;
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await increment(partition));
    setFree(stamp, 100 * mebibyte);
    await stamp.sim.sleep(2_000);
    const first = increment(partition);
    const second = increment(partition, () => stamp.sim.sleep(20_000));
    assertNotDone(await first);
    setFree(stamp, 2 ** 33);
    await stamp.sim.sleep(3_000);
    const outcome = await second;
    found = { outcome, value: await read(partition, "n") };
    assert.deepEqual(stamp.lost, []);
    await partition.close();
  });
  assert.ok(found);
  return found;
}

test("disk full: a transaction that was decided by a write which found no room is refused, also when there is room again", async () => {
  const { outcome, value } = await decidedByLost([]);
  assertNotDone(outcome);
  assert.equal(value, "1");
  const without = await decidedByLost(["decidedByLostRefused"]);
  assert.equal(unwrap(without.outcome), 3, "without the rule it counts on a write that never was");
});

test("disk full: who waits for a write that finds no room hears so at once; who only reads is answered with what is durable", async () => {
  const stamp = new Stamp(34);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await increment(partition));
    setFree(stamp, 100 * mebibyte);
    await stamp.sim.sleep(2_000);
    const askedMs = stamp.sim.nowMs;
    const first = increment(partition);
    const options = { timeoutMs: 30_000, pipelined: true };
    const looks = (pauseMs: number, pipelined: boolean): Promise<Outcome<string>> =>
      partition.transact(
        utf8("q"),
        async (tx) => {
          const value = fromUtf8((await tx.get(utf8("n"))) ?? utf8("0"));
          await stamp.sim.sleep(pauseMs);
          return { writes: [], result: value };
        },
        { ...options, pipelined },
      );
    const told = looks(0, true);
    const slow = looks(500, true);
    const plain = looks(0, false);
    for (const outcome of await Promise.all([first, told, slow])) assertNotDone(outcome);
    assert.equal(unwrap(await plain), "1");
    assert.ok(stamp.sim.nowMs - askedMs < 1_000, `${stamp.sim.nowMs - askedMs} ms`);
    setFree(stamp, 2 ** 33);
    await stamp.sim.sleep(3_000);
    assert.deepEqual(stamp.lost, []);
    await partition.close();
  });
});
