import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, extentId } from "@stamp/base";
import { NodeDigest } from "@stamp/ports-node";
import fc from "fast-check";
import { encodeFrameHeader } from "./block-frame.ts";
import { FrameFeed } from "./frame-feed.ts";

const digest = new NodeDigest();
const crc32c = (bytes: Uint8Array, seed?: number): number => digest.crc32c(bytes, seed);
const id = extentId(2 ** 33 + 7);

/** Frames one after another from `offsetBytes` of the extent on. */
function framesOf(lengths: readonly number[], offsetBytes: number): { readonly bytes: Uint8Array; readonly totals: number[] } {
  const parts: Uint8Array[] = [];
  const totals: number[] = [];
  let at = offsetBytes;
  for (const length of lengths) {
    const payload = new Uint8Array(length).map((_, i) => (i * 31 + at) % 251);
    const header = encodeFrameHeader(crc32c, id, at, payload);
    parts.push(header, payload);
    totals.push(header.length + length);
    at += header.length + length;
  }
  return { bytes: concatBytes(parts), totals };
}

/** In pieces of these lengths, again and again. */
function feed(bytes: Uint8Array, offsetBytes: number, pieces: readonly number[]) {
  const fed = new FrameFeed(crc32c, id, offsetBytes);
  const out: Uint8Array[] = [];
  const totals: number[] = [];
  for (let turn = 0; fed.nextBytes < offsetBytes + bytes.length; turn++) {
    const from = fed.nextBytes - offsetBytes;
    const frames = fed.push(bytes.subarray(from, from + (pieces[turn % pieces.length] as number)));
    if (frames.kind === "invalid") return { invalidAt: frames.offsetBytes, why: frames.why };
    assert.equal(frames.offsetBytes, fed.endBytes - frames.bytes.length);
    out.push(frames.bytes);
    totals.push(...frames.totals);
  }
  return { bytes: concatBytes(out), totals, endBytes: fed.endBytes };
}

const lengths = fc.array(fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 65_000, max: 200_000 })), {
  minLength: 1,
  maxLength: 8,
});
const pieces = fc.array(fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1_000, max: 100_000 })), {
  minLength: 1,
  maxLength: 5,
});
const offset = fc.constantFrom(0, 5, 2 ** 32 - 40);

test("frame feed: whatever the pieces, the same frames come out, each once it is whole", () => {
  fc.assert(
    fc.property(lengths, pieces, offset, fc.nat(), (sizes, cut, offsetBytes, short) => {
      const { bytes, totals } = framesOf(sizes, offsetBytes);
      const large = [...cut, 20_000];
      assert.deepEqual(feed(bytes, offsetBytes, large), { bytes, totals, endBytes: offsetBytes + bytes.length });
      const cutShort = bytes.subarray(0, bytes.length - 1 - (short % (totals.at(-1) as number)));
      const whole = bytes.length - (totals.at(-1) as number);
      assert.equal(feed(cutShort, offsetBytes, large).endBytes, offsetBytes + whole, "what is not whole is held");
    }),
    { numRuns: 60 },
  );
});

test("frame feed: a byte that is not what was written is found before its frame goes out, and so is a frame from elsewhere", () => {
  fc.assert(
    fc.property(lengths, pieces, offset, fc.nat(), fc.integer({ min: 1, max: 255 }), (sizes, cut, offsetBytes, where, flip) => {
      const { bytes, totals } = framesOf(sizes, offsetBytes);
      const at = where % bytes.length;
      bytes[at] = (bytes[at] as number) ^ flip;
      let frameAt = offsetBytes;
      for (const total of totals) {
        if (at + offsetBytes < frameAt + total) break;
        frameAt += total;
      }
      const result = feed(bytes, offsetBytes, [...cut, 20_000]);
      // A length that grew may make the last frame one that never ends.
      assert.ok(result.invalidAt === frameAt || result.endBytes === frameAt, `${result.invalidAt} ${result.endBytes}, not ${frameAt}`);
    }),
    { numRuns: 60 },
  );
  const { bytes } = framesOf([100], 0);
  assert.match(String(feed(bytes, 120, [500]).why), /header checksum/);
});
