/**
 * Bytes of large bodies that a process takes in at once, from how long small operations take beside them.
 *
 * A large body always has more to send. Whatever of it is let in keeps processors, connections and disks busy, and a small operation waits
 * behind it at each step: with many bytes in flight it keeps a tenth of its rate. So while small operations are there and take too long, the
 * room for large bodies falls to its least, and the rest of these bodies is left where it is, at the clients. When no small operation is
 * there, or they are quick, the room grows back to its most.
 *
 * Invariants: the room is never below `bytesMin` nor above `bytesMax`. Few small operations (less than half of the time one) do not count, so
 * that a look at the health of a stamp costs uploads nothing.
 */
import type { Kind } from "./concurrency-limit.ts";

export interface RoomBesideOptions {
  readonly bytesMax: number;
  readonly bytesMin: number;
  /** Mean time above which small operations take too long, in milliseconds. Writes wait for disks. */
  readonly targetMs: Readonly<Record<Kind, number>>;
}

const intervalMs = 100;
/** Small operations that are there at once, on average over an interval; with fewer they do not count. */
const presentMin = 0.5;
const fall = 0.5;
const rise = 1.25;

interface Seen {
  count: number;
  sumMs: number;
}

export class RoomBeside {
  readonly #options: RoomBesideOptions;
  readonly #seen: Readonly<Record<Kind, Seen>> = { read: { count: 0, sumMs: 0 }, write: { count: 0, sumMs: 0 } };
  #roomBytes: number;
  #sinceMs: number = Number.NEGATIVE_INFINITY;

  constructor(options: RoomBesideOptions) {
    this.#options = options;
    this.#roomBytes = options.bytesMax;
  }

  /** A small operation has ended. */
  ended(kind: Kind, tookMs: number, nowMs: number): void {
    this.#turn(nowMs);
    this.#seen[kind].count++;
    this.#seen[kind].sumMs += tookMs;
  }

  /** Returns the room for large bodies now, in bytes. */
  roomBytes(nowMs: number): number {
    this.#turn(nowMs);
    return Math.floor(this.#roomBytes);
  }

  #turn(nowMs: number): void {
    const passedMs = nowMs - this.#sinceMs;
    if (passedMs < intervalMs) return;
    this.#sinceMs = nowMs;
    const { bytesMin, bytesMax } = this.#options;
    if (this.#isLate("read", passedMs) || this.#isLate("write", passedMs)) this.#roomBytes = Math.max(bytesMin, this.#roomBytes * fall);
    else this.#roomBytes = Math.min(bytesMax, this.#roomBytes * rise);
    for (const seen of Object.values(this.#seen)) {
      seen.count = 0;
      seen.sumMs = 0;
    }
  }

  #isLate(kind: Kind, passedMs: number): boolean {
    const { count, sumMs } = this.#seen[kind];
    return sumMs / passedMs >= presentMin && sumMs / count > this.#options.targetMs[kind];
  }
}
