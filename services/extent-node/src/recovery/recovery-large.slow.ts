/**
 * Recovery of a disk with much on it, on the real disk: sealed extents, and a journal of which nothing is in extent files. The sizes come from
 * RECOVERY_EXTENTS_MIB and RECOVERY_JOURNAL_MIB; what it took is printed, not asserted.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { extentId, extentVersion, ownerEpoch, Prng, unwrap } from "@stamp/base";
import {
  crc32cOf,
  encodeFrameHeader,
  encodeJournalBegun,
  encodeJournalHeader,
  encodeMeta,
  encodeSegmentHeader,
  journalBegunOffset,
  type ReplicaMeta,
  segmentRecordsOffset,
} from "@stamp/extent";
import { type Logger, silentLogger, type World } from "@stamp/ports";
import { nodeWorld } from "@stamp/ports-node";
import { DiskQueue } from "../disk/disk-queue.ts";
import { ExtentFiles, extentPath } from "../disk/extent-files.ts";
import { formatDisk, journalBegunFile } from "../disk/node-disk.ts";
import { ExtentTable } from "../disk/table.ts";
import { journalFolder } from "../journal/segment-pool.ts";
import { recover } from "./recovery.ts";

const mebibyte = 1 << 20;
const extentsMib = Number(process.env.RECOVERY_EXTENTS_MIB ?? 256);
const journalMib = Number(process.env.RECOVERY_JOURNAL_MIB ?? 128);
const extentBytes = 64 * mebibyte;
const segmentBytes = 64 * mebibyte;
const blockBytes = mebibyte;

const baseMeta = (id: number, replica: Partial<ReplicaMeta>): ReplicaMeta => ({
  extentId: extentId(id),
  version: extentVersion(1),
  ownerEpoch: ownerEpoch(1),
  state: "open",
  fenced: false,
  restarted: false,
  sealedLengthBytes: undefined,
  checksum: undefined,
  durableBytes: 0,
  committedBytes: 0,
  appliedLsn: 0,
  replicas: [{ nodeId: "en", address: "en", diskId: "d" }],
  damage: "",
  ...replica,
});

/** Frames of 1 MiB from `offset` on, one a call. */
function framed(world: World, id: number, offset: number, payload: Uint8Array): Uint8Array[] {
  return [encodeFrameHeader(world.digest.crc32c, extentId(id), offset, payload), payload];
}

async function makeExtents(world: World, files: ExtentFiles, table: ExtentTable, payload: Uint8Array): Promise<number> {
  const count = Math.ceil((extentsMib * mebibyte) / extentBytes);
  for (let id = 1; id <= count; id++) {
    await files.ensure(extentId(id));
    let offset = 0;
    let checksum = 0;
    while (offset < extentBytes - 2 * mebibyte) {
      const slices = framed(world, id, offset, payload);
      checksum = crc32cOf(world.digest.crc32c, slices, checksum);
      await files.write(extentPath(extentId(id)), offset, slices);
      for (const slice of slices) offset += slice.length;
    }
    const sealed = {
      state: "sealed",
      fenced: true,
      sealedLengthBytes: offset,
      durableBytes: offset,
      committedBytes: offset,
      checksum,
    } as const;
    const meta = baseMeta(id, sealed);
    await files.writeHeader(extentPath(extentId(id)), meta);
    await table.write([table.put(meta)], false);
  }
  return count;
}

/** Segments full of appends to extents that are only in the journal. */
async function makeJournal(
  world: World,
  firstId: number,
  payload: Uint8Array,
): Promise<{ segments: number; records: number; bytes: number }> {
  const { crc32c } = world.digest;
  const segments = Math.ceil((journalMib * mebibyte) / segmentBytes);
  let lsn = 1;
  let id = firstId - 1;
  let offset = extentBytes;
  let appended = 0;
  for (let generation = 1; generation <= segments; generation++) {
    const file = await world.disk.open(`${journalFolder}/${String(generation).padStart(6, "0")}.segment`, { create: true });
    const header = { salt: generation * 31, generation, firstLsn: lsn, smTerm: 3, termLowerings: 0, segmentBytes, checkpointLsn: 0 };
    await file.write(0, [encodeSegmentHeader(crc32c, header)]);
    let at = segmentRecordsOffset;
    const put = async (type: "create" | "append", offsetBytes: number, body: readonly Uint8Array[]): Promise<void> => {
      const bodyBytes = body.reduce((sum, part) => sum + part.length, 0);
      const record = { type, extentId: extentId(id), offsetBytes, ownerEpoch: ownerEpoch(1), committedBytes: 0 };
      const more = { generation, lsn, syncedLsn: lsn - 1, bodyBytes, bodyChecksum: crc32cOf(crc32c, body) };
      const head = encodeJournalHeader(crc32c, header.salt, { ...record, ...more });
      await file.write(at, [head, ...body]);
      at = Math.ceil((at + head.length + bodyBytes) / 4096) * 4096;
      lsn += 1;
    };
    while (at + blockBytes + 16_384 < segmentBytes) {
      if (offset >= extentBytes - 2 * mebibyte) {
        id += 1;
        offset = 0;
        await put("create", 0, [encodeMeta(baseMeta(id, {}))]);
      }
      const slices = framed(world, id, offset, payload);
      await put("append", offset, slices);
      for (const slice of slices) offset += slice.length;
      appended += payload.length;
    }
    await file.allocate(segmentBytes);
    await file.sync();
    await file.close();
  }
  const begun = await world.disk.open(journalBegunFile, { create: true });
  await begun.write(journalBegunOffset(segments), [encodeJournalBegun(crc32c, segments)]);
  await begun.close();
  return { segments, records: lsn - 1, bytes: appended };
}

test(`recovery: ${extentsMib} MiB of sealed extents and ${journalMib} MiB of journal that is in no extent file`, async () => {
  const folder = await mkdtemp(join(tmpdir(), "stamp-recovery-"));
  const told: string[] = [];
  const logger: Logger = { ...silentLogger, info: (message, fields) => void told.push(`${message} ${JSON.stringify(fields ?? {})}`) };
  try {
    const world = nodeWorld({ dataDir: folder, name: "en", logger });
    const payload = new Prng(7).bytes(blockBytes);
    const identity = await formatDisk(world, "en", "stamp");
    const files = new ExtentFiles(world, new DiskQueue(world), 256, identity);
    const made = await ExtentTable.open(world, identity.diskId);
    const count = await makeExtents(world, files, made.table, payload);
    const journal = await makeJournal(world, count + 1, payload);
    await made.table.markComplete();
    await made.table.close();
    await files.closeAll();
    // With the table, again after a kill before its end, and without the table.
    for (const how of ["with its table", "again, all applied", "table lost"]) {
      if (how === "table lost") await ExtentTable.forgetAll(world.keyValue);
      const opened = await ExtentTable.open(world, identity.diskId);
      const again = new ExtentFiles(world, new DiskQueue(world), 256, identity);
      const parts = { world, journalDisk: world.disk, files: again, table: opened.table, identity, begun: journal.segments };
      const recovered = unwrap(await recover({ ...parts, tableComplete: opened.complete, acceptJournalLoss: false }));
      await opened.table.markComplete();
      console.log(
        `${how}: ${recovered.replicas.size} extents, ${recovered.replayed} records (${Math.round(journal.bytes / mebibyte)} MiB) in ${recovered.tookMs} ms`,
      );
      assert.equal(recovered.replayed, journal.records);
      assert.ok([...recovered.replicas.values()].every((replica) => replica.state === "sealed" || replica.state === "closed"));
      const bytes = [...recovered.replicas.values()].reduce((sum, replica) => sum + replica.durableBytes, 0);
      assert.ok(bytes >= journal.bytes + count * (extentBytes - 3 * mebibyte));
      await again.closeAll();
      await opened.table.close();
    }
    assert.ok(told.some((line) => line.startsWith("the disk is recovered")));
    console.log(told.join("\n"));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
