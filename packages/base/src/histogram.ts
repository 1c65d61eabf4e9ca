/**
 * How long things took: counts by time, as a histogram of Prometheus (buckets, sum) since it was made, and percentiles of about the last
 * minute for people. Lies among the facts of a role as it is: `/metrics` tells its buckets, JSON the percentiles. One observation costs a
 * look at the clock and a walk over a few numbers, and leaves nothing to collect.
 */

/** Upper bounds of the buckets, inclusive; one more bucket has no bound. The same for all, so that they can be added and compared. */
export const bucketsMs: readonly number[] = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000];

/** Length of a period in milliseconds; `recent` goes back by one to two periods. */
const periodMs = 30_000;

export interface RecentTimes {
  readonly count: number;
  /** Undefined: nothing was observed. Interpolated within a bucket; beyond the last bound they are that bound. */
  readonly p50Ms: number | undefined;
  readonly p99Ms: number | undefined;
}

export class Histogram {
  readonly #clock: { monotonicMs(): number };
  /** Count of each bucket; the last bucket has no upper bound. */
  readonly #counts: number[] = zeros();
  #sumMs = 0;
  /** Values of `#counts` at the beginning of this period, and of the period before. */
  #begun: number[] = zeros();
  #before: number[] = zeros();
  #endsMs: number;

  constructor(clock: { monotonicMs(): number }) {
    this.#clock = clock;
    this.#endsMs = clock.monotonicMs() + periodMs;
  }

  /** Counts the time since `beganMs` by the same clock. `nowMs` spares a look at the clock. */
  since(beganMs: number, nowMs: number = this.#clock.monotonicMs()): void {
    if (nowMs >= this.#endsMs) this.#turn(nowMs);
    const tookMs = nowMs - beganMs;
    let at = 0;
    while (at < bucketsMs.length && tookMs > (bucketsMs[at] as number)) at++;
    this.#counts[at] = (this.#counts[at] as number) + 1;
    this.#sumMs += tookMs;
  }

  get count(): number {
    return total(this.#counts);
  }
  get sumMs(): number {
    return this.#sumMs;
  }
  /** Counts of each bucket with the lower ones; the last is the total. */
  get cumulative(): number[] {
    let sum = 0;
    return this.#counts.map((count) => {
      sum += count;
      return sum;
    });
  }

  get recent(): RecentTimes {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs >= this.#endsMs) this.#turn(nowMs);
    const counts = this.#counts.map((count, at) => count - (this.#before[at] as number));
    return { count: total(counts), p50Ms: quantile(counts, 0.5), p99Ms: quantile(counts, 0.99) };
  }

  toJSON(): object {
    return { count: this.count, sumMs: Math.round(this.#sumMs * 1_000) / 1_000, recent: this.recent };
  }

  #turn(nowMs: number): void {
    // A period without any measurement tells nothing.
    this.#before = nowMs - this.#endsMs < periodMs ? this.#begun : [...this.#counts];
    this.#begun = [...this.#counts];
    this.#endsMs = nowMs + periodMs;
  }
}

const zeros = (): number[] => Array.from({ length: bucketsMs.length + 1 }, () => 0);

const total = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);

/** Computes a quantile as `histogram_quantile` of Prometheus does. */
function quantile(counts: readonly number[], share: number): number | undefined {
  const all = total(counts);
  if (all === 0) return undefined;
  const rank = share * all;
  let below = 0;
  for (const [at, toMs] of bucketsMs.entries()) {
    const count = counts[at] as number;
    const fromMs = bucketsMs[at - 1] ?? 0;
    if (count > 0 && below + count >= rank) return fromMs + ((toMs - fromMs) * (rank - below)) / count;
    below += count;
  }
  return bucketsMs.at(-1);
}
