/**
 * Tells how long this machine was suspended: by how much CLOCK_BOOTTIME ran ahead of CLOCK_MONOTONIC, which stands still meanwhile.
 *
 * - Linux: /proc/uptime, in steps of 10 ms, against `performance.now()`. No step of the wall clock changes either.
 * - Elsewhere, and without /proc/uptime: the wall clock against `performance.now()`. There a step forward counts as a suspend: it can end a
 *   lease too early, never too late.
 * - A reading takes about 20 µs, so it is kept for `keptMs`. A suspend moves the wall clock against the monotonic clock, as a step does: when
 *   that happened the reading is taken anew at once.
 */
import { accessSync, constants } from "node:fs";
import { uptime } from "node:os";

export interface SystemTimes {
  monotonicMs(): number;
  wallMs(): number;
  /** Returns CLOCK_BOOTTIME in milliseconds; undefined: this system has none. */
  readonly bootMs: (() => number) | undefined;
}

/** Time for which a reading is good while the wall clock keeps its distance, in monotonic milliseconds. */
const keptMs = 100;
/** The distance changes by less without a step: the wall clock is read in whole milliseconds. */
const stepMinMs = 5;
/** Longest time between the readings of two clocks that count as one moment, in milliseconds. */
const exactMs = 2;
const readingsMax = 10;

export class SuspendWatch {
  readonly #times: SystemTimes;
  #suspendedMs = 0;
  #readAtMs = Number.NEGATIVE_INFINITY;
  #wallAheadMs = 0;

  constructor(times: SystemTimes) {
    this.#times = times;
  }

  suspendedMs(): number {
    const { bootMs } = this.#times;
    const nowMs = this.#times.monotonicMs();
    const wallAheadMs = this.#times.wallMs() - nowMs;
    if (bootMs === undefined) return wallAheadMs;
    if (nowMs - this.#readAtMs >= keptMs || Math.abs(wallAheadMs - this.#wallAheadMs) >= stepMinMs) {
      this.#suspendedMs = this.#read(bootMs);
      this.#readAtMs = nowMs;
      this.#wallAheadMs = wallAheadMs;
    }
    return this.#suspendedMs;
  }

  /**
   * Returns the quickest one of a few readings: a process that was stopped between its two clocks would see a suspend.
   */
  #read(bootMs: () => number): number {
    let best = { tookMs: Number.POSITIVE_INFINITY, suspendedMs: 0 };
    for (let i = 0; i < readingsMax && best.tookMs > exactMs; i++) {
      const beforeMs = this.#times.monotonicMs();
      const aheadMs = bootMs() - beforeMs;
      const tookMs = this.#times.monotonicMs() - beforeMs;
      if (tookMs < best.tookMs) best = { tookMs, suspendedMs: aheadMs };
    }
    return best.suspendedMs;
  }
}

export function systemTimes(platform: string = process.platform): SystemTimes {
  return { monotonicMs: () => performance.now(), wallMs: () => Date.now(), bootMs: bootClock(platform) };
}

/** `uptime` reads /proc/uptime. Without that file it says whole seconds only, which is too coarse. */
function bootClock(platform: string): (() => number) | undefined {
  if (platform !== "linux") return undefined;
  try {
    accessSync("/proc/uptime", constants.R_OK);
    return () => uptime() * 1_000;
  } catch {
    return undefined;
  }
}
