/**
 * Reads the log of one process from its start, over its rotation, and goes on where it stopped when it is asked again.
 *
 * The supervisor appends to `NAME.log`. At its limit the file becomes `NAME.log.1`, in the place of the older one, and a new
 * `NAME.log` begins. Files are told apart by their inode, which nobody else gets while this reader has the file open.
 *
 *   - A file is left only when it is no longer `NAME.log` and was read to its end after that: nothing is appended to it then.
 *   - If the file that is read has disappeared, two rotations or more have happened. `NAME.log.1` is the next file.
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
  /** Inode of the file that took its place as `NAME.log`, undefined while none was seen. */
  successor: bigint | undefined;
}

export interface LogSourceOptions {
  readonly folder: string;
  /** Name of the process. */
  readonly name: string;
  /** Lines written before this time are left out, in milliseconds since 1970. */
  readonly sinceMs?: number | undefined;
}

export class LogSource {
  readonly name: string;
  readonly #path: string;
  readonly #sinceMs: number;
  readonly #since: string;
  #file: OpenFile | undefined;
  #partial = "";
  #untimed: UntimedEntry[] = [];
  /** True if a file may have come and gone between two reads, with its lines. */
  mayHaveMissed = false;

  constructor({ folder, name, sinceMs = 0 }: LogSourceOptions) {
    this.name = name;
    this.#path = join(folder, `${name}.log`);
    this.#sinceMs = sinceMs;
    this.#since = sinceMs === 0 ? "" : new Date(sinceMs).toISOString();
  }

  /** Returns the next entries in the order of the file, none if nothing more is there now. */
  read(): LogEntry[] {
    for (;;) {
      this.#file ??= this.#opened(`${this.#path}.1`) ?? this.#opened(this.#path);
      if (this.#file === undefined) return [];
      // Before the read: what is rotated away by now gets no more lines, so a read that finds nothing has seen all of it.
      const next = this.#next(this.#file);
      const chunk = this.#chunk(this.#file);
      if (chunk !== "") {
        const entries = this.#taken(chunk);
        if (entries.length > 0) return entries;
        continue;
      }
      const rest = this.#atEnd(this.#file, next !== undefined);
      if (next !== undefined) this.#follow(this.#file, next);
      if (rest.length > 0 || next === undefined) return rest;
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file.descriptor);
    this.#file = undefined;
  }

  /** Returns the file that comes after this one, undefined if this one is still appended to, or nothing has taken its place yet. */
  #next(file: OpenFile): "current" | "older" | undefined {
    const current = inodeOf(this.#path);
    if (current === undefined || current === file.inode) return undefined;
    const older = inodeOf(`${this.#path}.1`);
    if (older !== undefined && older !== file.inode) return "older";
    file.successor = current;
    return "current";
  }

  #follow(file: OpenFile, next: "current" | "older"): void {
    const opened = this.#opened(next === "older" ? `${this.#path}.1` : this.#path);
    // Rotated at this very moment: looked for again.
    if (opened === undefined || opened.inode === file.inode) {
      if (opened !== undefined) closeSync(opened.descriptor);
      return;
    }
    if (next === "older" && opened.inode !== file.successor) this.mayHaveMissed = true;
    closeSync(file.descriptor);
    this.#file = opened;
  }

  #opened(path: string): OpenFile | undefined {
    try {
      const descriptor = openSync(path, "r");
      const { ino: inode } = fstatSync(descriptor, { bigint: true });
      return { descriptor, inode, decoder: new StringDecoder("utf8"), offsetBytes: 0, successor: undefined };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
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

  /** `left`: nothing is appended to the file any more, so its last line needs no end. */
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

function inodeOf(path: string): bigint | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
}
