/** The window of a sender: order within a lane, parallel lanes, acknowledgement of the log, bounds. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Prng } from "@stamp/base";
import { ShippingWindow } from "./index.ts";

const limits = { windowBytesMax: 100, batchBytesMax: 30, batchesMax: 3 };

test("shipping window: any order of deliveries and failures keeps each lane in order and acknowledges what all lanes have", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const prng = new Prng(seed);
    const window = new ShippingWindow<string>(10, limits);
    const lanesOf = new Map<number, string[]>();
    const delivered = new Map<string, number[]>();
    const away: { lane: string; sequences: number[] }[] = [];
    let sequence = 10;
    const check = (): void => {
      for (let at = 11; at <= sequence; at++) {
        const isDelivered = (lanesOf.get(at) ?? []).every((lane) => delivered.get(lane)?.includes(at));
        if (at <= window.acknowledged) assert.ok(isDelivered, `seed ${seed}: ${at} is acknowledged`);
        else if (at === window.acknowledged + 1) assert.ok(!isDelivered, `seed ${seed}: ${at} could be acknowledged`);
      }
    };
    for (let step = 0; step < 120 || !window.isEmpty; step++) {
      if (step < 120 && window.hasRoom && prng.chance(0.5)) {
        const lanes = [...new Set(Array.from({ length: prng.below(3) }, () => `lane ${prng.below(4)}`))];
        lanesOf.set(++sequence, lanes);
        window.add(
          sequence,
          lanes.map((lane) => ({ lane, bytes: 1 + prng.below(40), rows: `${sequence}` })),
        );
      }
      const batch = prng.chance(0.6) ? window.take() : undefined;
      if (batch !== undefined) {
        assert.ok(!away.some(({ lane }) => lane === batch.lane), `seed ${seed}: one batch of a lane is on its way`);
        away.push({ lane: batch.lane, sequences: batch.parts.map((part) => part.sequence) });
        assert.ok(away.length <= limits.batchesMax);
      }
      if (away.length === 0 || prng.chance(0.4)) continue;
      const [{ lane, sequences }] = away.splice(prng.below(away.length), 1) as [(typeof away)[number]];
      if (prng.chance(0.3)) window.failed(lane);
      else {
        const before = delivered.get(lane) ?? [];
        assert.ok((before.at(-1) ?? 0) < (sequences[0] ?? 0), `seed ${seed}: ${lane} is in order`);
        delivered.set(lane, [...before, ...sequences]);
        window.delivered(lane);
      }
      check();
    }
    assert.deepEqual([window.acknowledged, window.bytes, window.take()], [sequence, 0, undefined]);
  }
});

test("shipping window: it is bounded in bytes; a batch too, but for a commit that is larger alone; lanes take turns", () => {
  const window = new ShippingWindow<number>(0, limits);
  for (let sequence = 1; sequence <= 4; sequence++) window.add(sequence, [{ lane: "a", bytes: sequence === 2 ? 70 : 14, rows: sequence }]);
  window.add(5, [{ lane: "b", bytes: 1, rows: 5 }]);
  assert.equal(window.hasRoom, false);
  assert.deepEqual(window.take(), { lane: "a", parts: [{ sequence: 1, rows: 1 }] });
  assert.deepEqual(window.take()?.lane, "b");
  assert.equal(window.take(), undefined, "one batch of a lane at once");
  window.delivered("a");
  assert.deepEqual(window.take()?.parts, [{ sequence: 2, rows: 2 }]);
  window.failed("a");
  assert.deepEqual(window.take()?.parts, [{ sequence: 2, rows: 2 }], "it begins with the oldest that was not delivered");
  window.delivered("a");
  assert.deepEqual(
    window.take()?.parts.map(({ sequence }) => sequence),
    [3, 4],
  );
  assert.ok(window.hasRoom);
  assert.equal(window.acknowledged, 2);
});

test("shipping window: commits without rows of the account are not kept, however long an earlier one is on its way", () => {
  const window = new ShippingWindow<string>(0, limits);
  window.add(1, [{ lane: "a", bytes: 1, rows: "1" }]);
  assert.ok(window.take() !== undefined);
  for (let sequence = 2; sequence <= 1_000; sequence++) window.add(sequence, []);
  assert.deepEqual([window.count, window.acknowledged], [1, 0]);
  window.delivered("a");
  assert.deepEqual([window.count, window.acknowledged], [0, 1_000]);
});
