/**
 * Tells how fast the backlog of a copy becomes smaller, and with it when the copy has caught up. The rate is what is left of the rate of
 * shipping when new writes are taken off: the backlog of a copy that ships as fast as clients write does not end.
 */
export interface Backlog {
  /** Commits that the copy lacks. */
  readonly commits: number;
  /** Size of the backlog's rows and blob bytes; an upper bound. */
  readonly bytes: number;
}

interface Sample extends Backlog {
  readonly timeMs: number;
}

/** Time over which the rate is counted, in milliseconds. */
const windowMs = 60_000;

export class BacklogRate {
  /** Oldest first. Two neighbours are at most `windowMs` apart. The first one may lie before the window. */
  #samples: Sample[] = [];

  /** Takes a measurement; `timeMs` is monotonic time. */
  noted(backlog: Backlog, timeMs: number): void {
    const last = this.#samples.at(-1);
    // For a time nothing was told: a rate over the gap would not be one of now.
    if (last !== undefined && timeMs - last.timeMs > windowMs) this.#samples = [];
    this.#samples.push({ ...backlog, timeMs });
    const first = this.#samples.findLastIndex((sample) => sample.timeMs <= timeMs - windowMs);
    if (first > 0) this.#samples = this.#samples.slice(first);
  }

  /** Amount by which the backlog became smaller in a second; 0: it did not, or too little is known. */
  get perSecond(): Backlog {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    if (first === undefined || last === undefined || last.timeMs <= first.timeMs) return { commits: 0, bytes: 0 };
    const rate = (of: (backlog: Backlog) => number): number => Math.max(0, ((of(first) - of(last)) * 1_000) / (last.timeMs - first.timeMs));
    return { commits: rate(({ commits }) => commits), bytes: rate(({ bytes }) => bytes) };
  }
}
