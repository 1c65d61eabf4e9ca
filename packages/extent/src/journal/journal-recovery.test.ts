/** The journal as a crash leaves it: any part of the last batch, older uses of the segment behind it, damage in the middle. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extentId, ownerEpoch, Prng } from "@stamp/base";
import { NodeDigest } from "@stamp/ports-node";
import fc from "fast-check";
import { encodeJournalHeader, journalHeaderBytes } from "./journal-record.ts";
import { judgeSegment } from "./journal-recovery.ts";
import { encodeSegmentHeader, pageAligned, type SegmentHeader, scanSegment, segmentRecordsOffset } from "./journal-segment.ts";

const digest = new NodeDigest();
const crc32c = (bytes: Uint8Array, seed?: number): number => digest.crc32c(bytes, seed);
const segmentBytes = 256 * 1024;

interface Written {
  readonly lsn: number;
  readonly from: number;
  readonly to: number;
}

/** Writes batches of records with these body sizes; gives each batch's records and its range. */
function write(bytes: Uint8Array, header: SegmentHeader, batches: readonly (readonly number[])[], prng: Prng): Written[][] {
  bytes.set(encodeSegmentHeader(crc32c, header), 0);
  let at = segmentRecordsOffset;
  let lsn = header.firstLsn;
  return batches.map((sizes) => {
    const syncedLsn = lsn - 1;
    const batch = sizes.map((size) => {
      const body = prng.bytes(size);
      const record = { type: "append" as const, extentId: extentId(1), offsetBytes: 0, ownerEpoch: ownerEpoch(1), committedBytes: 0 };
      const head = encodeJournalHeader(crc32c, header.salt, {
        ...record,
        generation: header.generation,
        lsn,
        syncedLsn,
        bodyBytes: size,
        bodyChecksum: crc32c(body),
      });
      bytes.set(head, at);
      bytes.set(body, at + head.length);
      const written = { lsn, from: at, to: at + head.length + size };
      at = written.to;
      lsn += 1;
      return written;
    });
    at = pageAligned(at);
    return batch;
  });
}

const header = (generation: number, firstLsn: number): SegmentHeader => ({
  salt: generation * 77,
  generation,
  firstLsn,
  smTerm: 1,
  termLowerings: 0,
  segmentBytes,
  checkpointLsn: 0,
});
const batchSizes = fc.array(fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 6 });

test("recovery: of a torn last batch only its intact beginning counts; all before it is there", () => {
  fc.assert(
    fc.property(batchSizes, fc.integer(), (batches, seed) => {
      const prng = new Prng(seed);
      const bytes = new Uint8Array(segmentBytes);
      // An earlier use of the segment with longer history lies below.
      write(bytes, header(1, 1), [[9_000, 9_000], [9_000, 9_000], [9_000]], prng);
      const before = bytes.slice();
      const written = write(bytes, header(2, 100), batches, prng);
      const last = written.at(-1) as Written[];
      const torn = new Set<number>();
      const from = (last[0] as Written).from;
      for (let page = from; page < pageAligned((last.at(-1) as Written).to); page += 512) {
        if (!prng.chance(0.4)) continue;
        for (let i = page; i < page + 512; i++) {
          if (bytes[i] !== before[i]) torn.add(i);
          bytes[i] = before[i] as number;
        }
      }
      const judged = judgeSegment({ header: header(2, 100), records: scanSegment(crc32c, header(2, 100), bytes) }, undefined, 0);
      const lsns = judged.steps.map((step) => {
        assert.equal(step.kind, "replay");
        return step.kind === "replay" ? step.record.header.lsn : 0;
      });
      const hurt = last.find((record) => [...torn].some((i) => i >= record.from && i < record.to));
      const lastLsn = (last.at(-1) as Written).lsn;
      const end = hurt?.lsn ?? lastLsn + 1;
      assert.deepEqual(
        lsns,
        Array.from({ length: end - 100 }, (_, i) => 100 + i),
      );
      assert.equal(judged.nextLsn, end);
    }),
    { numRuns: 150 },
  );
});

test("recovery: a bad record that was synced is damage, never the end", () => {
  fc.assert(
    fc.property(batchSizes, fc.integer(), fc.nat(), fc.boolean(), (batches, seed, pick, inHeader) => {
      const bytes = new Uint8Array(segmentBytes);
      const written = write(bytes, header(2, 1), [...batches, [10]], new Prng(seed));
      const synced = written.slice(0, -1).flat();
      const victim = synced[pick % synced.length] as Written;
      const empty = victim.to === victim.from + journalHeaderBytes;
      const at = inHeader || empty ? victim.from + 30 : victim.to - 1;
      bytes[at] = (bytes[at] as number) ^ 0x80;
      const judged = judgeSegment({ header: header(2, 1), records: scanSegment(crc32c, header(2, 1), bytes) }, undefined, 0);
      const lost = judged.steps.some((step) => step.kind === "lostRecords" && step.fromLsn <= victim.lsn && victim.lsn <= step.toLsn);
      const damaged = judged.steps.some((step) => step.kind === "damagedRecord" && step.record.header.lsn === victim.lsn);
      assert.equal(inHeader || empty ? lost : damaged, true);
      assert.equal(judged.nextLsn, synced.length + 2);
    }),
    { numRuns: 100 },
  );
});

test("recovery: an earlier segment must reach to where the next begins; what a checkpoint covers is asked for no more", () => {
  const bytes = new Uint8Array(segmentBytes);
  write(bytes, header(2, 1), [[10, 10], [10]], new Prng(1));
  const scan = { header: header(2, 1), records: scanSegment(crc32c, header(2, 1), bytes) };
  assert.equal(
    judgeSegment(scan, header(3, 4), 0).steps.every((step) => step.kind === "replay"),
    true,
  );
  assert.deepEqual(judgeSegment(scan, header(3, 6), 0).steps.at(-1), { kind: "lostRecords", fromLsn: 4, toLsn: 5 });
  // Begun after a torn tail was forgotten: record 3 is not what counts.
  assert.equal(judgeSegment(scan, header(3, 3), 0).nextLsn, 3);
  const later = judgeSegment(scan, header(3, 4), 2);
  assert.deepEqual(
    later.steps.map((step) => (step.kind === "replay" ? step.record.header.lsn : 0)),
    [3],
  );
});
