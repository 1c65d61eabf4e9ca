/**
 * Rates of a range's log over the last seconds: what clients write, and what the other stamp acknowledges. The latter is gross: new writes do not
 * lower it. With writers refused, as a planned failover refuses them, it is how fast the backlog would go.
 */

/** Both count from the same beginning, and rise. */
export interface LogPositions {
  readonly writtenCommits: number;
  /** Size of the written rows and blob bytes, in bytes. */
  readonly writtenBytes: number;
  readonly shippedCommits: number;
  readonly shippedBytes: number;
}

/** Rates of shipping, per second. */
export type ShippingRates = LogPositions;

export const noRates: ShippingRates = { writtenCommits: 0, writtenBytes: 0, shippedCommits: 0, shippedBytes: 0 };

export const sumOfRates = (all: readonly ShippingRates[]): ShippingRates =>
  all.reduce(
    (sum, one) => ({
      writtenCommits: sum.writtenCommits + one.writtenCommits,
      writtenBytes: sum.writtenBytes + one.writtenBytes,
      shippedCommits: sum.shippedCommits + one.shippedCommits,
      shippedBytes: sum.shippedBytes + one.shippedBytes,
    }),
    noRates,
  );

interface Sample {
  readonly at: LogPositions;
  readonly timeMs: number;
}

/** Time over which the rates are counted, in milliseconds. */
const windowMs = 20_000;
/** Time over which a rate is counted at least, in milliseconds: a batch that is acknowledged a few ms after the first sample is no rate. */
const countedMinMs = 2_000;
/** Samples that are closer than this replace each other, so that many questions cost no memory. */
const apartMs = 500;

export class ShippingRate {
  /** Oldest first. The first one may lie before the window. */
  #samples: Sample[] = [];
  #last: Sample | undefined;

  /** Takes a measurement; `timeMs` is monotonic time. */
  noted(at: LogPositions, timeMs: number): void {
    this.#last = { at, timeMs };
    const before = this.#samples.at(-1);
    if (before !== undefined && timeMs - before.timeMs < apartMs) return;
    this.#samples.push(this.#last);
    const first = this.#samples.findLastIndex((sample) => sample.timeMs <= timeMs - windowMs);
    if (first > 0) this.#samples = this.#samples.slice(first);
  }

  /** Returns undefined until 2 s lie between the first sample and the last. */
  get perSecond(): ShippingRates | undefined {
    const [first, last] = [this.#samples[0], this.#last];
    if (first === undefined || last === undefined || last.timeMs - first.timeMs < countedMinMs) return undefined;
    const rate = (of: (at: LogPositions) => number): number =>
      Math.max(0, ((of(last.at) - of(first.at)) * 1_000) / (last.timeMs - first.timeMs));
    return {
      writtenCommits: rate(({ writtenCommits }) => writtenCommits),
      writtenBytes: rate(({ writtenBytes }) => writtenBytes),
      shippedCommits: rate(({ shippedCommits }) => shippedCommits),
      shippedBytes: rate(({ shippedBytes }) => shippedBytes),
    };
  }
}
