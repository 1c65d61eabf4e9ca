/** Ranges that a split or merge has taken are given back on every way out of it, and no others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, unwrap, utf8 } from "@stamp/base";
import type { Range } from "@stamp/partition-map";
import { sleep } from "@stamp/ports";
import { type Parts, rangeOf, withParts } from "./term-harness.test.ts";

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
