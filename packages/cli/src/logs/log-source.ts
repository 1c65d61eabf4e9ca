/**
 * Reads the log of one process from its start, over its rotation, and goes on where it stopped when it is asked again.
 *
 * The supervisor appends to `NAME.log`. At its limit the file becomes `NAME.log.1`, in the place of the older one, and a new
 * `NAME.log` begins. Files are told apart by their inode, which nobody else gets while this reader has the file open.
 *
 *   - A file is left only when it is no longer `NAME.log` and was read to its end after that: nothing is appended to it then.
 *   - The file that follows is opened as soon as it is seen, so later rotations can't take it away.
 *   - If the file that is read has disappeared before its successor was seen, two rotations or more have happened. `NAME.log.1` is the next
 *     file, and files between the two may be gone.
 *   - Between two looks at the folder a rotation may happen: a look is checked by another one after it.
 *   - A line is taken when its end is there.
 *
 * Text has no time of its own. It gets the time of the next line that has one (after a crash that is the supervisor's
 * note), else the time when the file was changed last.
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { entryOf, type LogEntry, timeOf, type UntimedEntry } from "./log-entry.ts";

const chunkBytes = 256 * 1024;
/** A longer line is cut into several, of which the later ones are text. */
const lineCharactersMax = 1024 * 1024;
/** Lines without a time that wait for one. */
const untimedMax = 1_000;

interface OpenFile {
  readonly descriptor: number;
  readonly inode: bigint;
  readonly decoder: StringDecoder;
  offsetBytes: number;
  /** The file that comes after this one, undefined while none was seen. */
  successor: OpenFile | undefined;
}

/** Looks at the folder by name. Tests rotate the log between two looks. */
export interface LogFolder {
  /** Returns a descriptor, undefined if no file has this name. */
  open(path: string): number | undefined;
  inodeOf(path: string): bigint | undefined;
}

export interface LogSourceOptions {
  readonly folder: string;
  /** Name of the process. */
  readonly name: string;
  /** Lines written before this time are left out, in milliseconds since 1970. */
  readonly sinceMs?: number | undefined;
  readonly looks?: LogFolder;
}

export class LogSource {
  readonly name: string;
  readonly #path: string;
  readonly #olderPath: string;
  readonly #looks: LogFolder;
  readonly #sinceMs: number;
  readonly #since: string;
  #file: OpenFile | undefined;
  #partial = "";
  #untimed: UntimedEntry[] = [];
  /** True if a file with its lines may have appeared and gone between two reads. */
  mayHaveMissed = false;

  constructor({ folder, name, sinceMs = 0, looks = realLooks }: LogSourceOptions) {
    this.name = name;
    this.#looks = looks;
    this.#path = join(folder, `${name}.log`);
    this.#olderPath = `${this.#path}.1`;
    this.#sinceMs = sinceMs;
    this.#since = sinceMs === 0 ? "" : new Date(sinceMs).toISOString();
  }

  /** Returns the next entries in the order of the file, none if nothing more is there now. */
  read(): LogEntry[] {
    for (;;) {
      this.#file ??= this.#first();
      const file = this.#file;
      if (file === undefined) return [];
      // Before the read: what is rotated away by now gets no more lines, so a read that finds nothing has seen all of it.
      file.successor ??= this.#successorOf(file);
      const chunk = this.#chunk(file);
      if (chunk !== "") {
        const entries = this.#taken(chunk);
        if (entries.length > 0) return entries;
        continue;
      }
      const rest = this.#atEnd(file, file.successor !== undefined);
      if (file.successor !== undefined) {
        closeSync(file.descriptor);
        this.#file = file.successor;
      }
      if (rest.length > 0 || file.successor === undefined) return rest;
    }
  }

  close(): void {
    for (let file = this.#file; file !== undefined; file = file.successor) closeSync(file.descriptor);
    this.#file = undefined;
  }

  #first(): OpenFile | undefined {
    const older = this.#opened(this.#olderPath);
    if (older !== undefined) return older;
    const current = this.#opened(this.#path);
    // Rotated between the two looks: what was opened may be the second file.
    const before = this.#opened(this.#olderPath);
    if (before === undefined) return current;
    if (current !== undefined) closeSync(current.descriptor);
    return before;
  }

  /** Returns the file that comes after this one, undefined if this one is still appended to, or nothing has taken its place yet. */
  #successorOf(file: OpenFile): OpenFile | undefined {
    const inode = this.#looks.inodeOf(this.#path);
    if (inode === undefined || inode === file.inode) return undefined;
    // If this file is the older one even now, no file is between the two.
    const isNext = [file.inode, undefined].includes(this.#looks.inodeOf(this.#olderPath));
    const current = this.#opened(this.#path);
    if (isNext && current?.inode === inode) return current;
    if (current !== undefined) closeSync(current.descriptor);
    // Rotated since, or twice and more before.
    const older = this.#opened(this.#olderPath);
    if (!isNext || older?.inode !== inode) this.mayHaveMissed = true;
    return older;
  }

  #opened(path: string): OpenFile | undefined {
    const descriptor = this.#looks.open(path);
    if (descriptor === undefined) return undefined;
    const { ino: inode } = fstatSync(descriptor, { bigint: true });
    return { descriptor, inode, decoder: new StringDecoder("utf8"), offsetBytes: 0, successor: undefined };
  }

  #chunk(file: OpenFile): string {
    // Somebody emptied it by hand.
    if (fstatSync(file.descriptor).size < file.offsetBytes) file.offsetBytes = 0;
    const bytes = Buffer.allocUnsafe(chunkBytes);
    const length = readSync(file.descriptor, bytes, 0, chunkBytes, file.offsetBytes);
    file.offsetBytes += length;
    return file.decoder.write(bytes.subarray(0, length));
  }

  #taken(chunk: string): LogEntry[] {
    const lines = (this.#partial + chunk).split("\n");
    this.#partial = lines.pop() ?? "";
    if (this.#partial.length > lineCharactersMax) {
      lines.push(this.#partial);
      this.#partial = "";
    }
    const entries: LogEntry[] = [];
    for (const line of lines) {
      const time = this.#since === "" ? undefined : timeOf(line);
      if (line === "") continue;
      if (time !== undefined && time < this.#since) this.#untimed = [];
      else this.#add(entryOf(this.name, line), entries);
    }
    return entries;
  }

  #add(entry: UntimedEntry, entries: LogEntry[]): void {
    this.#untimed.push(entry);
    if (entry.atMs !== undefined) this.#give(entry.atMs, entries);
    else if (this.#untimed.length > untimedMax && this.#file !== undefined) this.#give(changedMs(this.#file), entries);
  }

  /** Gives the lines that waited for a time. */
  #give(atMs: number, entries: LogEntry[]): void {
    if (atMs >= this.#sinceMs) for (const entry of this.#untimed) entries.push({ ...entry, atMs: entry.atMs ?? atMs });
    this.#untimed = [];
  }

  /** `left`: true if nothing is appended to the file any more, so that its last line needs no end. */
  #atEnd(file: OpenFile, left: boolean): LogEntry[] {
    const entries: LogEntry[] = [];
    if (left && this.#partial !== "") {
      const line = this.#partial;
      this.#partial = "";
      this.#add(entryOf(this.name, line), entries);
    }
    if (this.#untimed.length > 0) this.#give(changedMs(file), entries);
    return entries;
  }
}

const changedMs = ({ descriptor }: OpenFile): number => Math.round(fstatSync(descriptor).mtimeMs);

export const realLooks: LogFolder = {
  open: (path) => {
    try {
      return openSync(path, "r");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  },
  inodeOf: (path) => statSync(path, { bigint: true, throwIfNoEntry: false })?.ino,
};
