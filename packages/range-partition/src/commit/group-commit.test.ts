/**
 * Commits that are on their way to the log, or wait for their turn there, when a partition leaves: they happened when
 * the log or the last record has them.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Histogram, type Outcome, ok, refused, rulesWithout, unknownOutcome, utf8 } from "@stamp/base";
import type { World } from "@stamp/ports";
import type { OwnedStream, Place } from "@stamp/stream-client";
import { Simulation } from "@stamp/virtual-time";
import { GroupCommit, type GroupCommitOptions } from "./group-commit.ts";

type Word = "done" | "no" | "unknown";
const words: readonly Word[] = ["done", "no", "unknown"];

function outcomeOf<T>(word: Word, value: T): Outcome<T> {
  if (word === "done") return ok(value);
  return word === "no" ? refused("unavailable", "stopping", "not sent") : unknownOutcome("deadlineExceeded", "timeout", "no answer");
}
const wordOf = (outcome: Outcome<unknown>): Word => (outcome.ok ? "done" : outcome.failure.applied === "no" ? "no" : "unknown");

const place: Place = { extentId: 7, offsetBytes: 0, lengthBytes: 100 };
const overdueBytesMax = 1_000;
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** 40 were committed before. */
const commitTo = (
  world: World,
  stream: object,
  on: Pick<GroupCommitOptions, "apply" | "onLost"> & Partial<Pick<GroupCommitOptions, "room">>,
): GroupCommit =>
  new GroupCommit(world, stream as OwnedStream, {
    ...{ ownerEpoch: 1, groupBytesMax: 1 << 20, overdueBytesMax, lastSequence: 40, lastTicket: 90 },
    appends: new Histogram(world.clock),
    room: async () => {},
    ...on,
  });

/** One commit is on its way to the log, two wait; the log and the record end in this order with these words. */
async function leaves(log: Word, record: Word, recordFirst: boolean) {
  const world = new Simulation({ seed: 1 }).world("server");
  const appended = Promise.withResolvers<Outcome<readonly Place[]>>();
  const appends: number[] = [];
  const applied: string[] = [];
  const freed: number[] = [];
  let lost = 0;
  const stream = {
    noRoom: undefined,
    append: ([bytes]: Uint8Array[]) => {
      appends.push(bytes?.length ?? 0);
      return appends.length === 1 ? Promise.resolve(ok([place])) : appended.promise;
    },
  };
  const commit = commitTo(world, stream, {
    apply: ({ firstSequence, transactions, place: at }) => {
      for (const [i, writes] of transactions.entries()) {
        const [write] = writes;
        applied.push(`${firstSequence + i} ${String.fromCharCode(write?.key[0] ?? 0)} ${at === undefined ? "record" : "log"}`);
      }
    },
    onLost: () => lost++,
  });
  const write = (name: string, i: number) =>
    commit.commit([{ kind: "put", key: utf8(name), value: utf8("v") }], 60_000, () => freed.push(i));
  await write("0", -1);
  applied.splice(0);
  freed.splice(0);
  const outcomes: Promise<Outcome<void>>[] = [write("a", 0)];
  // Alone on its way, as its turn came at once; what follows waits.
  await settled();
  outcomes.push(write("b", 1), write("c", 2));
  const before = commit.undurableBytes;
  const left = commit.leave();
  assert.equal(left.bytes, before);
  assert.deepEqual(
    left.writes.map(({ key }) => String.fromCharCode(key[0] ?? 0)),
    ["a", "b", "c"],
  );
  assert.equal(left.lastSequence, 44);
  const ends = [() => appended.resolve(outcomeOf(log, [place])), () => left.recorded(outcomeOf(record, undefined))];
  for (const end of recordFirst ? ends.reverse() : ends) {
    end();
    await settled();
  }
  await commit.whenIdle();
  return { outcomes: (await Promise.all(outcomes)).map(wordOf), applied, freed: freed.sort(), appends: appends.length, lost };
}

test("leaving: what is on its way happened when the log or the record has it, what waits when the record has it; nothing is sent twice", async () => {
  for (const log of words) {
    for (const record of words) {
      for (const recordFirst of [false, true]) {
        const what = `log ${log}, record ${record}, ${recordFirst ? "the record" : "the log"} first`;
        const { outcomes, applied, freed, appends, lost } = await leaves(log, record, recordFirst);
        const either: Word = [log, record].includes("done") ? "done" : [log, record].includes("unknown") ? "unknown" : "no";
        assert.deepEqual(outcomes, [either, record, record], what);
        const by = log === "done" && !(recordFirst && record === "done") ? "log" : "record";
        const sent = either === "done" ? [`42 a ${by}`] : [];
        assert.deepEqual(applied, [...sent, ...(record === "done" ? ["43 b record", "44 c record"] : [])], what);
        const certain = [either, record, record].flatMap((word, i) => (word === "unknown" ? [] : [i]));
        assert.deepEqual(freed, certain, `${what}: rows are free when it is certain`);
        assert.equal(appends, 2, what);
        assert.equal(lost, log === "done" ? 0 : 1, what);
      }
    }
  }
});

/** One commit is on its way to the log when that is cut, two wait. */
async function isCut(log: Word, there: boolean) {
  const world = new Simulation({ seed: 1 }).world("server");
  const appended = Promise.withResolvers<Outcome<readonly Place[]>>();
  const applied: number[] = [];
  let lost = 0;
  const stream = {
    noRoom: undefined,
    // The answer may take some turns to come here.
    append: async () => await (async () => await appended.promise)(),
    // The last acknowledgement was not heard yet; all other waiters are answered because the stream is abandoned.
    cut: () => {
      if (log === "done") appended.resolve(ok([place]));
      return true;
    },
    abandon: () => appended.resolve(outcomeOf(log, [place])),
  };
  const commit = commitTo(world, stream, { apply: ({ firstSequence }) => applied.push(firstSequence), onLost: () => lost++ });
  const write = (name: string) => commit.commit([{ kind: "put", key: utf8(name), value: utf8("v") }], 60_000, () => {});
  const first = write("a");
  await settled();
  const waiting = [write("b"), write("c")];
  const cut = commit.cut({ code: "unavailable", reason: "partitionLoading", message: "it becomes others", applied: "no" });
  await cut?.applied;
  const appliedAtOnce = [...applied];
  assert.deepEqual((await Promise.all(waiting)).map(wordOf), ["no", "no"]);
  assert.equal(wordOf(await write("later")), "no");
  cut?.sealed(there);
  commit.end({ code: "unavailable", reason: "stopping", message: "closed", applied: "no" });
  const outcome = await first;
  assert.deepEqual([applied, lost], [appliedAtOnce, 0], "nothing is applied later, and it is not lost");
  return { outcome, applied };
}

test("cut: what the log acknowledged is applied at once; what it did not is not done when the log is sealed there, else as the log says", async () => {
  for (const there of [true, false]) {
    assert.deepEqual((await isCut("done", there)).applied, [41]);
    for (const log of ["no", "unknown"] as const) {
      const { outcome, applied } = await isCut(log, there);
      assert.deepEqual([wordOf(outcome), applied], [there ? "no" : log, []]);
      if (!outcome.ok && outcome.failure.applied === "no")
        assert.equal(outcome.failure.reason, "partitionLoading", "done anew by whoever can");
    }
  }
});

test("no room: what waits behind a group that no node took goes with it, and its sequences are given again", async () => {
  const world = new Simulation({ seed: 1 }).world("server");
  const appended = Promise.withResolvers<Outcome<readonly Place[]>>();
  let appends = 0;
  const stream = { noRoom: undefined, append: () => (++appends === 1 ? appended.promise : Promise.resolve(ok([place]))) };
  const applied: number[] = [];
  const commit = commitTo(world, stream, {
    apply: ({ firstSequence }) => applied.push(firstSequence),
    onLost: () => assert.fail("not lost"),
  });
  const seen: boolean[] = [];
  const freed: string[] = [];
  const write = (name: string): Promise<Outcome<void>> =>
    commit.commit([{ kind: "put", key: utf8(name), value: utf8("v") }], 60_000, () => freed.push(name), {
      settled: (durable) => seen.push(durable),
    });
  const first = write("a");
  await settled();
  const waiting = [write("b"), write("c")];
  appended.resolve(refused("resourceExhausted", "noPlacement", "all disks are full"));
  assert.deepEqual((await Promise.all([first, ...waiting])).map(wordOf), ["no", "no", "no"]);
  assert.deepEqual([seen, freed, applied, appends], [[false, false, false], ["a", "b", "c"], [], 1]);
  assert.equal(wordOf(await write("d")), "done");
  assert.deepEqual([applied, appends, commit.undurableBytes], [[41], 2, 0]);
});

test("no room: without the rule takenBackTogether a commit happens that was decided by one which did not", async () => {
  const world = new Simulation({ seed: 1, rules: rulesWithout("takenBackTogether") }).world("server");
  const appended = Promise.withResolvers<Outcome<readonly Place[]>>();
  let appends = 0;
  const stream = { noRoom: undefined, append: () => (++appends === 1 ? appended.promise : Promise.resolve(ok([place]))) };
  const commit = commitTo(world, stream, { apply: () => {}, onLost: () => {} });
  const write = (name: string): Promise<Outcome<void>> =>
    commit.commit([{ kind: "put", key: utf8(name), value: utf8("v") }], 60_000, () => {}, { settled: () => {} });
  const first = write("a");
  await settled();
  const behind = write("b");
  appended.resolve(refused("resourceExhausted", "noPlacement", "all disks are full"));
  assert.deepEqual((await Promise.all([first, behind])).map(wordOf), ["no", "done"]);
});

test("no room: a leaving partition is not lost by a refusal of its log, and what was on its way there happens by the record", async () => {
  const world = new Simulation({ seed: 1 }).world("server");
  const appended = Promise.withResolvers<Outcome<readonly Place[]>>();
  const applied: number[] = [];
  const commit = commitTo(
    world,
    { noRoom: undefined, append: () => appended.promise },
    { apply: ({ firstSequence }) => applied.push(firstSequence), onLost: () => assert.fail("not lost") },
  );
  const write = commit.commit([{ kind: "put", key: utf8("a"), value: utf8("v") }], 60_000, () => {});
  await settled();
  const left = commit.leave();
  appended.resolve(refused("resourceExhausted", "noPlacement", "all disks are full"));
  await settled();
  assert.deepEqual(applied, []);
  left.recorded(ok());
  assert.equal(wordOf(await write), "done");
  assert.deepEqual(applied, [41]);
});

test("overdue: commits whose callers have gone wait up to a bound in bytes; beyond it nothing is queued until they are durable", async () => {
  const simulation = new Simulation({ seed: 1 });
  await simulation.run(async () => {
    const world = simulation.world("server");
    const room = Promise.withResolvers<void>();
    const stream = { noRoom: undefined, append: async () => ok([place]) };
    const commit = commitTo(world, stream, { room: () => room.promise, apply: () => {}, onLost: () => assert.fail("not lost") });
    // Others may have seen what these write, so none of them is taken back at its deadline.
    let durable = 0;
    const write = (stays: boolean): Promise<Outcome<void>> =>
      commit.commit(
        [{ kind: "put", key: utf8("a"), value: new Uint8Array(300) }],
        1_000,
        () => {},
        stays ? { settled: (done) => (durable += Number(done)) } : {},
      );
    // The bound is on what is overdue: callers that still wait, and commits that are taken back, do not count.
    const bytesOfOne = 1_200;
    assert.deepEqual((await Promise.all([1, 2, 3, 4].map(() => write(false)))).map(wordOf), ["no", "no", "no", "no"]);
    const queued: Word[] = [];
    for (let i = 0; i < 3; i++) queued.push(...(await Promise.all([write(true), write(true)])).map(wordOf));
    const overdueBytes = commit.undurableBytes;
    assert.ok(overdueBytes >= overdueBytesMax && overdueBytes < overdueBytesMax + bytesOfOne, `${overdueBytes} bytes wait`);
    assert.deepEqual(queued, ["unknown", "unknown", "unknown", "unknown", "no", "no"]);
    const refusal = await write(true);
    assert.ok(!refusal.ok && refusal.failure.reason === "overloaded" && refusal.failure.applied === "no");
    room.resolve();
    await commit.whenIdle();
    assert.equal(durable, 4, "all that waited became durable");
    assert.equal(wordOf(await write(true)), "done");
  });
});
