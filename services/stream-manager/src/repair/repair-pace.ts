/**
 * A rate that two kinds of work share over the whole stamp: copies of replicas and fragments that are made anew, or codings and decodings.
 *
 * Invariant: while both wait they take turns. Who asks first at every turn would otherwise leave nothing to the other.
 */
import type { Clock } from "@stamp/ports";

/** Time for which a turn is kept for the other kind, in milliseconds: its timer is due at the same moment. */
const turnMs = 20;

export class RepairPace<Kind extends string = "replicas" | "fragments"> {
  readonly #clock: Clock;
  readonly #bytesPerSecond: number;
  readonly #turnMs: number;
  #notBeforeMs = 0;
  #last: Kind | undefined;
  /** Kinds that had to wait since they last began something. */
  readonly #waiting = new Set<Kind>();
  /** Time at which the other kind's turn began; undefined: it did not. */
  #turnSinceMs: number | undefined;

  /** `keptMs`: time for which the other kind's turn is kept, in milliseconds. */
  constructor(clock: Clock, bytesPerSecond: number, keptMs: number = turnMs) {
    this.#clock = clock;
    this.#bytesPerSecond = bytesPerSecond;
    this.#turnMs = keptMs;
  }

  /** Returns the time until work of this kind may begin, in milliseconds; 0: it may begin now. Ask only if there is some. */
  waitMs(kind: Kind): number {
    const nowMs = this.#clock.monotonicMs();
    const leftMs = this.#notBeforeMs - nowMs;
    if (leftMs > 0) {
      this.#waiting.add(kind);
      return leftMs;
    }
    const isOthersTurn = this.#last === kind && [...this.#waiting].some((other) => other !== kind);
    if (!isOthersTurn) return 0;
    this.#turnSinceMs ??= nowMs;
    return Math.max(0, this.#turnSinceMs + this.#turnMs - nowMs);
  }

  /** Notes that work which reads this number of bytes begins now. */
  spend(kind: Kind, bytes: number): void {
    // The other kind did not come in its turn, so it waits for nothing any more.
    if (this.#turnSinceMs !== undefined && this.#last === kind) this.#waiting.clear();
    this.#waiting.delete(kind);
    this.#turnSinceMs = undefined;
    this.#last = kind;
    this.#notBeforeMs = Math.max(this.#clock.monotonicMs(), this.#notBeforeMs) + (bytes * 1_000) / this.#bytesPerSecond;
  }
}
