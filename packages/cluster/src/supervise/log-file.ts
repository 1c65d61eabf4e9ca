/**
 * Output of one process in a file that does not grow without bound: at its limit it becomes `<name>.log.1`, replacing the older one.
 *
 * Output comes in pieces that may end inside a line. A line stays in one file, unless it is very long, and a note of the
 * supervisor begins on a line of its own.
 */
import { closeSync, existsSync, fstatSync, openSync, readSync, renameSync, writeSync } from "node:fs";

const newline = 0x0a;
/** A file may exceed its limit by this, in bytes, so that a line is not cut. A small limit: by as much as itself. */
const lineBytesMax = 1024 * 1024;

export class LogFile {
  readonly #path: string;
  readonly #bytesMax: number;
  #descriptor: number;
  #sizeBytes: number;
  /** True if the last byte of the file is inside a line. */
  #insideLine: boolean;
  #lastLines = "";

  constructor(path: string, bytesMax: number) {
    this.#path = path;
    this.#bytesMax = bytesMax;
    this.#descriptor = openSync(path, "a+", 0o600);
    this.#sizeBytes = fstatSync(this.#descriptor).size;
    const last = Buffer.alloc(1);
    this.#insideLine = this.#sizeBytes > 0 && readSync(this.#descriptor, last, 0, 1, this.#sizeBytes - 1) === 1 && last[0] !== newline;
  }

  /** Writes output of the process. */
  write(chunk: Buffer): void {
    this.#lastLines = (this.#lastLines + chunk.toString("utf8")).slice(-4_000);
    this.#append(chunk);
  }

  /** Writes a line of the supervisor's own. */
  note(text: string): void {
    this.#append(
      Buffer.from(`${this.#insideLine ? "\n" : ""}${JSON.stringify({ time: new Date().toISOString(), name: "supervisor", msg: text })}\n`),
    );
  }

  /** Returns the end of what the process wrote. */
  tail(lines: number): string {
    return this.#lastLines.trimEnd().split("\n").slice(-lines).join("\n");
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #append(chunk: Buffer): void {
    try {
      const end = this.#insideLine ? chunk.indexOf(newline) + 1 : 0;
      if (this.#sizeBytes + chunk.length <= this.#bytesMax || this.#sizeBytes === 0) this.#write(chunk);
      else if (this.#insideLine && end === 0 && this.#sizeBytes <= this.#bytesMax + Math.min(this.#bytesMax, lineBytesMax))
        this.#write(chunk);
      else {
        // The rest of a line goes where its begin is.
        this.#write(chunk.subarray(0, end));
        this.#rotate();
        this.#write(chunk.subarray(end));
      }
    } catch {
      // A full disk must not take the supervisor down: the line is lost.
    }
  }

  #write(bytes: Buffer): void {
    if (bytes.length === 0) return;
    writeSync(this.#descriptor, bytes);
    this.#sizeBytes += bytes.length;
    this.#insideLine = bytes.at(-1) !== newline;
  }

  #rotate(): void {
    // Already moved when the new one could not be made last time.
    if (existsSync(this.#path)) renameSync(this.#path, `${this.#path}.1`);
    const next = openSync(this.#path, "a", 0o600);
    closeSync(this.#descriptor);
    this.#descriptor = next;
    this.#sizeBytes = 0;
    this.#insideLine = false;
  }
}
