/** Files of an archive: their names, the list of checksums, and writes that a crash leaves whole or absent. */
import { type FileHandle, lstat, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type ItemCounts, noCounts, type SourcePosition } from "../items.ts";
import { archiveFormat, archiveVersion, DamagedArchive, jsonOf } from "./records.ts";

export const manifestName = "archive.json";
export const sumsName = "SHA256SUMS";
const manifestBytesMax = 1024 * 1024;
const sumsBytesMax = 256 * 1024 * 1024;

/** `archive.json`. */
export interface Manifest {
  readonly format: typeof archiveFormat;
  readonly version: number;
  /** False until the export has ended. */
  readonly complete: boolean;
  readonly account: string;
  /** URL of the account's Blob service. */
  readonly source: string;
  readonly release: string;
  readonly begunOn: string;
  readonly endedOn: string;
  readonly options: { readonly history: boolean; readonly messages: boolean };
  readonly counts: ItemCounts;
  /** Number of parts. */
  readonly parts: number;
}

/** Last line of each file of lines, in the archive's own words. */
export interface PositionLine {
  readonly kind: "position";
  readonly counts: ItemCounts;
  readonly next: SourcePosition;
}

const numbered = (part: number): string => String(part).padStart(6, "0");
export const linesName = (part: number): string => `${numbered(part)}.jsonl`;
export const bytesName = (part: number): string => `${numbered(part)}.bin`;

/** Checksums of one part. */
export interface PartSums {
  readonly lines: string;
  readonly bytes: string;
}

export const sumsText = (part: number, { lines, bytes }: PartSums): string =>
  `${bytes}  ${bytesName(part)}\n${lines}  ${linesName(part)}\n`;

/** Reads SHA256SUMS. `isOpen`: its end may be cut, as a crash leaves it. Returns the parts and the length of what is whole, in bytes. */
export async function readSums(folder: string, isOpen: boolean): Promise<{ readonly parts: readonly PartSums[]; readonly length: number }> {
  const text = (await readPlain(join(folder, sumsName), sumsBytesMax, isOpen)).toString("latin1");
  const lines = text.split("\n");
  const parts: PartSums[] = [];
  let length = 0;
  for (let part = 1; ; part++) {
    const [first = "", second = ""] = lines.slice((part - 1) * 2, part * 2);
    const expected = { bytes: first.slice(0, 64), lines: second.slice(0, 64) };
    const isRight = text.startsWith(sumsText(part, expected), length) && /^[0-9a-f]{128}$/.test(expected.bytes + expected.lines);
    if (!isRight) break;
    parts.push(expected);
    length += sumsText(part, expected).length;
  }
  if (!isOpen && length !== text.length) throw new DamagedArchive(`${sumsName}: line ${parts.length * 2 + 1} is not as the format says`);
  return { parts, length };
}

/** Reads a plain file of bounded size. */
async function readPlain(path: string, bytesMax: number, mayMiss: boolean): Promise<Buffer> {
  const size = await plainSize(path).catch((error: NodeJS.ErrnoException) => {
    if (mayMiss && error.code === "ENOENT") return undefined;
    throw error;
  });
  if (size === undefined) return Buffer.alloc(0);
  if (size > bytesMax) throw new DamagedArchive(`${path} has ${size} bytes, more than ${bytesMax}`);
  return readFile(path);
}

/** Returns the size of a file that is no link and no folder. Throws DamagedArchive. */
export async function plainSize(path: string): Promise<number> {
  const found = await lstat(path);
  if (!found.isFile()) throw new DamagedArchive(`${path} is no plain file`);
  return found.size;
}

/** Returns undefined if the folder has no manifest. */
export async function readManifest(folder: string): Promise<Manifest | undefined> {
  const text = (await readPlain(join(folder, manifestName), manifestBytesMax, true)).toString("utf8");
  if (text === "") return undefined;
  const value = jsonOf(text, join(folder, manifestName));
  if (value.format !== archiveFormat) throw new DamagedArchive(`${join(folder, manifestName)} is none of an archive of stamp export`);
  if (typeof value.version !== "number" || value.version > archiveVersion)
    throw new DamagedArchive(
      `the archive has version ${JSON.stringify(value.version)?.slice(0, 20)} of the format, and this release reads up to ${archiveVersion}: use the release that made it (${String(value.release).slice(0, 40)}) or a later one`,
    );
  const { account, source, complete, options, counts, parts } = value as Partial<Manifest>;
  const isRight =
    typeof account === "string" &&
    /^[a-z0-9]{3,24}$/.test(account) &&
    typeof source === "string" &&
    typeof complete === "boolean" &&
    typeof options === "object" &&
    typeof counts === "object" &&
    Number.isSafeInteger(parts);
  if (!isRight) throw new DamagedArchive(`${join(folder, manifestName)} lacks something that the format asks for`);
  return { ...(value as unknown as Manifest), counts: { ...noCounts(), ...counts } };
}

/** Writes a file beside and puts it in place when it is on disk. */
export async function writeWhole(path: string, text: string): Promise<void> {
  // It may be of a run that was killed, or a link of whoever made the folder, which nothing may follow.
  await rm(`${path}.new`, { force: true });
  const file = await open(`${path}.new`, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
  await syncFolder(dirname(path));
}

/** Syncs the folder of a new file, so that the file's name is durable. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Writes all of the bytes: a write may take a part of them. */
export async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at, bytes.length - at)).bytesWritten;
}
