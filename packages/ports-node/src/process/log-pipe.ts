/**
 * Where log lines go: a file, or the pipe to who keeps them. A line is written before `write` returns, so that the last one before a crash
 * counts; only while the pipe is full (its reader has no time, or stands still) lines wait here, since a process that waits for the reader
 * of its log serves nobody. What waits is bounded: beyond it lines are left out, and that is told.
 */
import { fstatSync, writeSync } from "node:fs";

const bufferedBytesMax = 1024 * 1024;
const againMs = 5;
/** Time in which waiting lines are written when the process ends, if there is room, in milliseconds. */
const exitWaitMs = 500;

export interface LogPipeOptions {
  /** Writes like `fs.writeSync`. Tests give another. */
  readonly write?: (fd: number, bytes: Uint8Array) => number;
  readonly bufferedBytesMax?: number;
}

/** Keyed by file descriptor. */
const shared = new Map<number, LogPipe>();

export class LogPipe {
  /**
   * Returns the pipe of a descriptor, the same one for all loggers of the process: lines of two that wait for room would lie in one another, and
   * each has a listener for the end of the process.
   */
  static of(fd: number): LogPipe {
    const pipe = shared.get(fd) ?? new LogPipe(fd);
    shared.set(fd, pipe);
    return pipe;
  }

  readonly #fd: number;
  readonly #write: (fd: number, bytes: Uint8Array) => number;
  readonly #bytesMax: number;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #leftOut = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(fd: number, options: LogPipeOptions = {}) {
    this.#fd = fd;
    this.#write = options.write ?? writeSync;
    this.#bytesMax = options.bufferedBytesMax ?? bufferedBytesMax;
    process.on("exit", () => this.#flushForLong());
  }

  /** Writes a line of pino, line end included. */
  write(line: string): void {
    if (this.#waiting.length > 0) this.#flush();
    const bytes = Buffer.from(line);
    if (this.#waiting.length > 0 && this.#waitingBytes + bytes.length > this.#bytesMax) {
      this.#leftOut++;
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#flush();
  }

  /** Writes as much as there is room for; the rest is tried again soon. */
  #flush(): void {
    while (this.#waiting.length > 0) {
      const bytes = this.#waiting[0] as Uint8Array;
      const written = this.#tried(bytes);
      this.#waitingBytes -= written;
      if (written < bytes.length) {
        this.#waiting[0] = bytes.subarray(written);
        if (written > 0) continue;
        this.#soon();
        return;
      }
      this.#waiting.shift();
      if (this.#waiting.length === 0) this.#tellLeftOut();
    }
  }

  #tried(bytes: Uint8Array): number {
    try {
      return this.#write(this.#fd, bytes);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EAGAIN" || code === "EBUSY" || code === "EINTR") return 0;
      // Nobody reads any more: that is no reason to stop serving.
      return bytes.length;
    }
  }

  #tellLeftOut(): void {
    if (this.#leftOut === 0) return;
    const count = this.#leftOut;
    const line = `${JSON.stringify({ level: "warn", time: new Date().toISOString(), lines: count, msg: "lines were left out of this log" })}\n`;
    const bytes = Buffer.from(line);
    this.#leftOut = 0;
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
  }

  #soon(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#flush();
    }, againMs);
    this.#timer.unref();
  }

  #flushForLong(): void {
    const endMs = performance.now() + exitWaitMs;
    const cell = new Int32Array(new SharedArrayBuffer(4));
    for (this.#flush(); this.#waiting.length > 0 && performance.now() < endMs; this.#flush()) Atomics.wait(cell, 0, 0, againMs);
  }
}

/** True if what is written may have to wait for a reader. */
export const isPipe = (fd: number): boolean => {
  const status = fstatSync(fd);
  return status.isFIFO() || status.isSocket();
};
