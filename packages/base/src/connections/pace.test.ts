import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Pace } from "./pace.ts";

const options = { leastBytesPerSecond: 1_000, windowMs: 10_000, creditMaxMs: 20_000 };

test("pace: a peer that moves nothing is too slow when the window has passed", () => {
  const pace = new Pace(options);
  pace.wait(5_000);
  assert.deepEqual([pace.isTooSlow(14_999), pace.isTooSlow(15_000)], [false, true]);
});

test("pace: time in which the server does not wait does not count", () => {
  const pace = new Pace(options);
  pace.wait(0);
  pace.rest(4_000);
  assert.equal(pace.isTooSlow(1_000_000), false);
  pace.wait(1_000_000);
  assert.deepEqual([pace.isTooSlow(1_005_999), pace.isTooSlow(1_006_000)], [false, true]);
});

test("pace: what a peer moved at once lets it stand still for longer, but not for ever", () => {
  const pace = new Pace(options);
  pace.moved(1_000_000_000);
  pace.wait(0);
  assert.deepEqual([pace.isTooSlow(19_999), pace.isTooSlow(20_000)], [false, true]);
});

test("pace: without a least rate nobody is too slow", () => {
  const pace = new Pace({ ...options, leastBytesPerSecond: 0 });
  pace.wait(0);
  pace.moved(10);
  assert.equal(pace.isTooSlow(1e12), false);
});

test("pace, whatever pieces of up to the window the bytes come in: at the least rate never too slow, at half of it always", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 9_000 }), { minLength: 30, maxLength: 60 }), (gapsMs) => {
      for (const part of [1, 0.5]) {
        const pace = new Pace(options);
        let nowMs = 0;
        let tooSlow = false;
        for (const gapMs of gapsMs) {
          pace.wait(nowMs);
          nowMs += gapMs;
          tooSlow ||= pace.isTooSlow(nowMs);
          pace.rest(nowMs);
          pace.moved(gapMs * part);
        }
        const longEnough = nowMs > 40_000;
        if (part === 1) assert.equal(tooSlow, false);
        else if (longEnough) assert.equal(tooSlow, true);
      }
    }),
  );
});
