/** Ranges that a split or merge has taken are given back on every way out of it, and no others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, ok, refused, unknownOutcome, unwrap, utf8 } from "@stamp/base";
import type { Range } from "@stamp/partition-map";
import { sleep } from "@stamp/ports";
import { type Parts, rangeOf, withParts } from "../testing/term-harness.ts";

const left = rangeOf("Entity", "entity-1", { high: utf8("m") });
const right = rangeOf("Entity", "entity-2", { low: utf8("m") });
const whole = rangeOf("Entity", "entity-1");

const giveAway = async ({ map }: Parts, range: Range): Promise<void> => {
  const given = { ...range, ownerEpoch: range.ownerEpoch + 1, server: "ps-2", serverAddress: "ps-2", rangeVersion: range.rangeVersion + 1 };
  unwrap(await map.change(() => ok({ changed: [given] })));
};

test("merge: when one parent was given to another server meanwhile it is refused, and the other one is let go", () =>
  withParts([left, right], async (parts) => {
    parts.takes.mintMs = 500;
    const merging = parts.reshaper.merge(left.rangeId);
    await sleep(parts.world.clock, 100);
    assert.deepEqual(
      [left, right].map(({ rangeId }) => parts.progressOf(rangeId)),
      ["busy", "busy"],
    );
    await giveAway(parts, right);
    const merged = await merging;
    assert.equal(merged.ok || merged.failure.reason, "rangeChanging");
    assert.equal(parts.progressOf(left.rangeId), "loaded");
    assert.equal(parts.progressOf(right.rangeId), "busy", "whoever gave it away has it loaded");
    assert.deepEqual(parts.ended, []);
  }));

test("split: a range that was moved while its server was asked for a key is not taken, and can be split again", () =>
  withParts([whole], async (parts) => {
    parts.answers["ps-1"] = {
      suggestSplitKey: async () => {
        await parts.reshaper.move(whole.rangeId, "ps-2");
        return ok({ key: utf8("m") });
      },
    };
    const split = await parts.reshaper.split(whole.rangeId, undefined);
    assert.equal(split.ok || split.failure.reason, "rangeChanging");
    assert.equal(parts.map.range(whole.rangeId)?.server, "ps-2");
    assert.equal(parts.progressOf(whole.rangeId), "loaded");
    unwrap(await parts.reshaper.split(whole.rangeId, undefined));
    assert.equal(parts.map.current.ranges.length, 2);
  }));

test("move: a range that was moved while it was written out is not moved once more", () =>
  withParts([whole], async (parts) => {
    let first = true;
    parts.answers["ps-1"] = {
      checkpointPartition: async () => {
        if (first) {
          first = false;
          unwrap(await parts.reshaper.move(whole.rangeId, "ps-2"));
        }
        return ok({});
      },
    };
    const moved = await parts.reshaper.move(whole.rangeId, "ps-2");
    assert.equal(moved.ok || moved.failure.reason, "rangeChanging");
    assert.deepEqual(
      parts.asked.filter((call) => call.includes("closePartition")),
      ["ps-1 closePartition entity-1"],
    );
  }));

test("move: when the server that is to have the range is gone, it is answered as soon as another serves it", () =>
  withParts([whole], async (parts) => {
    parts.answers["ps-1"] = {
      closePartition: async () => {
        parts.leases["ps-2"] = 0;
        await sleep(parts.world.clock, 500);
        return ok({});
      },
    };
    const sinceMs = parts.world.clock.monotonicMs();
    const moved = await parts.reshaper.move(whole.rangeId, "ps-2");
    assert.equal(moved.ok || moved.failure.message, "ps-2 could not take entity-1: it is served by ps-1");
    assert.ok(parts.world.clock.monotonicMs() - sinceMs < 5_000);
  }));

test("move: a range whose new owner could not be recorded stays where it is served", () =>
  withParts([whole], async (parts) => {
    parts.refusals.mint = full;
    const moved = await parts.reshaper.move(whole.rangeId, "ps-2");
    assert.equal(moved.ok || moved.failure.reason, "diskFull");
    assert.deepEqual(parts.asked, ["ps-1 checkpointPartition entity-1"]);
    assert.equal(parts.progressOf(whole.rangeId), "loaded");
    delete parts.refusals.mint;
    unwrap(await parts.reshaper.move(whole.rangeId, "ps-2"));
  }));

test("move: a server that hangs when it is to close the range has it until its lease is over, and no longer", () =>
  withParts([whole], async (parts) => {
    const { clock } = parts.world;
    parts.answers["ps-1"] = {
      closePartition: async () => {
        await sleep(clock, 1_000_000);
        return ok({});
      },
    };
    const moving = parts.reshaper.move(whole.rangeId, "ps-2");
    await sleep(clock, 5_000);
    assert.deepEqual(parts.asked, ["ps-1 checkpointPartition entity-1", "ps-1 closePartition entity-1"]);
    const sinceMs = clock.monotonicMs();
    parts.leases["ps-1"] = 0;
    unwrap(await moving);
    assert.equal(parts.map.range(whole.rangeId)?.server, "ps-2");
    assert.ok(clock.monotonicMs() - sinceMs < 1_000, "the answer to Close is not waited for");
  }));

test("move: one that is asked for by a person is tried without room", () =>
  withParts([whole], async (parts) => {
    parts.lacks.push("no extent node has room");
    unwrap(await parts.reshaper.move(whole.rangeId, "ps-2"));
  }));

/** Failures of a split, and the number of ranges in the end. */
const waysOut: readonly (readonly [text: string, prepare: (parts: Parts) => void, rangesAfter: number])[] = [
  ["the metadata store is full", noMint, 1],
  ["the server refuses it", answering(refused("failedPrecondition", "staleOwnerEpoch", "not held here")), 1],
  ["it is not begun", answering(refused("unavailable", "notBegun", "not prepared")), 1],
  ["the server does not say that it happened", happening(unknownOutcome("unavailable", "connectionLost", "gone")), 2],
  ["the server does not say that nothing came of it", answering(unknownOutcome("unavailable", "connectionLost", "gone")), 1],
  ["the server says nothing", answering(undefined), 1],
  ["nothing is known, and the metadata store is full for a while", lateMint(), 1],
  ["nothing is known, and the stream manager is away for a while", lateFence(), 1],
];

const full = refused("resourceExhausted", "diskFull", "no room");

function noMint({ refusals }: Parts): void {
  refusals.mint = full;
}

function answering(answer: Outcome<never> | undefined): (parts: Parts) => void {
  return ({ answers, world }) => {
    answers["ps-1"] = {
      reshapePartitions: async () => {
        if (answer === undefined) await sleep(world.clock, 100_000);
        return answer ?? refused("deadlineExceeded", "timeout", "too late");
      },
    };
  };
}

function happening(answer: Outcome<never>): (parts: Parts) => void {
  return (parts) => {
    answering(answer)(parts);
    parts.happened.value = true;
  };
}

function lateMint(): (parts: Parts) => void {
  return ({ answers, refusals, world }) => {
    answers["ps-1"] = {
      reshapePartitions: async () => {
        refusals.mint = full;
        world.clock.after(20_000, () => delete refusals.mint);
        return unknownOutcome("unavailable", "connectionLost", "gone");
      },
    };
  };
}

function lateFence(): (parts: Parts) => void {
  return (parts) => {
    answering(unknownOutcome("unavailable", "connectionLost", "gone"))(parts);
    parts.refusals.fence = unknownOutcome("deadlineExceeded", "timeout", "no answer");
    parts.world.clock.after(20_000, () => delete parts.refusals.fence);
  };
}

for (const [text, prepare, rangesAfter] of waysOut) {
  test(`split: when ${text}, every range is served in the end, free for the next one, and no record is left`, () =>
    withParts([whole], async (parts) => {
      prepare(parts);
      const split = await parts.reshaper.split(whole.rangeId, utf8("m"));
      assert.ok(!split.ok);
      await parts.until(() => parts.assigner.calm, 30_000, "all are served");
      const { ranges } = parts.map.current;
      assert.equal(ranges.length, rangesAfter);
      assert.ok(ranges.every(({ reshape }) => reshape === undefined));
      if (rangesAfter === 1)
        assert.ok((ranges[0] as Range).ownerEpoch > Math.max(0, ...parts.fenced), "it is served by an owner of its streams");
      assert.deepEqual(parts.ended, []);
      parts.answers["ps-1"] = {};
      delete parts.refusals.mint;
      unwrap(await parts.reshaper.split((ranges[0] as Range).rangeId, utf8("c")));
    }));
}

test("split: it happened after the copy that was restored, which the log of one child tells: the term ends, and nobody is given a child before", () =>
  withParts([whole], async (parts) => {
    answering(unknownOutcome("unavailable", "connectionLost", "gone"))(parts);
    Object.assign(parts.table, { lineage: 7 });
    const exists = async (stream: string) => ok(stream.endsWith("/commit-log") && !stream.includes(whole.rangeId));
    Object.assign(parts.streams, { exists });
    const split = await parts.reshaper.split(whole.rangeId, utf8("m"));
    assert.ok(!split.ok);
    await parts.until(() => parts.ended.length > 0, 30_000, "the term ends");
    assert.match(parts.ended.join(), /its streams are made at the beginning of a term/);
    const { ranges } = parts.map.current;
    assert.deepEqual(
      ranges.map(({ loaded, origins }) => [loaded, origins?.map(({ rangeId }) => rangeId)]),
      [
        [false, [whole.rangeId]],
        [false, [whole.rangeId]],
      ],
    );
  }));

for (const happened of [true, false]) {
  test(`split: a server that hangs in it, whose lease ends: the keys are served elsewhere at once, ${happened ? "by the children" : "by the parent"}`, () =>
    withParts([whole], async (parts) => {
      parts.happened.value = happened;
      answering(undefined)(parts);
      const split = parts.reshaper.split(whole.rangeId, utf8("m"));
      await sleep(parts.world.clock, 1_000);
      parts.leases["ps-1"] = 0;
      const served = () => parts.assigner.calm && parts.map.current.ranges.every(({ server, loaded }) => server === "ps-2" && loaded);
      await parts.until(served, 1_000, "all are served elsewhere");
      assert.equal(parts.map.current.ranges.length, happened ? 2 : 1);
      const answered = await split;
      assert.equal(answered.ok || `${answered.failure.reason}, ${answered.failure.applied}`, "leaseLost, unknown");
    }));
}
