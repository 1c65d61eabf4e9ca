/** Pipelined transactions: decided one behind the other, durable together, never one without those before it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, type Outcome, type RuleName, unwrap, utf8 } from "@stamp/base";
import type { RangePartition, RowWrite, Transaction } from "../index.ts";
import { nodeNames, put, read, remove, rows, Stamp } from "../testing/harness.ts";
import { isMoving } from "../testing/leave-harness.ts";
import { leave } from "../testing/reshape-harness.ts";
import { Pipelines } from "./pipelines.ts";

const pipelined = <T>(
  partition: RangePartition,
  decide: (tx: Transaction) => Promise<{ writes: readonly RowWrite[]; result: T }>,
  timeoutMs = 60_000,
): Promise<Outcome<T>> => partition.transact(utf8("q"), decide, { timeoutMs, pipelined: true });

const increment = (partition: RangePartition, timeoutMs?: number): Promise<Outcome<number>> =>
  pipelined(
    partition,
    async (tx) => {
      const next = Number(await textOf(tx, "n")) + 1;
      return { writes: [put("n", `${next}`), put(`log${next}`, "x")], result: next };
    },
    timeoutMs,
  );

async function textOf(tx: Transaction, key: string): Promise<string> {
  const value = await tx.get(utf8(key));
  return value === undefined ? "0" : fromUtf8(value);
}

test("pipelined: hundreds of one lock key see each other and share few commit records", async () => {
  const stamp = new Stamp(11);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    for (let round = 0; round < 3; round++) {
      const results = await Promise.all(Array.from({ length: 200 }, () => increment(partition)));
      assert.deepEqual(
        results.map(unwrap),
        Array.from({ length: 200 }, (_, i) => 200 * round + i + 1),
      );
    }
    const { commits, groups, transactionsInProgress } = partition.stats;
    assert.equal(commits, 600);
    assert.ok(groups < 30, `${groups} records`);
    assert.equal(transactionsInProgress, 0);
    assert.equal(await read(partition, "n"), "600");
  });
});

test("pipelined: scans see what is decided, deletes too, over what is committed", async () => {
  const stamp = new Stamp(12);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await pipelined(partition, async () => ({ writes: ["a", "b", "c"].map((key) => put(key, "old")), result: 0 })));
    const first = pipelined(partition, async () => ({ writes: [remove("a"), put("b", "new"), put("d", "new")], result: 0 }));
    const seen = pipelined(partition, async (tx) => ({ writes: [], result: await rows(tx.scan({ gte: utf8("a"), lt: utf8("z") })) }));
    // Others see it when it is durable.
    assert.equal(await read(partition, "b"), "old");
    assert.deepEqual(unwrap(await seen), [
      ["b", "new"],
      ["c", "old"],
      ["d", "new"],
    ]);
    unwrap(await first);
    assert.equal(await read(partition, "a"), undefined);
    assert.deepEqual(await rows(partition.scan({})), unwrap(await seen));
  });
});

test("pipelined: what is not sent by its deadline is unknown, not taken back: others have seen it", async () => {
  const stamp = new Stamp(13);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await increment(partition));
    const inFlight = increment(partition);
    const late = increment(partition, 1);
    const after = increment(partition);
    const outcome = await late;
    assert.ok(!outcome.ok && outcome.failure.applied === "unknown");
    unwrap(await inFlight);
    assert.equal(unwrap(await after), 4);
    assert.equal(await read(partition, "n"), "4");
    assert.equal(await read(partition, "log3"), "x");
  });
});

/** Whether an answer that was made from undurable writes came although they were lost. */
async function answeredFromLost(seed: number, without: readonly RuleName[]): Promise<boolean> {
  const stamp = new Stamp(seed, { without });
  return stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await increment(partition));
    for (const name of nodeNames) stamp.sim.crash(name);
    const lost = increment(partition, 2_000);
    const saw = await pipelined(partition, async (tx) => ({ writes: [], result: await textOf(tx, "n") }), 2_000);
    const outcome = await lost;
    assert.ok(!outcome.ok);
    return saw.ok && saw.value === "2";
  });
}

test("pipelined: an answer without writes waits until what it was made from is durable (rule pipelineAnswersDurable)", async () => {
  assert.equal(await answeredFromLost(14, []), false);
  assert.equal(await answeredFromLost(14, ["pipelineAnswersDurable"]), true);
});

test("pipelined: an answer that was made from a write which a split cut off is not given", async () => {
  let cutOff = 0;
  for (let seed = 1; seed <= 20; seed++) {
    const stamp = new Stamp(seed);
    await stamp.sim.run(async () => {
      const partition = await stamp.open(1);
      unwrap(await increment(partition));
      const leaving = { done: false };
      const left = leave([partition], ["r2", "r3"]).finally(() => {
        leaving.done = true;
      });
      const [written, read]: [Promise<Outcome<number>>[], Promise<Outcome<string>>[]] = [[], []];
      while (!leaving.done) {
        // The log is at work, so that the increment waits for its turn.
        for (let i = 0; i < 3; i++) {
          void partition.transact(utf8(`o${i}`), async () => ({ writes: [put(`o${i}`, "x")], result: 0 }), { timeoutMs: 60_000 });
          await stamp.sim.sleep(0.1);
        }
        written.push(increment(partition));
        // It decides for so long that the log may be cut meanwhile.
        const slowly = async (tx: Transaction) => {
          const seen = await textOf(tx, "n");
          await stamp.sim.sleep(2);
          return { writes: [], result: seen };
        };
        read.push(pipelined(partition, slowly));
        await stamp.sim.sleep(0.5);
      }
      unwrap(await left);
      const outcomes = await Promise.all(written);
      const last = Math.max(1, ...outcomes.flatMap((each) => (each.ok ? [each.value] : [])));
      for (const each of await Promise.all(read)) {
        assert.ok(!each.ok || Number(each.value) <= last, `seed ${seed}: it was told ${JSON.stringify(each)}, and ${last} is the last one`);
        if (isMoving(each)) cutOff++;
      }
    });
  }
  assert.ok(cutOff > 0, "no write was cut off");
});

test("pipelined: without seeing what is decided, two take the same number (rule pipelineSeesPending)", async () => {
  const stamp = new Stamp(15, { without: ["pipelineSeesPending"] });
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    const numbers = (await Promise.all(Array.from({ length: 20 }, () => increment(partition)))).map(unwrap);
    assert.ok(new Set(numbers).size < 20);
  });
});

/** Increments of one row, every third one not pipelined; returns the numbers that they were told. */
async function mixed(seed: number, without: readonly RuleName[]): Promise<readonly number[]> {
  const stamp = new Stamp(seed, { without });
  return stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    const plain = async (): Promise<Outcome<number>> => {
      const decide = async (tx: Transaction) => {
        const next = Number(await textOf(tx, "n")) + 1;
        return { writes: [put("n", `${next}`)], result: next };
      };
      return partition.transact([utf8("q"), utf8("r")], decide, { timeoutMs: 60_000 });
    };
    const told = await Promise.all(Array.from({ length: 30 }, (_, i) => (i % 3 === 2 ? plain() : increment(partition))));
    assert.equal(partition.stats.transactionsInProgress, 0);
    return told.map(unwrap);
  });
}

test("pipelined: a transaction that is not pipelined waits for those before it, and those behind it see its rows (rule plainAfterPipelined)", async () => {
  const all = Array.from({ length: 30 }, (_, i) => i + 1);
  assert.deepEqual(await mixed(17, []), all);
  assert.notDeepEqual(await mixed(17, ["plainAfterPipelined"]), all);
});

test("pipelined: a transaction that is not pipelined gives up in time, and the next ones go on", async () => {
  const stamp = new Stamp(18);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    const first = increment(partition);
    const late = await partition.transact(utf8("q"), async () => ({ writes: [put("n", "9")], result: 0 }), { timeoutMs: 1 });
    assert.ok(!late.ok && late.failure.reason === "timeout" && late.failure.applied === "no");
    assert.deepEqual([unwrap(await first), unwrap(await increment(partition))], [1, 2]);
  });
});

test("pipelined: nothing is kept for a lock key when all that was decided under it is settled", async () => {
  const pipelines = new Pipelines();
  const settled = [1, 2, 3].map((n) => pipelines.enter(utf8("q"), [put("n", `${n}`)]));
  assert.equal(pipelines.pending(utf8("r")).length, 0);
  assert.equal(fromUtf8(pipelines.pending(utf8("q"))[0]?.get(utf8("n"), Number.MAX_SAFE_INTEGER)?.value as Uint8Array), "3");
  const last = pipelines.last(utf8("q"));
  for (const settle of settled) settle(true);
  assert.deepEqual([await last?.settled, last?.durable], [true, true]);
  assert.deepEqual([pipelines.size, pipelines.last(utf8("q")), pipelines.pending(utf8("q"))], [0, undefined, []]);
});

test("scan: deleted rows that it steps over are counted, and end it at a bound", async () => {
  const stamp = new Stamp(16, { limits: { memoryTableBytesMax: 20_000 } });
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    const keys = Array.from({ length: 300 }, (_, i) => `k${String(i).padStart(3, "0")}`);
    for (let i = 0; i < keys.length; i += 50) {
      unwrap(
        await partition.transact(utf8("l"), async () => ({ writes: keys.slice(i, i + 50).map((key) => put(key, "v")), result: 0 }), {
          timeoutMs: 9_000,
        }),
      );
    }
    unwrap(await partition.transact(utf8("l"), async () => ({ writes: keys.slice(0, 290).map(remove), result: 0 }), { timeoutMs: 9_000 }));
    const all = { deletedMax: Number.POSITIVE_INFINITY, deleted: 0, stoppedAt: undefined };
    assert.equal((await rows(partition.scan({ walk: all }))).length, 10);
    const some = { deletedMax: 100, deleted: 0, stoppedAt: undefined as Uint8Array | undefined };
    assert.deepEqual(await rows(partition.scan({ walk: some })), []);
    assert.ok(some.stoppedAt !== undefined && all.deleted <= 290);
    assert.equal(fromUtf8(some.stoppedAt), "k100");
  });
});
