import assert from "node:assert/strict";
import { test } from "node:test";
import { equals } from "@bufbuild/protobuf";
import { utf8 } from "@stamp/base";
import { firstRangeOf, type Range } from "@stamp/partition-map";
import { RangePartitionSchema } from "@stamp/wire";
import { rangesToWire } from "./range-to-wire.ts";

test("ranges on the wire: thousands are made in turns, once for each range, in their order", async () => {
  const seen = { nowMs: 0, gaveWay: 0 };
  const clock = {
    monotonicMs: () => {
      seen.nowMs += 0.1;
      return seen.nowMs;
    },
    wallMs: () => 0,
    suspendedMs: () => 0,
    after: (_delayMs: number, callback: () => void) => {
      seen.gaveWay++;
      setImmediate(callback);
      return { cancel: () => {} };
    },
  };
  const ranges = Array.from({ length: 2_000 }, (_, i): Range => ({ ...firstRangeOf("Blob"), rangeId: `blob-${i}`, low: utf8(`${i}`) }));
  const first = await rangesToWire(clock, ranges);
  assert.deepEqual(
    first.map(({ rangeId }) => rangeId),
    ranges.map(({ rangeId }) => rangeId),
  );
  assert.ok(seen.gaveWay >= 15, `gave way ${seen.gaveWay} times`);
  const changed = { ...(ranges[7] as Range), ownerEpoch: 9 };
  const second = await rangesToWire(clock, ranges.with(7, changed));
  assert.equal(second[7]?.ownerEpoch, 9n);
  assert.ok(
    second.every((message, i) => i === 7 || message === first[i]),
    "made once",
  );
  assert.ok(!equals(RangePartitionSchema, first[7] as never, second[7] as never));
});
