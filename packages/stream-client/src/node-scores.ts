/** Which replica to ask first: those that failed lately last, the others in random order. And how long an answer usually takes. */
import { jittered, type World } from "@stamp/ports";

const failureKeptMs = 5_000;
const samplesMax = 128;
const hedgeStartMs = 50;
const hedgeMinMs = 10;
const hedgeMaxMs = 500;

export class NodeScores {
  readonly #world: World;
  readonly #failedMs = new Map<string, number>();
  readonly #samplesMs: number[] = [];
  #at = 0;
  #hedgeMs = hedgeStartMs;

  constructor(world: World) {
    this.#world = world;
  }

  /** About the 95th percentile of lately seen answers, within bounds. */
  get hedgeAfterMs(): number {
    return this.#hedgeMs;
  }

  order(addresses: readonly string[]): string[] {
    const now = this.#world.clock.monotonicMs();
    return addresses
      .map((address) => {
        const failedMs = this.#failedMs.get(address);
        const ill = failedMs !== undefined && now - failedMs < failureKeptMs;
        return { address, rank: (ill ? 1 : 0) + this.#world.random.float() };
      })
      .sort((a, b) => a.rank - b.rank)
      .map(({ address }) => address);
  }

  answered(address: string, tookMs: number): void {
    this.#failedMs.delete(address);
    this.#samplesMs[this.#at++ % samplesMax] = tookMs;
    if (this.#at % 32 !== 0) return;
    const sorted = [...this.#samplesMs].sort((a, b) => a - b);
    const p95 = sorted[Math.floor(sorted.length * 0.95)] ?? hedgeStartMs;
    this.#hedgeMs = Math.min(hedgeMaxMs, Math.max(hedgeMinMs, jittered(this.#world.random, p95 * 2)));
  }

  failed(address: string): void {
    this.#failedMs.set(address, this.#world.clock.monotonicMs());
  }
}
