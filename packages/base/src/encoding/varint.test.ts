/** The writer against what the reader reads. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { utf8 } from "../bytes.ts";
import { ByteReader, ByteWriter } from "./varint.ts";

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 200 }),
  fc.string({ unit: "binary-ascii", maxLength: 40 }),
  // Some texts have one byte of length in UTF-8 although they are longer than 127 bytes, and the other way round.
  fc.integer({ min: 25, max: 140 }).map((length) => "ä".repeat(length)),
  fc.integer({ min: 5_400, max: 5_500 }).map((length) => "語".repeat(length)),
  fc.constantFrom("\ud800", "a\udfffb".repeat(40)),
);

test("text is its length in UTF-8 and itself, whatever lies before it and behind", () => {
  fc.assert(
    fc.property(fc.array(text, { maxLength: 6 }), (texts) => {
      const [written, expected] = [new ByteWriter(0), new ByteWriter()];
      for (const each of texts) {
        written.text(each);
        expected.sized(utf8(each));
      }
      assert.deepEqual(written.finish(), expected.finish());
    }),
  );
});

test("numbers of fixed length are big-endian, also when the writer grows under them", () => {
  const writer = new ByteWriter(1);
  writer.int32(-2);
  writer.float64(-1.5);
  writer.int64(-3n);
  writer.byte(7);
  const bytes = writer.finish();
  const view = new DataView(bytes.buffer);
  assert.deepEqual([view.getInt32(0), view.getFloat64(4), view.getBigInt64(12), view.getUint8(20)], [-2, -1.5, -3n, 7]);
});

test("what is taken is what was written, with room behind it", () => {
  const writer = new ByteWriter(4);
  writer.sized(utf8("abc"));
  assert.deepEqual([...writer.written], [3, 97, 98, 99]);
  const taken = writer.take(4);
  assert.equal(taken.length, 8);
  assert.deepEqual([...new ByteReader(taken).sized()], [97, 98, 99]);
});
