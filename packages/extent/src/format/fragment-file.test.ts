/** The format of fragment files: frozen bytes, every flipped byte, names of chunks, later versions. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { concatBytes, extentId, extentVersion, formatVersions } from "@stamp/base";
import { NodeDigest } from "@stamp/ports-node";
import fc from "fast-check";
import {
  badFragmentChunk,
  decodeFragmentHead,
  decodeFragmentTable,
  encodeFragmentHead,
  encodeFragmentTable,
  type FragmentHead,
  fragmentBytesOf,
  fragmentChunkBytes,
  fragmentChunkChecksum,
  fragmentContentChecksum,
  fragmentContentOffset,
  fragmentHeadBytes,
  fragmentTableBytes,
  isContentOf,
} from "./fragment-file.ts";

const digest = new NodeDigest();
const crc32c = (bytes: Uint8Array, seed?: number): number => digest.crc32c(bytes, seed);
const chunks = 2;
const content = new Uint8Array(chunks * fragmentChunkBytes).map((_, i) => (i * 7 + (i >> 8)) & 0xff);
const spec = {
  extentId: extentId(2 ** 40 + 5),
  version: extentVersion(3),
  index: 13,
  profile: "lrc-12-2-2",
  sealedLengthBytes: 12 * chunks * fragmentChunkBytes - 77,
  fragmentBytes: content.length,
  contentChecksum: 0xdeadbeef,
};
const chunk = (number: number): Uint8Array => content.subarray(number * fragmentChunkBytes, (number + 1) * fragmentChunkBytes);
const table = encodeFragmentTable(
  crc32c,
  Uint32Array.from({ length: chunks }, (_, number) => fragmentChunkChecksum(crc32c, spec, number, chunk(number))),
);
const head: FragmentHead = {
  ...spec,
  stampId: "3f6f0d1e-0000-4000-8000-000000000001",
  diskId: "9b1e7a52-0000-4000-8000-000000000002",
  tableChecksum: table.checksum,
};
const file = concatBytes([encodeFragmentHead(crc32c, head), table.bytes, content]);

/** Returns what a reader of the whole file says: the content, or why it is refused. */
function readFile(bytes: Uint8Array): Uint8Array | string {
  const decoded = decodeFragmentHead(crc32c, bytes.subarray(0, fragmentHeadBytes));
  if (decoded.kind !== "ok") return decoded.kind;
  const from = fragmentContentOffset(decoded.value.fragmentBytes);
  const checksums = decodeFragmentTable(crc32c, decoded.value, bytes.subarray(fragmentHeadBytes, from));
  if (checksums.kind !== "ok") return "table";
  const bad = badFragmentChunk(crc32c, decoded.value, checksums.value, 0, bytes.subarray(from));
  return bad === undefined ? bytes.subarray(from) : `chunk ${bad}`;
}

test("golden fragment/v2/head.bin: the head of an extent with a creation number encodes as frozen, decodes to the same", () => {
  const path = join(import.meta.dirname, "../../../../tests/golden/fragment/v2/head.bin");
  const created = { ...head, creation: 2 ** 53 - 1 };
  const encoded = encodeFragmentHead(crc32c, created);
  if (!existsSync(path) && process.env.GOLDEN === "write") {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, encoded);
  }
  assert.deepEqual(encoded, new Uint8Array(readFileSync(path)), "the format has changed");
  assert.deepEqual(decodeFragmentHead(crc32c, encoded), { kind: "ok", value: created });
});

test("golden fragment/v1/fragment.bin: encodes as frozen, decodes to the same", () => {
  // Content is left out of the golden file: the table holds it.
  const path = join(import.meta.dirname, "../../../../tests/golden/fragment/v1/fragment.bin");
  const encoded = file.subarray(0, fragmentContentOffset(content.length));
  if (!existsSync(path) && process.env.GOLDEN === "write") {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, encoded);
  }
  const frozen = new Uint8Array(readFileSync(path));
  assert.deepEqual(encoded, frozen, "the format has changed");
  assert.deepEqual(decodeFragmentHead(crc32c, frozen), { kind: "ok", value: head });
  const checksums = decodeFragmentTable(crc32c, head, frozen.subarray(fragmentHeadBytes));
  assert.equal(checksums.kind === "ok" ? badFragmentChunk(crc32c, head, checksums.value, 0, content) : "no table", undefined);
});

test("fragment file: every flipped byte of head and table is found, and one anywhere in the content", () => {
  assert.deepEqual(readFile(file), content);
  const bytes = file.slice();
  const flip = (at: number): void => {
    bytes[at] = (bytes[at] as number) ^ 0x10;
  };
  const from = fragmentContentOffset(content.length);
  for (let at = 0; at < from; at++) {
    flip(at);
    assert.equal(typeof readFile(bytes), "string", `byte ${at}`);
    flip(at);
  }
  for (let at = from; at < bytes.length; at += 997) {
    flip(at);
    assert.equal(readFile(bytes), `chunk ${Math.floor((at - from) / fragmentChunkBytes)}`, `byte ${at}`);
    flip(at);
  }
  assert.deepEqual(readFile(bytes), content);
});

test("fragment file: cut off anywhere, it is refused", () => {
  const from = fragmentContentOffset(content.length);
  for (const length of [0, 8, 16, 4095, 4096, from - 1, from + 1, file.length - 1])
    assert.equal(typeof readFile(file.subarray(0, length)), "string", `${length} bytes`);
  const cut = decodeFragmentTable(crc32c, head, file.subarray(fragmentHeadBytes, fragmentHeadBytes + 100));
  assert.equal(cut.kind, "invalid");
  const checksums = Uint32Array.from({ length: chunks }, (_, number) => fragmentChunkChecksum(crc32c, spec, number, chunk(number)));
  assert.equal(badFragmentChunk(crc32c, head, checksums, 0, content.subarray(0, content.length - 1)), chunks - 1);
});

test("fragment file: a chunk passes only at its place in its fragment", () => {
  const own = fragmentChunkChecksum(crc32c, spec, 0, chunk(0));
  for (const other of [
    fragmentChunkChecksum(crc32c, { ...spec, extentId: extentId(spec.extentId + 1) }, 0, chunk(0)),
    fragmentChunkChecksum(crc32c, { ...spec, version: extentVersion(4) }, 0, chunk(0)),
    fragmentChunkChecksum(crc32c, { ...spec, index: 12 }, 0, chunk(0)),
    fragmentChunkChecksum(crc32c, spec, 1, chunk(0)),
  ])
    assert.notEqual(other, own);
  const swapped = Uint32Array.of(own, own);
  assert.equal(badFragmentChunk(crc32c, spec, swapped, 0, concatBytes([chunk(0), chunk(0)])), 1);
});

test("fragment file: an intact head of a later version is newer, never invalid; a damaged one is invalid", () => {
  const later = encodeFragmentHead(crc32c, head);
  const view = new DataView(later.buffer);
  view.setUint16(8, formatVersions.fragment + 1, true);
  assert.equal(decodeFragmentHead(crc32c, later).kind, "invalid");
  view.setUint32(4, crc32c(later.subarray(8)), true);
  assert.deepEqual(decodeFragmentHead(crc32c, later), { kind: "newer", format: "fragment", version: formatVersions.fragment + 1 });
});

test("fragment file: numbers that no fragment has are refused, though the checksum is right", () => {
  for (const [at, value] of [
    [10, 32],
    [12, 5_000],
    [12, 3],
  ] as const) {
    const page = encodeFragmentHead(crc32c, head);
    const view = new DataView(page.buffer);
    if (at === 10) view.setUint8(at, value);
    else view.setUint32(at, value, true);
    view.setUint32(4, crc32c(page.subarray(8)), true);
    assert.equal(decodeFragmentHead(crc32c, page).kind, "invalid", `${value} at ${at}`);
  }
  for (const wrong of [{ fragmentBytes: 100 }, { fragmentBytes: 0 }, { sealedLengthBytes: 0 }, { index: 32 }])
    assert.throws(() => encodeFragmentHead(crc32c, { ...head, ...wrong }), /fragment's numbers/);
});

test("fragment file: fragments hold the extent, with less than a chunk for each to spare", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 33 }), fc.constantFrom(4, 6, 10, 12), (sealedLengthBytes, data) => {
      const fragmentBytes = fragmentBytesOf(sealedLengthBytes, data);
      assert.equal(fragmentBytes % fragmentChunkBytes, 0);
      assert.ok(fragmentBytes * data >= sealedLengthBytes);
      assert.ok((fragmentBytes - fragmentChunkBytes) * data < sealedLengthBytes);
      assert.ok(fragmentTableBytes(fragmentBytes) >= (4 * fragmentBytes) / fragmentChunkBytes);
    }),
  );
});

test("fragment format: the checksum of the content follows from the table", () => {
  const sums = Uint32Array.from({ length: chunks }, (_, number) => fragmentChunkChecksum(crc32c, spec, number, chunk(number)));
  assert.equal(fragmentContentChecksum(crc32c, spec, sums), crc32c(content));
  const flipped = content.slice();
  flipped[fragmentChunkBytes + 9] = (flipped[fragmentChunkBytes + 9] as number) ^ 1;
  sums[1] = fragmentChunkChecksum(crc32c, spec, 1, flipped.subarray(fragmentChunkBytes));
  assert.equal(fragmentContentChecksum(crc32c, spec, sums), crc32c(flipped));
});

test("fragment format: checksums of data fragments are those of an extent only if they join to its content and zeros behind it", () => {
  for (const sealedLengthBytes of [content.length - 77, content.length, fragmentChunkBytes - 1]) {
    const extentContent = content.subarray(0, sealedLengthBytes);
    const fragmentBytes = fragmentChunkBytes;
    const filled = concatBytes([extentContent, new Uint8Array(chunks * fragmentBytes - sealedLengthBytes)]);
    const sums = [crc32c(filled.subarray(0, fragmentBytes)), crc32c(filled.subarray(fragmentBytes))];
    const extent = { sealedLengthBytes, fragmentBytes, contentChecksum: crc32c(extentContent) };
    assert.ok(isContentOf(crc32c, extent, sums));
    assert.ok(!isContentOf(crc32c, extent, sums.with(1, (sums[1] as number) ^ 1)));
    assert.ok(!isContentOf(crc32c, { ...extent, contentChecksum: extent.contentChecksum ^ 1 }, sums));
  }
});
