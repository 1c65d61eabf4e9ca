import assert from "node:assert/strict";
import { test } from "node:test";
import { frontEndConfigSchema } from "./config.ts";
import { roomBesideOf } from "./room-beside.ts";

const mebibyte = 1024 * 1024;

test("room beside small requests: three whole pieces at least, whatever the size of pieces, and never more than there is", () => {
  for (const [given, bytesMin] of [
    [{}, 3 * mebibyte],
    [{ uploadBytesBeside: 1 }, 3 * mebibyte],
    [{ uploadBytesBeside: 6 * mebibyte }, 6 * mebibyte],
    [{ pieceBytes: 4 * mebibyte }, 12 * mebibyte],
    [{ pieceBytes: 4 * mebibyte, uploadBytesMax: 8 * mebibyte }, 7 * mebibyte],
    [{ throttle: false }, 28 * mebibyte],
  ] as const) {
    assert.equal(roomBesideOf(frontEndConfigSchema.parse(given)).bytesMin, bytesMin, JSON.stringify(given));
  }
});
