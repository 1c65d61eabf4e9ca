/** One read from several replicas: which ones are asked, when, and how the losers are cancelled. On virtual time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, ok, refused } from "@stamp/base";
import { type Clock, sleep } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { NodeHistories, raceReplicas } from "./replica-race.ts";

interface Asked {
  readonly address: string;
  readonly atMs: number;
  cancelledAtMs: number | undefined;
}

/** Each replica answers after so many milliseconds; undefined: never; negative: refuses after as many; "unknown": does not know the extent. */
async function race(
  answers: Readonly<Record<string, number | "unknown" | undefined>>,
  histories = new NodeHistories(),
  timeoutMs = 5_000,
  caller?: AbortSignal,
  isCached = false,
  bytes?: number,
  begins: (clock: Clock) => void = () => {},
) {
  const sim = new Simulation({ seed: 1 });
  const asked: Asked[] = [];
  return sim.run(async () => {
    const { clock } = sim.world("client");
    begins(clock);
    const beganMs = clock.monotonicMs();
    const attempt = async (address: string, _timeoutMs: number, signal: AbortSignal): Promise<Outcome<string>> => {
      const entry: Asked = { address, atMs: Math.round(clock.monotonicMs() - beganMs), cancelledAtMs: undefined };
      asked.push(entry);
      const takesMs = answers[address];
      if (takesMs === "unknown") return refused("notFound", "unknownExtent", "not here");
      if ((await sleep(clock, Math.abs(takesMs ?? timeoutMs), signal)) === "aborted") {
        entry.cancelledAtMs = Math.round(clock.monotonicMs() - beganMs);
        return refused("cancelled", "cancelled", "cancelled");
      }
      if (takesMs === undefined) return refused("deadlineExceeded", "timeout", "no answer");
      return takesMs < 0 ? refused("resourceExhausted", "overloaded", "too late") : ok(address);
    };
    const result = await raceReplicas(
      clock,
      histories,
      Object.keys(answers),
      { deadlineMs: beganMs + timeoutMs, signal: caller, isCached, bytes },
      attempt,
    );
    const tookMs = Math.round(clock.monotonicMs() - beganMs);
    await sim.sleep(1);
    return { result, asked, tookMs };
  });
}

test("replica race: one that answers in its usual time is asked alone", async () => {
  const { result, asked } = await race({ a: 20, b: 1, c: 1 });
  assert.deepEqual(result, { answer: "a" });
  assert.deepEqual(
    asked.map((each) => each.address),
    ["a"],
  );
});

test("replica race: a caller who went away before it began waits for nobody, and no second one is asked", async () => {
  const { result, asked, tookMs } = await race({ a: undefined, b: 1 }, new NodeHistories(), 5_000, AbortSignal.abort());
  assert.ok("failures" in result && result.failures[0]?.failure.reason === "cancelled");
  assert.deepEqual(
    asked.map(({ address, cancelledAtMs }) => [address, cancelledAtMs]),
    [["a", 0]],
  );
  assert.equal(tookMs, 0);
});

test("replica race: a slow one is hedged by a second, the first answer counts, the loser is cancelled at that moment", async () => {
  const { result, asked, tookMs } = await race({ a: 2_000, b: 30, c: 1 });
  assert.deepEqual(result, { answer: "b" });
  assert.deepEqual(
    asked.map(({ address, atMs }) => [address, atMs]),
    [
      ["a", 0],
      ["b", 50],
    ],
  );
  assert.equal(tookMs, 80);
  assert.equal(asked[0]?.cancelledAtMs, 80);
  // The first may win after all: then the second is cancelled.
  const other = await race({ a: 60, b: 500, c: 1 });
  assert.deepEqual(other.result, { answer: "a" });
  assert.equal(other.asked[1]?.cancelledAtMs, 60);
});

test("replica race: a refusal is not waited out: the next is asked at once", async () => {
  const { result, asked, tookMs } = await race({ a: -2, b: -3, c: 4 });
  assert.deepEqual(result, { answer: "c" });
  assert.deepEqual(
    asked.map((each) => each.atMs),
    [0, 2, 5],
  );
  assert.equal(tookMs, 9);
});

test("replica race: the hedge comes after the p95 of this node's answers, within its bounds", async () => {
  const histories = new NodeHistories();
  for (let i = 0; i < 64; i++) histories.succeeded("a", 10, i);
  const { asked } = await race({ a: 1_000, b: 1, c: 1 }, histories);
  assert.equal(asked[1]?.atMs, 15);
  const slow = new NodeHistories();
  for (let i = 0; i < 64; i++) slow.succeeded("a", 10_000, i);
  assert.equal(slow.hedgeMs("a"), 250);
});

test("replica race: a large read is late by the usual time of large reads, however quick the small ones are", async () => {
  const histories = new NodeHistories();
  for (let i = 0; i < 64; i++) histories.succeeded("a", 2, i, 65_536);
  for (let i = 0; i < 32; i++) histories.succeeded("a", 40, i, 1_048_576);
  assert.deepEqual([histories.hedgeMs("a"), histories.hedgeMs("a", 65_536), histories.hedgeMs("a", 1_048_576)], [5, 5, 60]);
  const large = await race({ a: 40, b: 1, c: 1 }, histories, 5_000, undefined, false, 4_194_304);
  assert.deepEqual([large.result, large.asked.length], [{ answer: "a" }, 1]);
  const late = await race({ a: 1_000, b: 1, c: 1 }, histories, 5_000, undefined, false, 4_194_304);
  assert.equal(late.asked[1]?.atMs, 60);
  const small = await race({ a: 40, b: 1, c: 1 }, histories, 5_000, undefined, false, 16_384);
  assert.deepEqual([small.result, small.asked[1]?.atMs], [{ answer: "b" }, 5]);
});

test("replica race: when nobody answers it ends with every failure, by the deadline", async () => {
  const { result, asked, tookMs } = await race({ a: undefined, b: undefined, c: undefined }, new NodeHistories(), 900);
  assert.ok("failures" in result && result.failures.length === 3);
  assert.equal(asked.length, 3);
  assert.ok(tookMs <= 900 + 250 + 50, `${tookMs}`);
});

test("replica order: of two as good ones the quicker is asked first, failures count more, and what is old is tried again", () => {
  const histories = new NodeHistories();
  const nodes = ["a", "b", "c"];
  const firsts = (nowMs: number): string[] => nodes.map((_, start) => histories.order(nodes, start, nowMs)[0] as string);
  assert.deepEqual(firsts(0), ["a", "b", "c"], "nothing is known");
  for (let i = 0; i < 30; i++) {
    histories.succeeded("a", 40, i);
    histories.succeeded("b", 5, i);
    histories.succeeded("c", 6, i);
  }
  assert.deepEqual(firsts(100), ["b", "b", "c"], "the slow one is not the first, the others share");
  histories.failed("b");
  assert.deepEqual(firsts(100), ["c", "c", "c"], "a is slower than c, b has failed");
  histories.succeeded("b", 5, 200);
  histories.succeeded("c", 6, 11_000);
  assert.deepEqual(firsts(11_000), ["a", "b", "c"], "a and b are not known any more");
  for (const start of [0, 1, 2]) assert.deepEqual(histories.order(nodes, start, 100).toSorted(), nodes);
});

test("replica race: when a node refuses, cached addresses are not waited for beyond the usual time of the others; fresh ones are", async () => {
  const histories = new NodeHistories();
  for (const answers of [
    { b: undefined, a: "unknown", c: "unknown" },
    { a: "unknown", b: undefined, c: "unknown" },
    { a: "unknown", c: "unknown", b: undefined },
  ] as const) {
    const stale = await race(answers, histories, 5_000, undefined, true);
    assert.ok("failures" in stale.result && stale.result.failures.every(({ failure }) => failure.reason === "unknownExtent"));
    assert.ok(stale.tookMs <= 250, `${stale.tookMs} ms`);
    assert.equal(stale.asked.find(({ address }) => address === "b")?.cancelledAtMs, stale.tookMs);
  }
  assert.equal(histories.failures("b"), 3, "the silent one is asked later next time");
  const slow = await race({ a: "unknown", b: 40, c: "unknown" }, new NodeHistories(), 5_000, undefined, true);
  assert.deepEqual(slow.result, { answer: "b" }, "one that is not late is waited for");
  const fresh = await race({ a: "unknown", b: 2_000, c: "unknown" });
  assert.deepEqual(fresh.result, { answer: "b" });
});

/** Reads one after another, each of a MiB; returns how many asked a second replica, and the time of the slowest in ms. */
async function hedgedOf(count: number, histories: NodeHistories, answers: Readonly<Record<string, number | undefined>>) {
  let [hedged, slowestMs] = [0, 0];
  for (let i = 0; i < count; i++) {
    const { asked, tookMs } = await race(answers, histories, 20_000, undefined, false, 1024 * 1024);
    if (asked.length > 1) hedged++;
    slowestMs = Math.max(slowestMs, tookMs);
  }
  return { hedged, slowestMs };
}

test("replica race: when all nodes are slow, a tenth of the large reads is hedged, and each of the small ones", async () => {
  const histories = new NodeHistories();
  const { hedged } = await hedgedOf(100, histories, { a: 600, b: 600, c: 600 });
  assert.ok(hedged >= 15 && hedged <= 25, `${hedged}: ten at first, then a tenth`);
  const small = await race({ a: 600, b: 600, c: 600 }, histories, 20_000, undefined, false, 1024);
  assert.ok(small.asked.length > 1);
});

test("replica race: large reads are read around a silent node as often as it takes", async () => {
  const { hedged, slowestMs } = await hedgedOf(60, new NodeHistories(), { a: undefined, b: 20, c: 20 });
  assert.deepEqual([hedged, slowestMs < 300], [60, true], `${slowestMs}`);
});

test("replica race: a large read without a hedge in the budget is hedged after a second", async () => {
  const histories = new NodeHistories();
  // Later than the virtual time of the read: nothing comes back meanwhile.
  while (histories.largeHedges.take(Number.MAX_SAFE_INTEGER));
  const { result, tookMs } = await race({ a: undefined, b: 20, c: 20 }, histories, 20_000, undefined, false, 1024 * 1024);
  assert.deepEqual(result, { answer: "b" });
  assert.ok(tookMs >= 1_000 && tookMs <= 1_100, `${tookMs}`);
});

/** Large reads begun at once, with an empty budget; returns the time of each in ms. */
function readersAtOnce(count: number, histories: NodeHistories, answers: Readonly<Record<string, number | undefined>>) {
  const sim = new Simulation({ seed: 1 });
  return sim.run(async () => {
    const { clock } = sim.world("client");
    while (histories.largeHedges.take(Number.MAX_SAFE_INTEGER));
    const beganMs = clock.monotonicMs();
    const attempt = async (address: string, _timeoutMs: number, signal: AbortSignal): Promise<Outcome<string>> => {
      if ((await sleep(clock, answers[address] ?? 60_000, signal)) === "aborted") return refused("cancelled", "cancelled", "cancelled");
      return ok(address);
    };
    const options = { deadlineMs: beganMs + 30_000, signal: undefined, isCached: false, bytes: 1024 * 1024 };
    const reads = Array.from({ length: count }, async () => {
      const result = await raceReplicas(clock, histories, Object.keys(answers), options, attempt);
      assert.deepEqual(result, { answer: "c" });
      return Math.round(clock.monotonicMs() - beganMs);
    });
    return Promise.all(reads);
  });
}

test("replica race: 64 large reads at once of three replicas, two of them silent, all get their answer, though the budget is empty", async () => {
  const tookMs = await readersAtOnce(64, new NodeHistories(), { a: undefined, b: undefined, c: 20 });
  assert.ok(Math.max(...tookMs) <= 20_000, `${Math.max(...tookMs)}`);
});

test("replica race: reads whose replicas are all silent keep the places of those that are hedged without budget for a second", async () => {
  const histories = new NodeHistories();
  const sim = new Simulation({ seed: 1 });
  await sim.run(async () => {
    const { clock } = sim.world("client");
    while (histories.largeHedges.take(Number.MAX_SAFE_INTEGER));
    const attempt = async (_address: string, timeoutMs: number): Promise<Outcome<string>> => {
      await sleep(clock, timeoutMs);
      return refused("deadlineExceeded", "timeout", "no answer");
    };
    const options = { deadlineMs: clock.monotonicMs() + 30_000, signal: undefined, isCached: false, bytes: 1024 * 1024 };
    const silent = [0, 1].map(() => raceReplicas(clock, histories, ["a", "b", "c"], options, attempt));
    await sim.sleep(1_500);
    assert.equal(histories.largeHedges.beginOverdue(), false);
    await sim.sleep(1_000);
    assert.equal(histories.largeHedges.beginOverdue(), true);
    await Promise.all(silent);
  });
});

test("replica race: a hedge that gave the answer, or whose caller went away before, costs the budget nothing", async () => {
  const left = (histories: NodeHistories): number => {
    let count = 0;
    while (histories.largeHedges.take(0)) count++;
    return count;
  };
  const large = 1024 * 1024;
  const afterRefusal = new NodeHistories();
  const { result } = await race({ a: -2, b: undefined, c: 20 }, afterRefusal, 5_000, undefined, false, large);
  assert.deepEqual([result, left(afterRefusal)], [{ answer: "c" }, 10]);
  const lost = new NodeHistories();
  assert.deepEqual((await race({ a: 80, b: 200, c: 1 }, lost, 5_000, undefined, false, large)).result, { answer: "a" });
  assert.equal(left(lost), 9, "the first gave the answer after all");
  const aborted = new NodeHistories();
  const caller = new AbortController();
  const reading = race({ a: undefined, b: 400, c: 400 }, aborted, 5_000, caller.signal, false, large, (clock) => {
    clock.after(200, () => caller.abort());
  });
  assert.ok("failures" in (await reading).result);
  assert.deepEqual([(await reading).asked.length, left(aborted)], [2, 10]);
});
