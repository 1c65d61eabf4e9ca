import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { BlockCache } from "./block-cache.ts";

const place = (at: number) => ({ extentId: at % 3, offsetBytes: at, lengthBytes: 1 });
/** Its own of every block, and of each time that it is put. */
const block = (at: number, round: number, bytes: number): Uint8Array => new Uint8Array(bytes).map((_, i) => at * 7 + round * 31 + i);

test("block cache: gives what was put last or nothing, never holds more than it may, counts what it holds, and says when nothing goes", () => {
  const step = fc.record({
    does: fc.constantFrom("put", "put", "get", "forget"),
    at: fc.nat(40),
    bytes: fc.integer({ min: 1, max: 3_000 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const cache = new BlockCache(10_000);
      const put = new Map<number, Uint8Array>();
      let heldBefore = 0;
      for (const [round, { does, at, bytes }] of steps.entries()) {
        const roomy = bytes <= 2_500 && cache.hasRoomFor(bytes);
        const found = cache.peek(place(at));
        if (does === "put") {
          const given = block(at, round, bytes);
          if (found === undefined) put.set(at, Uint8Array.from(given));
          cache.put(place(at), given);
          assert.equal(cache.peek(place(at)) !== undefined, found !== undefined || bytes <= 2_500);
          // The cache has copied the block: changes of the caller's buffer are not seen.
          given.fill(0);
        } else if (does === "get") assert.deepEqual(cache.get(place(at)), found);
        else {
          cache.forget(place(at));
          assert.equal(cache.get(place(at)), undefined);
        }
        let held = 0;
        for (const [key, whole] of put) {
          const bytesNow = cache.peek(place(key));
          if (bytesNow === undefined) continue;
          assert.deepEqual(bytesNow, whole);
          held += bytesNow.length;
        }
        assert.equal(cache.bytes, held);
        if (does === "put" && found === undefined && roomy) assert.equal(held, heldBefore + bytes, "something was pushed out");
        heldBefore = held;
        assert.ok(held <= 10_000);
      }
    }),
    { numRuns: 500 },
  );
});

test("block cache: what is asked for again and again stays while much is read once", () => {
  const cache = new BlockCache(20_000);
  const hot = [0, 1, 2];
  for (const at of hot) cache.put(place(at), block(at, 0, 1_000));
  for (let once = 100; once < 1_000; once++) {
    cache.put(place(once), block(once, 0, 1_000));
    for (const at of hot) assert.ok(cache.get(place(at)), `${at} after ${once}`);
  }
  assert.equal(cache.get(place(998)) !== undefined && cache.get(place(150)) === undefined, true);
});

test("block cache: however much is asked for, what is new finds room", () => {
  const cache = new BlockCache(20_000);
  for (let at = 0; at < 100; at++) {
    cache.put(place(at), block(at, 0, 1_000));
    for (let before = 0; before <= at; before++) cache.get(place(before));
    assert.ok(cache.peek(place(at)));
  }
});

test("block cache: what was forgotten makes room before anything else goes", () => {
  const cache = new BlockCache(20_000);
  // The oldest segment stays whole, the one behind it is forgotten but for one block.
  for (let at = 0; at < 20; at++) cache.put(place(at), block(at, 0, 1_000));
  for (let at = 5; at < 9; at++) cache.forget(place(at));
  for (let at = 20; at < 24; at++) cache.put(place(at), block(at, 0, 1_000));
  const there = Array.from({ length: 24 }, (_, at) => at).filter((at) => cache.peek(place(at)) !== undefined);
  assert.deepEqual(there, [0, 1, 2, 3, 4, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]);
  assert.equal(cache.bytes, 20_000);
});

test("block cache: room of what was forgotten is used before more memory is taken", () => {
  const cache = new BlockCache(20_000);
  for (let at = 0; at < 100; at++) {
    cache.put(place(at), block(at, 0, 1_000));
    cache.forget(place(at - 2));
  }
  assert.equal(cache.takenBytes, 5_000);
  assert.equal(cache.bytes, 2_000);
});

test("block cache: room of what was forgotten here and there is put together before anything goes", () => {
  const cache = new BlockCache(80_000);
  for (let at = 0; at < 80; at++) cache.put(place(at), block(at, 0, 1_000));
  assert.ok(!cache.hasRoomFor(1_000));
  for (let at = 0; at < 80; at += 4) cache.forget(place(at));
  assert.ok(cache.hasRoomFor(1_000));
  for (let at = 100; cache.hasRoomFor(1_000); at++) {
    cache.put(place(at), block(at, 0, 1_000));
    assert.ok(cache.peek(place(at)));
  }
  assert.ok(cache.bytes >= 74_000, `${cache.bytes}`);
  for (let at = 0; at < 80; at++) assert.equal(cache.peek(place(at)) !== undefined, at % 4 > 0, `${at}`);
});
