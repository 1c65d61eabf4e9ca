/**
 * Sheds load when a server has more to do than it can: of what asks most, and no more than needed, so that others keep their latency.
 *
 * Who asks most is known by sample and hold: a request in `sampleEvery` is looked at, and an account or PartitionName that was seen is counted
 * from then on until the interval ends; so the counters stay few and the heavy ones are exact. While the server is overloaded, the heaviest is
 * let in with a chance that falls every interval; when it is not, every chance rises again.
 */
import type { Prng } from "@stamp/base";

export interface ThrottleOptions {
  /** Operations in the server beyond which it is overloaded. */
  readonly overloadedAt: number;
}

export interface Shed {
  /** An account, or an account and a PartitionName. */
  readonly who: string;
  /** Of its requests, those let in. */
  readonly fraction: number;
}

const intervalMs = 100;
const sampleEvery = 4;
const heldMax = 512;
const fractionMin = 0.02;
const fall = 0.7;
const rise = 0.05;
/** Who has a smaller part of the requests is not to blame. */
const heavyShare = 0.25;

export class Throttle {
  readonly #prng: Pick<Prng, "chance">;
  readonly #options: ThrottleOptions;
  /** Requests this interval, also those that were shed, of whom is held. */
  readonly #held = new Map<string, number>();
  readonly #fractions = new Map<string, number>();
  #asked = 0;
  #intervalEndsMs = 0;
  #overloaded = false;

  constructor(prng: Pick<Prng, "chance">, options: ThrottleOptions) {
    this.#prng = prng;
    this.#options = options;
  }

  get shed(): readonly Shed[] {
    return [...this.#fractions].map(([who, fraction]) => ({ who, fraction }));
  }

  /** Whether a request of this account for this PartitionName is let in. `active`: operations in the server now. */
  admit(nowMs: number, active: number, account: string, partition: string): boolean {
    if (nowMs >= this.#intervalEndsMs) this.#turn(nowMs);
    if (active > this.#options.overloadedAt) this.#overloaded = true;
    this.#asked++;
    const sampled = this.#prng.chance(1 / sampleEvery);
    for (const who of [account, partition]) {
      const count = this.#held.get(who);
      // Before it was held, one request was seen for every `sampleEvery` that came.
      if (count !== undefined) this.#held.set(who, count + 1);
      else if (sampled && this.#held.size < heldMax) this.#held.set(who, sampleEvery);
    }
    if (this.#fractions.size === 0) return true;
    const fraction = (this.#fractions.get(account) ?? 1) * (this.#fractions.get(partition) ?? 1);
    return fraction >= 1 || this.#prng.chance(fraction);
  }

  #turn(nowMs: number): void {
    const heaviest = this.#overloaded ? this.#heaviest() : undefined;
    for (const [who, fraction] of this.#fractions) {
      if (who === heaviest || this.#overloaded) continue;
      if (fraction + rise >= 1) this.#fractions.delete(who);
      else this.#fractions.set(who, fraction + rise);
    }
    if (heaviest !== undefined) this.#fractions.set(heaviest, Math.max(fractionMin, (this.#fractions.get(heaviest) ?? 1) * fall));
    this.#held.clear();
    this.#asked = 0;
    this.#overloaded = false;
    this.#intervalEndsMs = nowMs + intervalMs;
  }

  /** The PartitionName when it is most of its account, so that the account's other rows stay reachable. */
  #heaviest(): string | undefined {
    const least = ([who]: readonly [string, number]): boolean => (this.#fractions.get(who) ?? 1) <= fractionMin;
    const held = [...this.#held];
    // Of an account, what is not shed already under a PartitionName.
    const shed = held.filter(least);
    const rest = (who: string, count: number): number =>
      shed.reduce((left, [inside, part]) => (inside !== who && inside.startsWith(who) ? left - part : left), count);
    const sorted = held
      .filter((one) => !least(one))
      .map(([who, count]) => [who, rest(who, count)] as const)
      .sort((a, b) => b[1] - a[1]);
    const first = sorted[0];
    if (!first || first[1] < this.#asked * heavyShare) return undefined;
    const inside = sorted.find(([who, count]) => who !== first[0] && who.startsWith(first[0]) && count > first[1] * 0.8);
    return inside?.[0] ?? first[0];
  }
}
