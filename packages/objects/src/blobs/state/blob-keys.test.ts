/** Keys of blobs' rows are read as decodeKey reads them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, concatBytes, prefixEnd } from "@stamp/base";
import fc from "fast-check";
import { blobPrefix, headKey, keptKey } from "../../object-keys.ts";
import { appendComponents, decodeKey, type KeyComponent } from "../../rows/key.ts";
import { BlobKeys } from "./blob-keys.ts";

const container = { account: "acct", container: "cont", containerIncarnation: 70_000 };
const names = fc
  .oneof(
    fc.constantFrom("a", "ab", "a\0", "a\0b", "a\0\u0005\u0014", "\0", "\u0001", "\ufeffa", "\u{10000}"),
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 5 }),
  )
  .filter((name) => name.isWellFormed());
const elements = fc.tuple(
  fc.nat(6),
  fc.oneof(fc.nat(300), fc.maxSafeNat(), fc.uint8Array({ maxLength: 4 }), fc.constant(undefined)),
  fc.oneof(fc.nat(3), fc.constant(undefined)),
);

test("blob keys: name, kind, stamp and the end of the blob are those of the decoded key, in any order of keys", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(names, elements), { minLength: 1, maxLength: 6 }), (rows) => {
      const keys = new BlobKeys(allRules, container);
      for (const [name, [kind, second, third]] of rows) {
        const prefix = blobPrefix(allRules, { ...container, blob: name });
        const objectName = [kind, second, third].filter((element) => element !== undefined);
        const key = appendComponents(prefix, [objectName]);
        keys.read(key);
        const decoded = decodeKey(key);
        assert.ok(decoded.ok);
        const [, blob, row] = decoded.value as [KeyComponent, KeyComponent, KeyComponent];
        assert.deepEqual([keys.name, keys.kind], [blob[3], row[0]]);
        if (typeof row[1] === "number") assert.equal(keys.stamp, row[1]);
        else assert.equal(keys.stamp, 0);
        assert.deepEqual(keys.blobPrefix(), new Uint8Array(prefix));
        assert.deepEqual(keys.behindBlob(), prefixEnd(prefix));
      }
    }),
    { numRuns: 2_000 },
  );
});

test("blob keys: a damaged key is refused, and the next one is read", () => {
  const keys = new BlobKeys(allRules, container);
  const prefix = blobPrefix(allRules, { ...container, blob: "name" });
  const good = keptKey(prefix, 5);
  for (const bad of [good.subarray(0, good.length - 3), good.subarray(0, prefix.length - 1), concatBytes([prefix, Uint8Array.of(9)])]) {
    assert.throws(() => keys.read(bad), /key/);
  }
  const notText = headKey(prefix);
  notText[prefix.length - 3] = 0xff;
  assert.throws(() => keys.read(notText), /UTF-8/);
  keys.read(good);
  assert.deepEqual([keys.name, keys.kind, keys.stamp], ["name", 1, 5]);
});
