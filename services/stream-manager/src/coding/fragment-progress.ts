/**
 * How far the repair of fragments is. An episode begins when fragments are to be made again and none were before, and ends when none is left.
 * The time that is left follows from the rate of the episode, so that a repair that slows down is seen to.
 */
import type { Clock } from "@stamp/ports";
import { toWire } from "@stamp/wire";

/** Inverse of the share of an episode's work that must be done before its rate says something. */
const etaPart = 20;

export interface FragmentsToMake {
  /** Size of the fragments to be made again, in bytes. */
  readonly bytes: number;
  /** Number of bytes that have to be read to make the fragments. */
  readonly reads: number;
}

const nothing: FragmentsToMake = { bytes: 0, reads: 0 };

interface Episode {
  readonly startedMs: number;
  /** Time at which the episode ended, in milliseconds; undefined: it goes on. */
  endedMs: number | undefined;
  bytes: number;
  bytesRead: number;
}

export class FragmentProgress {
  readonly #clock: Clock;
  /** Rate that the configuration allows, in bytes that are read. */
  readonly #readsPerSecondMax: number;
  #left: FragmentsToMake = nothing;
  #episode: Episode = { startedMs: 0, endedMs: 0, bytes: 0, bytesRead: 0 };

  constructor(clock: Clock, readsPerSecondMax: number) {
    this.#clock = clock;
    this.#readsPerSecondMax = readsPerSecondMax;
  }

  /** Notes that all coded extents were looked at; `left`: fragments to be made again or being made. */
  looked(left: FragmentsToMake): void {
    if (left.bytes > 0 && this.#episode.endedMs !== undefined) this.#begin();
    if (left.bytes === 0) this.#end();
    this.#left = left;
  }

  /** Notes that a fragment was made again. */
  made(bytes: number, bytesRead: number): void {
    // A new leader makes fragments before its first look at all extents is over: the episode begins with the first of them.
    if (this.#episode.endedMs !== undefined) this.#begin();
    this.#episode.bytes += bytes;
    this.#episode.bytesRead += bytesRead;
    if (this.#left.bytes === 0) return;
    const reads = (this.#left.reads * bytes) / Math.max(1, this.#left.bytes);
    this.#left = { bytes: Math.max(0, this.#left.bytes - bytes), reads: Math.max(0, this.#left.reads - reads) };
    if (this.#left.bytes === 0) this.#end();
  }

  /** Returns the fields of RepairStatus about fragments. */
  status() {
    const { startedMs, endedMs, bytes, bytesRead } = this.#episode;
    const runningMs = Math.max(0, Math.floor((endedMs ?? this.#clock.monotonicMs()) - startedMs));
    return {
      fragmentBytesWaiting: toWire(this.#left.bytes),
      fragmentBytesDone: toWire(bytes),
      fragmentBytesRead: toWire(bytesRead),
      fragmentRunningMs: toWire(runningMs),
      ...(this.#left.bytes === 0 ? {} : { fragmentEtaMs: toWire(this.#etaMs(runningMs)) }),
    };
  }

  #etaMs(runningMs: number): number {
    const { bytes } = this.#episode;
    const { bytes: left, reads } = this.#left;
    const fastestMs = (reads * 1_000) / this.#readsPerSecondMax;
    const isEarly = bytes * etaPart < bytes + left;
    return Math.ceil(isEarly ? fastestMs : Math.max(fastestMs, (left * runningMs) / bytes));
  }

  #begin(): void {
    this.#episode = { startedMs: this.#clock.monotonicMs(), endedMs: undefined, bytes: 0, bytesRead: 0 };
  }

  #end(): void {
    this.#episode.endedMs ??= this.#clock.monotonicMs();
  }
}
