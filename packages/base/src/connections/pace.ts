/**
 * The least rate of a peer: whether it moves bytes quickly enough to keep what a server holds for it. Time counts only while the server waits
 * for the peer, never while the peer waits for the server.
 *
 * A pace is an account of time. It begins with `windowMs`, loses the time that is waited, and gains for each byte the time that the byte may
 * take at the least rate, up to `creditMaxMs`. So:
 * - a peer whose average over any wait is at least the least rate is never too slow, however unevenly its bytes come;
 * - a peer that moves nothing is too slow after at most `creditMaxMs` of waiting, and after `windowMs` if it never moved more than it had to.
 */
export interface PaceOptions {
  /** Bytes in a second that the peer has to move on average; 0: any rate is enough. */
  readonly leastBytesPerSecond: number;
  /** Time that a peer may stand still at first, in milliseconds. */
  readonly windowMs: number;
  /** Time that a peer may stand still after it moved many bytes at once, in milliseconds; at least `windowMs`. */
  readonly creditMaxMs: number;
}

export class Pace {
  readonly #options: PaceOptions;
  #creditMs: number;
  #waitingSinceMs: number | undefined;

  constructor(options: PaceOptions) {
    this.#options = options;
    this.#creditMs = options.windowMs;
  }

  /** Begins to count: from now on the server waits for the peer. */
  wait(nowMs: number): void {
    this.#waitingSinceMs ??= nowMs;
  }

  /** Ends to count: the peer moved, and the server has something to do. */
  rest(nowMs: number): void {
    this.#creditMs = this.#leftMs(nowMs);
    this.#waitingSinceMs = undefined;
  }

  /** Credits bytes that the peer sent or took. */
  moved(bytes: number): void {
    const { leastBytesPerSecond, creditMaxMs } = this.#options;
    if (leastBytesPerSecond > 0) this.#creditMs = Math.min(creditMaxMs, this.#creditMs + (bytes * 1_000) / leastBytesPerSecond);
  }

  /** True if the peer moved less than the least rate for longer than the window. */
  isTooSlow(nowMs: number): boolean {
    return this.#options.leastBytesPerSecond > 0 && this.#leftMs(nowMs) <= 0;
  }

  #leftMs(nowMs: number): number {
    return this.#waitingSinceMs === undefined ? this.#creditMs : this.#creditMs - (nowMs - this.#waitingSinceMs);
  }
}
