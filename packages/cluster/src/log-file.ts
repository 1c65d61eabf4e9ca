/** Output of one process in a file that does not grow without bound: at its limit it becomes `<name>.log.1`, replacing the older one. */
import { closeSync, existsSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";

export class LogFile {
  readonly #path: string;
  readonly #bytesMax: number;
  #descriptor: number;
  #sizeBytes: number;
  #lastLines = "";

  constructor(path: string, bytesMax: number) {
    this.#path = path;
    this.#bytesMax = bytesMax;
    this.#descriptor = openSync(path, "a", 0o600);
    this.#sizeBytes = fstatSync(this.#descriptor).size;
  }

  /** Output of the process. */
  write(chunk: Buffer): void {
    this.#lastLines = (this.#lastLines + chunk.toString("utf8")).slice(-4_000);
    this.#append(chunk);
  }

  /** A line of the supervisor's own. */
  note(text: string): void {
    this.#append(Buffer.from(`${JSON.stringify({ time: new Date().toISOString(), name: "supervisor", msg: text })}\n`));
  }

  /** The end of what the process wrote. */
  tail(lines: number): string {
    return this.#lastLines.trimEnd().split("\n").slice(-lines).join("\n");
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #append(chunk: Buffer): void {
    try {
      if (this.#sizeBytes + chunk.length > this.#bytesMax && this.#sizeBytes > 0) this.#rotate();
      writeSync(this.#descriptor, chunk);
      this.#sizeBytes += chunk.length;
    } catch {
      // A full disk must not take the supervisor down: the line is lost.
    }
  }

  #rotate(): void {
    // Already moved when the new one could not be made last time.
    if (existsSync(this.#path)) renameSync(this.#path, `${this.#path}.1`);
    const next = openSync(this.#path, "a", 0o600);
    closeSync(this.#descriptor);
    this.#descriptor = next;
    this.#sizeBytes = 0;
  }
}
