/** Frames, headers and records: what is written is read back; a truncated or flipped byte is a typed refusal; golden files are frozen. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { concatBytes, extentId, extentVersion, ownerEpoch } from "@stamp/base";
import { NodeDigest } from "@stamp/ports-node";
import fc from "fast-check";
import { decodeNodeIdentity, encodeNodeIdentity } from "../disk/node-identity.ts";
import { decodeScrubState, encodeScrubState } from "../disk/scrub-pass.ts";
import { decodeJournalBegun, encodeJournalBegun, journalBegunBytes, journalBegunOffset } from "../journal/journal-begun.ts";
import {
  decodeJournalHeader,
  decodePointerBody,
  decodeSealBody,
  encodeJournalHeader,
  encodePointerBody,
  encodeSealBody,
  type JournalHeader,
} from "../journal/journal-record.ts";
import { decodeSegmentHeader, encodeSegmentHeader } from "../journal/journal-segment.ts";
import { decodeMeta, encodeMeta, type ReplicaMeta } from "../replica/replica-meta.ts";
import { encodeFrameHeader, frameBytes, parseFrameHeader, payloadBytesOf, walkFrames } from "./block-frame.ts";
import { BlockIndex, encodeFrameRun, indexFromRuns } from "./block-index.ts";
import { combineCrc32c } from "./crc.ts";
import { decodeExtentHeader, encodeExtentHeader, extentSlotOffset } from "./extent-header.ts";
import { Slices } from "./slices.ts";

const digest = new NodeDigest();
const crc32c = (bytes: Uint8Array, seed?: number): number => digest.crc32c(bytes, seed);
const id = extentId(77);
const bytesOf = (length: number): Uint8Array => new Uint8Array(length).map((_, i) => (i * 7 + (i >> 8)) & 0xff);

const meta: ReplicaMeta = {
  extentId: extentId(2 ** 40 + 5),
  version: extentVersion(3),
  ownerEpoch: ownerEpoch(9),
  state: "sealed",
  fenced: true,
  restarted: false,
  sealedLengthBytes: 123_456_789,
  checksum: 0xdeadbeef,
  durableBytes: 123_456_789,
  committedBytes: 123_456_789,
  appliedLsn: 4711,
  replicas: ["a", "b", "c"].map((name) => ({
    nodeId: `extent-node-${name}`,
    address: `${name}.example:7200`,
    diskId: `disk-${name}-${"0".repeat(90)}`,
  })),
  damage: "",
};
const created: ReplicaMeta = { ...meta, creation: { number: 2 ** 53 - 1, stream: "/ps/blob-1/commit-log", predecessor: 2 ** 40 + 4 } };
const copied: ReplicaMeta = { ...meta, creation: { number: 1, stream: "/by-hand" } };
const record: JournalHeader = {
  type: "append",
  extentId: id,
  offsetBytes: 5_000_000_000,
  ownerEpoch: ownerEpoch(4),
  committedBytes: 4_999_999_000,
  generation: 12,
  lsn: 1_000_001,
  syncedLsn: 1_000_000,
  bodyBytes: 1_044,
  bodyChecksum: 0x12345678,
};
const pointerRecord: JournalHeader = { ...record, type: "pointer", bodyBytes: 8, bodyChecksum: 0x87654321 };
const segment = { salt: 0xcafe, generation: 12, firstLsn: 900, smTerm: 7, termLowerings: 2, segmentBytes: 1 << 25, checkpointLsn: 800 };
const identity = {
  stampId: "3f6f0d1e-0000-4000-8000-000000000001",
  nodeId: "extent-node-1",
  diskId: "9b1e7a52-0000-4000-8000-000000000002",
};

function frame(offsetBytes: number, payload: Uint8Array): Uint8Array {
  return concatBytes([encodeFrameHeader(crc32c, id, offsetBytes, payload), payload]);
}

test("crc32c: joining two checksums is the checksum of both", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ maxLength: 300 }), (a, b) => {
      assert.equal(combineCrc32c(crc32c(a), crc32c(b), b.length), crc32c(concatBytes([a, b])));
    }),
  );
  assert.equal(crc32c(new TextEncoder().encode("123456789")), 0xe3069283);
});

test("frame: whole frames are walked over any cut into slices, and only at their own place in their own extent", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 140_000 }), { minLength: 1, maxLength: 4 }),
      fc.array(fc.nat(400_000), { maxLength: 6 }),
      (sizes, cuts) => {
        let at = 4_096;
        const parts: Uint8Array[] = [];
        for (const size of sizes) {
          parts.push(frame(at, bytesOf(size)));
          at += frameBytes(size);
        }
        const whole = concatBytes(parts);
        const edges = [0, ...cuts.map((cut) => cut % whole.length).sort((a, b) => a - b), whole.length];
        const slices = edges.slice(1).map((edge, i) => whole.subarray(edges[i], edge));
        const walked = walkFrames(crc32c, id, 4_096, new Slices(slices), { payloads: true });
        assert.equal(walked.kind, "frames");
        if (walked.kind === "frames")
          assert.deepEqual(
            walked.frames.map((each) => each.payloadBytes),
            sizes,
          );
        assert.equal(walkFrames(crc32c, id, 0, new Slices([whole]), { payloads: true }).kind, "invalid");
        assert.equal(walkFrames(crc32c, extentId(78), 4_096, new Slices([whole]), { payloads: true }).kind, "invalid");
        assert.equal(walkFrames(crc32c, id, 4_096, new Slices([whole.subarray(0, whole.length - 1)]), { payloads: true }).kind, "invalid");
      },
    ),
    { numRuns: 40 },
  );
});

test("frame: every flipped byte, in header or payload, is found", () => {
  const whole = frame(0, bytesOf(300));
  for (let i = 0; i < whole.length; i++) {
    const flipped = whole.slice();
    flipped[i] = (flipped[i] as number) ^ 0x40;
    assert.equal(walkFrames(crc32c, id, 0, new Slices([flipped]), { payloads: true }).kind, "invalid", `byte ${i}`);
  }
  assert.equal(parseFrameHeader(crc32c, id, 0, whole.subarray(0, 10)).kind, "short");
});

test("frame: its payload length follows from its total length", () => {
  for (const payload of [1, 65_535, 65_536, 65_537, 131_072, 131_073, 4 * 1024 * 1024])
    assert.equal(payloadBytesOf(frameBytes(payload)), payload);
  assert.equal(payloadBytesOf(16), undefined);
  assert.equal(payloadBytesOf(frameBytes(65_536) + 2), undefined);
});

test("block index: runs that overlap are put together, gaps are not, and a cut must be at a frame", () => {
  const totals = [100, 70_000, 50, 3_000].map(frameBytes);
  const begins = totals.map((_, i) => totals.slice(0, i).reduce((sum, each) => sum + each, 0));
  const end = totals.reduce((sum, each) => sum + each, 0);
  const run = (from: number, to: number): [number, Uint8Array] => [begins[from] ?? 0, encodeFrameRun(totals.slice(from, to))];
  const index = indexFromRuns([run(0, 3), run(1, 2), run(2, 4)], end);
  assert.equal(index?.count, 4);
  for (const [i, begin] of begins.entries()) {
    assert.equal(index?.find(begin)?.offsetBytes, begin);
    assert.equal(index?.find(begin + (totals[i] ?? 0) - 1)?.totalBytes, totals[i]);
  }
  assert.equal(index?.find(end), undefined);
  assert.equal(indexFromRuns([run(0, 1), run(2, 4)], end), undefined);
  assert.equal(indexFromRuns([run(0, 3)], end), undefined);
  assert.equal(indexFromRuns([run(0, 4)], begins[2] ?? 0)?.count, 2);
  const cut = new BlockIndex();
  for (const [i, begin] of begins.entries()) cut.push(begin, totals[i] ?? 0);
  assert.equal(cut.truncate((begins[2] ?? 0) + 1), false);
  assert.equal(cut.truncate(begins[2] ?? 0), true);
  assert.equal(cut.endBytes, begins[2]);
});

test("extent header: the newer valid slot counts, and one torn slot leaves the other", () => {
  const file = new Uint8Array(8192);
  for (const generation of [4, 5]) {
    file.set(
      encodeExtentHeader(crc32c, { generation, stampId: "s", diskId: "d", meta: { ...meta, appliedLsn: generation } }),
      extentSlotOffset(generation),
    );
  }
  const newest = decodeExtentHeader(crc32c, file);
  assert.equal(newest.kind === "ok" ? newest.value.meta.appliedLsn : 0, 5);
  file[4096 + 100] = (file[4096 + 100] as number) ^ 1;
  const older = decodeExtentHeader(crc32c, file);
  assert.equal(older.kind === "ok" ? older.value.generation : 0, 4);
  file[100] = (file[100] as number) ^ 1;
  assert.equal(decodeExtentHeader(crc32c, file).kind, "invalid");
});

const goldenFolder = join(import.meta.dirname, "../../../../tests/golden");

/** Compares the encoded bytes with the file; set GOLDEN=write to make a file that is not there yet. */
function golden(name: string, encoded: Uint8Array): Uint8Array {
  const path = join(goldenFolder, name);
  if (!existsSync(path) && process.env.GOLDEN === "write") {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, encoded);
  }
  const frozen = new Uint8Array(readFileSync(path));
  assert.deepEqual(new Uint8Array(encoded), frozen, `${name} has changed`);
  return frozen;
}

const formats: readonly {
  readonly name: string;
  readonly encoded: Uint8Array;
  readonly value: unknown;
  decode(bytes: Uint8Array): unknown;
}[] = [
  {
    name: "extent/v1/header-slot.bin",
    encoded: encodeExtentHeader(crc32c, { generation: 2, stampId: identity.stampId, diskId: identity.diskId, meta }),
    value: { generation: 2, stampId: identity.stampId, diskId: identity.diskId, meta },
    decode: (bytes) => decodeExtentHeader(crc32c, bytes),
  },
  {
    name: "extent/v2/header-slot.bin",
    encoded: encodeExtentHeader(crc32c, { generation: 2, stampId: identity.stampId, diskId: identity.diskId, meta: created }),
    value: { generation: 2, stampId: identity.stampId, diskId: identity.diskId, meta: created },
    decode: (bytes) => decodeExtentHeader(crc32c, bytes),
  },
  {
    name: "extent/v1/node-identity.bin",
    encoded: encodeNodeIdentity(crc32c, identity),
    value: identity,
    decode: (bytes) => decodeNodeIdentity(crc32c, bytes),
  },
  {
    name: "journal/v3/segment-header.bin",
    encoded: encodeSegmentHeader(crc32c, segment),
    value: segment,
    decode: (bytes) => decodeSegmentHeader(crc32c, bytes),
  },
  {
    name: "journal/v1/record-header.bin",
    encoded: encodeJournalHeader(crc32c, segment.salt, record),
    value: record,
    decode: (bytes) => decodeJournalHeader(crc32c, segment.salt, 12, bytes),
  },
  { name: "journal/v1/create-body.bin", encoded: encodeMeta(meta), value: meta, decode: decodeMeta },
  { name: "journal/v3/create-body-creation.bin", encoded: encodeMeta(created), value: created, decode: decodeMeta },
  { name: "journal/v3/repair-body-creation.bin", encoded: encodeMeta(copied), value: copied, decode: decodeMeta },
  {
    name: "journal/v1/seal-body.bin",
    encoded: encodeSealBody({ version: 3, checksum: 99 }),
    value: { version: 3, checksum: 99 },
    decode: decodeSealBody,
  },
  {
    name: "journal/v2/pointer-header.bin",
    encoded: encodeJournalHeader(crc32c, segment.salt, pointerRecord),
    value: pointerRecord,
    decode: (bytes) => decodeJournalHeader(crc32c, segment.salt, 12, bytes),
  },
  {
    name: "journal/v2/pointer-body.bin",
    encoded: encodePointerBody({ lengthBytes: 1_048_660, checksum: 0x89abcdef }),
    value: { lengthBytes: 1_048_660, checksum: 0x89abcdef },
    decode: decodePointerBody,
  },
];

for (const format of formats) {
  test(`golden ${format.name}: encodes as frozen, decodes to the same, and refuses what is cut off`, () => {
    const frozen = golden(format.name, format.encoded);
    assert.deepEqual(format.decode(frozen), { kind: "ok", value: format.value });
    for (const length of [0, 1, 7, Math.min(40, frozen.length - 1)]) {
      assert.equal((format.decode(frozen.subarray(0, length)) as { kind: string }).kind, "invalid", `${length} bytes`);
    }
  });
}

for (const version of ["v1", "v2"]) {
  test(`golden journal/${version}/segment-header.bin: a segment of an earlier version is read; no term was lowered`, () => {
    const frozen = new Uint8Array(readFileSync(join(goldenFolder, `journal/${version}/segment-header.bin`)));
    assert.deepEqual(decodeSegmentHeader(crc32c, frozen), { kind: "ok", value: { ...segment, termLowerings: 0 } });
  });
}

test("golden journal-begun: encodes as frozen; each slot alone says its generation, the higher counts, a flipped byte counts as absent", () => {
  const slot = golden("extent/v1/journal-begun.bin", encodeJournalBegun(crc32c, 2 ** 33 + 7));
  const file = new Uint8Array(journalBegunBytes);
  assert.equal(decodeJournalBegun(crc32c, file), 0);
  assert.equal(decodeJournalBegun(crc32c, new Uint8Array(0)), 0);
  file.set(slot, journalBegunOffset(2 ** 33 + 7));
  assert.equal(decodeJournalBegun(crc32c, file), 2 ** 33 + 7);
  file.set(encodeJournalBegun(crc32c, 2 ** 33 + 8), journalBegunOffset(2 ** 33 + 8));
  assert.equal(decodeJournalBegun(crc32c, file), 2 ** 33 + 8);
  for (let i = 0; i < 16; i++) {
    const hurt = file.slice();
    hurt[journalBegunOffset(2 ** 33 + 8) + i] = (hurt[journalBegunOffset(2 ** 33 + 8) + i] as number) ^ 0x10;
    assert.equal(decodeJournalBegun(crc32c, hurt), 2 ** 33 + 7, `byte ${i}`);
  }
});

test("golden scrub-state: encodes as frozen, decodes to the same", () => {
  const pass = { number: 3, startedAtMs: 1_700_000_000_000, extents: 12, bytes: 3_456, findings: 1 };
  const state = {
    pass: { ...pass, seed: 77, lastExtentId: 9 },
    finished: { ...pass, number: 2, endedAtMs: 1_699_999_999_000 },
    findings: [{ extentId: 5, atMs: 1_700_000_000_500, why: "at 0: frame payload checksum" }],
  };
  const frozen = golden("extent/v1/scrub-state.json", encodeScrubState(state));
  assert.deepEqual(decodeScrubState(frozen), { kind: "ok", value: state });
});

test("golden: two frames decode to the same payloads", () => {
  const payloads = [bytesOf(10), bytesOf(70_000)];
  const first = frame(0, payloads[0] as Uint8Array);
  const frozen = golden("extent/v1/two-frames.bin", concatBytes([first, frame(first.length, payloads[1] as Uint8Array)]));
  const walked = walkFrames(crc32c, id, 0, new Slices([frozen]), { payloads: true });
  assert.deepEqual(walked.kind === "frames" ? walked.frames.map((each) => each.payloadBytes) : [], [10, 70_000]);
});

test("formats with a checksum: every flipped byte of what counts is refused", () => {
  const flip = (bytes: Uint8Array, i: number): Uint8Array => {
    const flipped = bytes.slice();
    flipped[i] = (flipped[i] as number) ^ 0x10;
    return flipped;
  };
  const encodedRecord = encodeJournalHeader(crc32c, segment.salt, record);
  for (let i = 0; i < encodedRecord.length; i++) {
    assert.equal(decodeJournalHeader(crc32c, segment.salt, 12, flip(encodedRecord, i)).kind, "invalid", `record byte ${i}`);
  }
  assert.equal(decodeJournalHeader(crc32c, segment.salt + 1, 12, encodedRecord).kind, "invalid");
  assert.equal(decodeJournalHeader(crc32c, segment.salt, 13, encodedRecord).kind, "invalid");
  const encodedIdentity = encodeNodeIdentity(crc32c, identity);
  for (let i = 0; i < encodedIdentity.length; i++) {
    assert.equal(decodeNodeIdentity(crc32c, flip(encodedIdentity, i)).kind, "invalid", `identity byte ${i}`);
  }
  const header = encodeSegmentHeader(crc32c, segment);
  for (let i = 0; i < 68; i++) {
    assert.equal(decodeSegmentHeader(crc32c, flip(header, i)).kind, "ok", "the second copy stands in");
    assert.equal(decodeSegmentHeader(crc32c, flip(flip(header, i), 4096 + i)).kind, "invalid", `segment byte ${i}`);
  }
});
