/**
 * Writes an archive, part by part. A part is two files: lines, and the bytes of blobs. A part counts when its checksums are in SHA256SUMS, which is
 * written after both files are on disk; its last line is the position from which a later run goes on.
 *
 * Invariants:
 * - A part that is in SHA256SUMS never changes.
 * - What is not in SHA256SUMS is removed by the next run, which writes it anew.
 */
import { createHash, type Hash } from "node:crypto";
import { type FileHandle, mkdir, open, readdir, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import { exactText } from "../entity-door.ts";
import { type BlobChunk, type ItemCounts, noCounts, type SourcePosition } from "../items.ts";
import {
  bytesName,
  linesName,
  type Manifest,
  manifestName,
  type PositionLine,
  readManifest,
  readSums,
  sumsName,
  sumsText,
  syncFolder,
  writeAll,
  writeWhole,
} from "./files.ts";
import { lastLine } from "./last-line.ts";
import { type ArchiveLine, DamagedArchive, jsonOf } from "./records.ts";

/** Size at which a part ends; it also ends by age, whichever comes first. */
const partBytes = 64 * 1024 * 1024;
const partLinesBytes = 16 * 1024 * 1024;
const partMs = 15_000;
/** Number of waiting characters at which lines are written. */
const waitingMax = 256 * 1024;

interface Part {
  readonly number: number;
  readonly lines: FileHandle;
  readonly bytes: FileHandle;
  readonly linesHash: Hash;
  readonly bytesHash: Hash;
  readonly begunMs: number;
  linesLength: number;
  bytesLength: number;
  waiting: string;
}

export type Beginning = Pick<Manifest, "account" | "source" | "options" | "release">;

export class ArchiveWriter {
  readonly counts: ItemCounts;
  /** Position at which the source begins. */
  readonly from: SourcePosition;
  readonly #folder: string;
  readonly #manifest: Manifest;
  readonly #nowMs: () => number;
  #sums: FileHandle;
  #parts: number;
  /** Length of SHA256SUMS, in bytes. */
  #sumsLength: number;
  #part: Part | undefined;

  private constructor(
    folder: string,
    manifest: Manifest,
    sums: FileHandle,
    { parts, length }: { readonly parts: readonly unknown[]; readonly length: number },
    last: PositionLine | undefined,
    nowMs: () => number,
  ) {
    this.#folder = folder;
    this.#manifest = manifest;
    this.#sums = sums;
    this.#parts = parts.length;
    this.#sumsLength = length;
    this.#nowMs = nowMs;
    this.counts = { ...noCounts(), ...last?.counts };
    this.from = last?.next ?? {};
  }

  /** Begins an archive in a folder that is empty or absent, or goes on with one that was left. Throws DamagedArchive for any other folder. */
  static async open(folder: string, beginning: Beginning, nowMs: () => number = Date.now): Promise<ArchiveWriter> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const manifest = (await readManifest(folder)) ?? (await begun(folder, beginning, nowMs()));
    if (manifest.complete)
      throw new DamagedArchive(
        `${folder} has an archive that is complete (${manifest.account}, ${manifest.endedOn}): choose another folder`,
      );
    const { account, source, options } = manifest;
    if (account !== beginning.account || source !== beginning.source || JSON.stringify(options) !== JSON.stringify(beginning.options))
      throw new DamagedArchive(
        `${folder} has the beginning of another archive (account ${account} at ${source}, history ${options.history}, messages ${options.messages}): choose another folder, or the same options`,
      );
    const found = await readSums(folder, true);
    const { parts, length } = found;
    const sums = await open(join(folder, sumsName), "a", 0o600);
    await truncate(join(folder, sumsName), length);
    await removeUncounted(folder, parts.length);
    const last = parts.length === 0 ? undefined : await positionIn(folder, parts.length);
    return new ArchiveWriter(folder, manifest, sums, found, last, nowMs);
  }

  async line(line: ArchiveLine): Promise<void> {
    const part = await this.#begun();
    part.waiting += `${line.kind === "entity" ? exactText(line) : JSON.stringify(line)}\n`;
    if (part.waiting.length > waitingMax) await writeLines(part);
  }

  /** Writes bytes of the blob whose line came last. */
  async chunk({ at, bytes, sha256 }: BlobChunk): Promise<void> {
    const part = await this.#begun();
    part.bytesHash.update(bytes);
    await writeAll(part.bytes, bytes);
    await this.line({ kind: "data", at, length: bytes.length, offset: part.bytesLength, sha256 });
    part.bytesLength += bytes.length;
  }

  /** True if the part has so much that it should end at the next place where it can. */
  isFull(): boolean {
    const part = this.#part;
    if (part === undefined) return false;
    const old = this.#nowMs() - part.begunMs > partMs;
    return old || part.bytesLength >= partBytes || part.linesLength + part.waiting.length >= partLinesBytes;
  }

  /** Ends the part: a later run goes on at `next`, and counts from `counts` on. */
  async commit(next: SourcePosition, counts: ItemCounts = this.counts): Promise<void> {
    const part = await this.#begun();
    part.waiting += `${JSON.stringify({ kind: "position", counts, next } satisfies PositionLine)}\n`;
    await writeLines(part);
    await Promise.all([part.lines.sync(), part.bytes.sync()]);
    await this.#checkAlone(part);
    await Promise.all([part.lines.close(), part.bytes.close()]);
    await syncFolder(this.#folder);
    const sums = { lines: part.linesHash.digest("hex"), bytes: part.bytesHash.digest("hex") };
    const text = sumsText(part.number, sums);
    await writeAll(this.#sums, Buffer.from(text));
    await this.#sums.sync();
    this.#sumsLength += text.length;
    this.#parts = part.number;
    this.#part = undefined;
  }

  /** Refuses to go on beside another export into the folder, which has removed the part or ended one of its own. */
  async #checkAlone({ lines, bytes }: Part): Promise<void> {
    const { size } = await this.#sums.stat();
    const links = await Promise.all([lines, bytes].map(async (file) => (await file.stat()).nlink));
    if (size !== this.#sumsLength || links.includes(0))
      throw new DamagedArchive(`another export writes into ${this.#folder}: this one ends, and what the other one writes is whole`);
  }

  /** Ends the archive. */
  async end(): Promise<Manifest> {
    await this.commit({ stage: "end" });
    await this.close();
    const manifest: Manifest = {
      ...this.#manifest,
      complete: true,
      endedOn: new Date(this.#nowMs()).toISOString(),
      counts: this.counts,
      parts: this.#parts,
    };
    await writeManifest(this.#folder, manifest);
    return manifest;
  }

  /** Closes its files. A part that has not ended is written anew by the next run. */
  async close(): Promise<void> {
    await Promise.allSettled([this.#part?.lines.close(), this.#part?.bytes.close(), this.#sums.close()]);
    this.#part = undefined;
  }

  async #begun(): Promise<Part> {
    this.#part ??= await newPart(this.#folder, this.#parts + 1, this.#nowMs());
    return this.#part;
  }
}

async function newPart(folder: string, number: number, begunMs: number): Promise<Part> {
  const lines = await open(join(folder, linesName(number)), "wx", 0o600);
  const bytes = await open(join(folder, bytesName(number)), "wx", 0o600);
  const [linesHash, bytesHash] = [createHash("sha256"), createHash("sha256")];
  return { number, lines, bytes, linesHash, bytesHash, begunMs, linesLength: 0, bytesLength: 0, waiting: "" };
}

async function writeLines(part: Part): Promise<void> {
  const bytes = Buffer.from(part.waiting);
  part.waiting = "";
  part.linesHash.update(bytes);
  part.linesLength += bytes.length;
  await writeAll(part.lines, bytes);
}

async function begun(folder: string, beginning: Beginning, nowMs: number): Promise<Manifest> {
  const there = (await readdir(folder)).filter((name) => name !== `${manifestName}.new`);
  if (there.length > 0) throw new DamagedArchive(`${folder} is not empty and has no archive: choose a new folder`);
  const manifest: Manifest = {
    format: "stamp-archive",
    version: 1,
    complete: false,
    ...beginning,
    begunOn: new Date(nowMs).toISOString(),
    endedOn: "",
    counts: noCounts(),
    parts: 0,
  };
  await writeManifest(folder, manifest);
  return manifest;
}

const writeManifest = (folder: string, manifest: Manifest): Promise<void> =>
  writeWhole(join(folder, manifestName), `${JSON.stringify(manifest, null, 2)}\n`);

async function removeUncounted(folder: string, parts: number): Promise<void> {
  for (const name of await readdir(folder)) {
    const [, number = "0"] = /^(\d{6,})\.(?:jsonl|bin)$/.exec(name) ?? [];
    if (Number(number) > parts) await rm(join(folder, name));
  }
}

async function positionIn(folder: string, part: number): Promise<PositionLine> {
  const where = join(folder, linesName(part));
  const line = jsonOf(await lastLine(where), where);
  if (line.kind !== "position") throw new DamagedArchive(`${where}: its last line is no position`);
  return line as unknown as PositionLine;
}
