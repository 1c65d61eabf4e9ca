import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { ByteCache } from "./caches.ts";

const overheadBytes = 256;
const place = (offsetBytes: number) => ({ extentId: 1, offsetBytes, lengthBytes: 1 });
const item = (bytes: number) => ({ bytes });

test("byte cache: never holds more than it may, counts what it holds, and gives what was put last", () => {
  const step = fc.record({ does: fc.constantFrom("put", "get"), at: fc.nat(40), bytes: fc.integer({ min: 0, max: 3_000 }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const cache = new ByteCache<{ bytes: number }>(10_000, 3_000);
      const put = new Map<number, { bytes: number }>();
      for (const { does, at, bytes } of steps) {
        const found = cache.hold(place(at))?.value;
        assert.ok(found === undefined || found === put.get(at));
        if (does === "put") {
          if (found === undefined) put.set(at, item(bytes));
          cache.put(place(at), put.get(at) ?? item(bytes));
          assert.equal(cache.hold(place(at)) !== undefined, (put.get(at)?.bytes ?? 0) + overheadBytes <= 3_000);
        } else assert.equal(cache.get(place(at)), found);
        let held = 0;
        for (const key of put.keys()) {
          const value = cache.hold(place(key))?.value;
          if (value !== undefined) held += value.bytes + overheadBytes;
        }
        assert.equal(cache.bytes, held);
        assert.ok(held <= 10_000);
      }
    }),
  );
});

test("byte cache: what is asked for again and again stays while much is read once", () => {
  const cache = new ByteCache<{ bytes: number }>(10 * (1_000 + overheadBytes));
  for (let at = 0; at < 3; at++) cache.put(place(at), item(1_000));
  for (let once = 100; once < 1_000; once++) {
    cache.put(place(once), item(1_000));
    for (let at = 0; at < 3; at++) assert.ok(cache.get(place(at)), `${at} after ${once}`);
  }
  assert.equal(cache.get(place(998)) !== undefined && cache.get(place(150)) === undefined, true);
});

test("byte cache: whoever keeps what it gave sees it pushed out, and one alone may be larger than the cache", () => {
  const cache = new ByteCache<{ bytes: number }>(1, Number.POSITIVE_INFINITY);
  cache.put(place(1), item(500));
  const held = cache.hold(place(1));
  assert.equal(held?.value?.bytes, 500);
  if (held) held.used = true;
  cache.put(place(2), item(700));
  assert.deepEqual([held?.value, cache.get(place(1)), cache.get(place(2))?.bytes], [undefined, undefined, 700]);
});
