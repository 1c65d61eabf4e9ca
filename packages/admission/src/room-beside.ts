/**
 * Bytes of large bodies that a process takes in at once, from how long small operations take beside them.
 *
 * A large body always has more to send. Whatever of it is let in keeps processors, connections and disks busy, and a small operation waits
 * behind it at each step: with many bytes in flight it keeps a tenth of its rate. So while small operations are there and take too long, the
 * room for large bodies falls to its least, and the rest of these bodies is left where it is, at the clients. When no small operation is
 * there, or they are quick, the room grows back to its most.
 *
 * The mean time of small operations is the number in flight, over time, divided by those that ended (Little's law). So an operation counts
 * while it lasts, whether or not it ends.
 *
 * Invariants:
 * - The room is never below `bytesMin` nor above `bytesMax`.
 * - Few small operations (fewer than half a one at any time, on average over a second) do not count, so that a look at the health of a stamp
 *   costs uploads nothing.
 * - An operation that may turn out to be large counts only by the part of such operations that were small lately.
 */
import type { AccessKind } from "./concurrency-limit.ts";

export interface RoomBesideOptions {
  readonly bytesMax: number;
  readonly bytesMin: number;
  /** Mean time above which small operations take too long, in milliseconds. Writes wait for disks. */
  readonly targetMs: Readonly<Record<AccessKind, number>>;
}

/**
 * How an operation ended. `large`: it belongs to a large request. `refused`: it was too much, or was not answered in time. `cancelled`: its
 * client went away.
 */
export type SmallEnd = "small" | "large" | "refused" | "cancelled";

/** A small operation in flight. */
export interface SmallOperation {
  readonly kind: AccessKind;
  /** True if the operation is small for certain; false: only its end tells. */
  readonly isSure: boolean;
  readonly beganMs: number;
}

const intervalMs = 100;
/** Small operations that are there at once, on average; with fewer they do not count. */
const presentMin = 0.5;
/** Time over which the average of present operations goes back, in milliseconds. */
const presentOverMs = 1_000;
const fall = 0.5;
const rise = 1.25;
/** Weight of the last operation in the part of unsure ones that are small. */
const learnShare = 1 / 16;
/** An operation that was refused counts as one of at least this many times the target. */
const refusedTargets = 10;

/** State of the operations of one kind: how long they take, and how many are under way. */
interface Watched {
  readonly inFlight: Set<SmallOperation>;
  /** Operations in flight that are not surely small. */
  unsure: number;
  /** Number in flight over time in this interval, in operations times milliseconds. */
  sumMs: number;
  /** Operations that ended in this interval. */
  ended: number;
  /** Operations that are there at once, on average over `presentOverMs`. */
  present: number;
}

const watched = (): Watched => ({ inFlight: new Set(), unsure: 0, sumMs: 0, ended: 0, present: 0 });

export class RoomBeside {
  readonly #options: RoomBesideOptions;
  readonly #watched: Readonly<Record<AccessKind, Watched>> = { read: watched(), write: watched() };
  /** Part of the operations that were not surely small, and were. */
  #smallPart = 0;
  #roomBytes: number;
  /** Begin of the interval, and up to when `sumMs` is counted. */
  #sinceMs: number | undefined;
  #countedMs = 0;

  constructor(options: RoomBesideOptions) {
    this.#options = options;
    this.#roomBytes = options.bytesMax;
  }

  /** Notes the begin of a small operation. Its owner passes the result to `ended` once. */
  began(kind: AccessKind, isSure: boolean, nowMs: number): SmallOperation {
    this.#turn(nowMs);
    const operation = { kind, isSure, beganMs: nowMs };
    const own = this.#watched[kind];
    own.inFlight.add(operation);
    if (!isSure) own.unsure++;
    return operation;
  }

  ended(operation: SmallOperation, end: SmallEnd, nowMs: number): void {
    this.#turn(nowMs);
    const { kind, isSure, beganMs } = operation;
    const own = this.#watched[kind];
    if (!own.inFlight.delete(operation)) return;
    if (!isSure) {
      own.unsure--;
      if (end === "small" || end === "large") this.#smallPart += ((end === "small" ? 1 : 0) - this.#smallPart) * learnShare;
    }
    if (end === "small") own.ended++;
    if (end === "refused") {
      own.sumMs += Math.max(0, refusedTargets * this.#options.targetMs[kind] - (nowMs - beganMs)) * (isSure ? 1 : this.#smallPart);
    }
  }

  /** Returns the room for large bodies now, in bytes. */
  roomBytes(nowMs: number): number {
    this.#turn(nowMs);
    return Math.floor(this.#roomBytes);
  }

  #turn(nowMs: number): void {
    if (this.#sinceMs === undefined) {
      this.#sinceMs = nowMs;
      this.#countedMs = nowMs;
    }
    const reads = this.#watched.read;
    const writes = this.#watched.write;
    for (const own of [reads, writes]) {
      own.sumMs += (nowMs - this.#countedMs) * (own.inFlight.size - own.unsure * (1 - this.#smallPart));
    }
    this.#countedMs = nowMs;
    const passedMs = nowMs - this.#sinceMs;
    if (passedMs < intervalMs) return;
    this.#sinceMs = nowMs;
    const areReadsLate = this.#endInterval("read", passedMs, nowMs);
    const areWritesLate = this.#endInterval("write", passedMs, nowMs);
    const { bytesMin, bytesMax } = this.#options;
    if (areReadsLate || areWritesLate) this.#roomBytes = Math.max(bytesMin, this.#roomBytes * fall);
    else this.#roomBytes = Math.min(bytesMax, this.#roomBytes * rise ** (passedMs / intervalMs));
  }

  /** True if operations of this kind were there in the interval, and took too long. */
  #endInterval(kind: AccessKind, passedMs: number, nowMs: number): boolean {
    const own = this.#watched[kind];
    const { sumMs, ended } = own;
    const present = sumMs / passedMs;
    own.present += (present - own.present) * (1 - Math.exp(-passedMs / presentOverMs));
    own.sumMs = 0;
    own.ended = 0;
    if (Math.min(present, own.present) < presentMin) return false;
    const [oldest] = own.inFlight;
    const meanMs = ended > 0 ? sumMs / ended : oldest === undefined ? Number.POSITIVE_INFINITY : nowMs - oldest.beganMs;
    return meanMs > this.#options.targetMs[kind];
  }
}
