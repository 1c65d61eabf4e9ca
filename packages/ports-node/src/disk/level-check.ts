/**
 * Reads the files of a LevelDB before LevelDB does, which says nothing of much that it meets: it drops a damaged record of its log with all that
 * follows in the block and deletes that log; it reads tables without their checksums, and a flipped bit in one can end the process.
 *
 *   CURRENT -> MANIFEST (a log of version edits) -> live tables, and the oldest log that still counts
 *   log: blocks of 32 KiB of records: masked crc32c u32 | length u16 | type u8 | data, little endian; fewer than 7 bytes left are zeros
 *   table: blocks, each followed by type u8 (1: snappy) | masked crc32c u32; at its end a footer of 48 bytes that names the index block
 *
 * What is damaged at the very end of a log may be what a crash tore: nothing of it was acknowledged, if the batches were synced. Whether the
 * end is complete can't be seen here (@stamp/ports complete-store.ts).
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32c } from "@node-rs/crc32";
import { ByteReader, DecodeError } from "@stamp/base";

const blockBytes = 32_768;
const headerBytes = 7;
const trailerBytes = 5;
const footerBytes = 48;
const recordTypes = { full: 1, first: 2, middle: 3, last: 4 } as const;

/** Returns the damage, for people; undefined if none can be seen, or if LevelDB itself refuses it (a missing file). */
export async function damageIn(folder: string): Promise<string | undefined> {
  const read = async (name: string): Promise<Uint8Array | undefined> =>
    readFile(join(folder, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw error;
    });
  const current = await read("CURRENT");
  const manifestName = current === undefined ? undefined : /^(MANIFEST-\d+)\n$/.exec(new TextDecoder().decode(current))?.[1];
  const manifest = manifestName === undefined ? undefined : await read(manifestName);
  if (manifestName === undefined || manifest === undefined) return undefined;
  const edits = walkLog(manifest);
  if (edits.damage !== undefined) return `${manifestName}: ${edits.damage}`;
  const live = liveFiles(edits.records);
  if (live === undefined) return `${manifestName}: a record that can't be read`;
  for (const { number, sizeBytes } of live.tables) {
    const name = `${String(number).padStart(6, "0")}.ldb`;
    const table = (await read(name)) ?? (await read(name.replace(".ldb", ".sst")));
    if (table === undefined) continue;
    const damage = table.length === sizeBytes ? damageInTable(table) : `it has ${table.length} bytes instead of ${sizeBytes}`;
    if (damage !== undefined) return `${name}: ${damage}`;
  }
  for (const name of (await readdir(folder)).sort()) {
    const number = Number(/^(\d+)\.log$/.exec(name)?.[1] ?? Number.NaN);
    if (!(number >= live.logNumber || number === live.previousLog)) continue;
    const { damage } = walkLog((await read(name)) ?? new Uint8Array(0));
    if (damage !== undefined) return `${name}: ${damage}`;
  }
  return undefined;
}

function unmasked(stored: number): number {
  const rotated = (stored - 0xa282ead8) >>> 0;
  return ((rotated >>> 17) | (rotated << 15)) >>> 0;
}

interface Fragment {
  readonly type: number;
  readonly data: Uint8Array;
}

/** Returns the whole record at an offset of its block; undefined: no intact one begins there. */
function fragmentAt(log: Uint8Array, at: number, blockEnd: number): Fragment | undefined {
  if (at + headerBytes > blockEnd) return undefined;
  const length = (log[at + 4] as number) | ((log[at + 5] as number) << 8);
  const type = log[at + 6] as number;
  const end = at + headerBytes + length;
  if (type < recordTypes.full || type > recordTypes.last || end > blockEnd) return undefined;
  const stored =
    ((log[at] as number) | ((log[at + 1] as number) << 8) | ((log[at + 2] as number) << 16) | ((log[at + 3] as number) << 24)) >>> 0;
  if (unmasked(stored) !== crc32c(log.subarray(at + 6, end)) >>> 0) return undefined;
  return { type, data: log.subarray(at + headerBytes, end) };
}

/** Returns every record up to the first damage. A damage is told only if a later record is intact: else it is the torn end. */
function walkLog(log: Uint8Array): { readonly records: Uint8Array[]; readonly damage: string | undefined } {
  const records: Uint8Array[] = [];
  let parts: Uint8Array[] = [];
  let damagedAt: number | undefined;
  for (let block = 0; block < log.length; block += blockBytes) {
    const blockEnd = Math.min(block + blockBytes, log.length);
    let at = block;
    while (at + headerBytes <= blockEnd) {
      const fragment = fragmentAt(log, at, blockEnd);
      if (fragment === undefined) {
        damagedAt ??= at;
        at += 1;
        continue;
      }
      const begins = fragment.type === recordTypes.full || fragment.type === recordTypes.first;
      if (damagedAt !== undefined && begins) {
        return { records, damage: `what is at byte ${damagedAt} can't be read, and a record follows at ${at}` };
      }
      at += headerBytes + fragment.data.length;
      if (damagedAt !== undefined) continue;
      parts = begins ? [fragment.data] : [...parts, fragment.data];
      if (fragment.type === recordTypes.full || fragment.type === recordTypes.last) records.push(Buffer.concat(parts));
    }
  }
  return { records, damage: undefined };
}

interface Live {
  readonly tables: readonly { readonly number: number; readonly sizeBytes: number }[];
  readonly logNumber: number;
  readonly previousLog: number;
}

/** Returns the live files of the version edits (LevelDB db/version_edit.cc); undefined if one is malformed. */
function liveFiles(edits: readonly Uint8Array[]): Live | undefined {
  const tables = new Map<number, number>();
  let [logNumber, previousLog] = [0, 0];
  try {
    for (const edit of edits) {
      const reader = new ByteReader(edit);
      while (reader.left > 0) {
        const tag = reader.varint();
        if (tag === 1) reader.sized();
        else if (tag === 2) logNumber = reader.varint();
        else if (tag === 3 || tag === 4) reader.varint();
        else if (tag === 5) {
          reader.varint();
          reader.sized();
        } else if (tag === 6) {
          reader.varint();
          tables.delete(reader.varint());
        } else if (tag === 7) {
          reader.varint();
          const number = reader.varint();
          tables.set(number, reader.varint());
          reader.sized();
          reader.sized();
        } else if (tag === 9) previousLog = reader.varint();
        else return undefined;
      }
    }
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
  return { tables: [...tables].map(([number, sizeBytes]) => ({ number, sizeBytes })), logNumber, previousLog };
}

interface Handle {
  readonly offset: number;
  readonly size: number;
}

const handleOf = (reader: ByteReader): Handle => ({ offset: reader.varint(), size: reader.varint() });

function damageInTable(table: Uint8Array): string | undefined {
  if (table.length < footerBytes) return "it ends within its footer";
  try {
    const footer = table.subarray(-footerBytes);
    if (Buffer.from(footer.subarray(-8)).toString("hex") !== "57fb808b247547db") return "its footer can't be read";
    const reader = new ByteReader(footer);
    for (const top of [handleOf(reader), handleOf(reader)]) {
      for (const below of handlesIn(blockAt(table, top))) blockAt(table, below);
    }
    return undefined;
  } catch (error) {
    if (error instanceof DecodeError) return error.message;
    throw error;
  }
}

/** Returns the content of a block, decompressed. Throws DecodeError when it is not what was written. */
function blockAt(table: Uint8Array, { offset, size }: Handle): Uint8Array {
  const end = offset + size;
  if (end + trailerBytes > table.length - footerBytes) throw new DecodeError(`the block at byte ${offset} ends behind the table`);
  const trailer = Buffer.from(table.buffer, table.byteOffset + end, trailerBytes);
  if (unmasked(trailer.readUInt32LE(1)) !== crc32c(table.subarray(offset, end + 1)) >>> 0) {
    throw new DecodeError(`the checksum of the block at byte ${offset} does not match`);
  }
  const content = table.subarray(offset, end);
  return trailer[0] === 1 ? unsnapped(content) : content;
}

/** Returns the block handles in the entries of an index block. */
function handlesIn(block: Uint8Array): Handle[] {
  const restarts = new DataView(block.buffer, block.byteOffset, block.length).getUint32(block.length - 4, true);
  const reader = new ByteReader(block.subarray(0, block.length - 4 * (restarts + 1)));
  const handles: Handle[] = [];
  while (reader.left > 0) {
    reader.varint();
    const [keyBytes, valueBytes] = [reader.varint(), reader.varint()];
    reader.bytes(keyBytes);
    handles.push(handleOf(new ByteReader(reader.bytes(valueBytes))));
  }
  return handles;
}

/** Decompresses Snappy's raw format; only blocks whose checksum matched. */
function unsnapped(bytes: Uint8Array): Uint8Array {
  const reader = new ByteReader(bytes);
  const out = new Uint8Array(reader.varint());
  const little = (count: number): number => [...reader.bytes(count)].reduce((sum, byte, i) => sum + byte * 256 ** i, 0);
  let at = 0;
  while (reader.left > 0) {
    const tag = little(1);
    const high = tag >> 2;
    if ((tag & 3) === 0) {
      const literal = reader.bytes(high < 60 ? high + 1 : little(high - 59) + 1);
      out.set(literal, at);
      at += literal.length;
      continue;
    }
    const short = (tag & 3) === 1;
    const length = short ? (high & 7) + 4 : high + 1;
    const back = short ? ((tag >> 5) << 8) + little(1) : little((tag & 3) === 2 ? 2 : 4);
    if (back === 0 || back > at || at + length > out.length) throw new DecodeError("a compressed block can't be read");
    for (let i = 0; i < length; i++, at++) out[at] = out[at - back] as number;
  }
  if (at !== out.length) throw new DecodeError("a compressed block can't be read");
  return out;
}
