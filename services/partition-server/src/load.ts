/**
 * The load of one range as its server sees it: rates over the last seconds, and where the requests went. Cheap enough for every request.
 */
import { partitionStart } from "@stamp/objects";
import type { Clock } from "@stamp/ports";

const windowMs = 10_000;
const buckets = 10;
const samplesMax = 1_024;

export interface LoadFigures {
  /** Over the last 10 s. */
  readonly readsPerSecond: number;
  readonly writesPerSecond: number;
  readonly throttledPerSecond: number;
  readonly bytesPerSecond: number;
  /** Mean, of those that ended. */
  readonly latencyMs: number;
  /** Now. */
  readonly pending: number;
}

interface Bucket {
  number: number;
  reads: number;
  writes: number;
  throttled: number;
  bytes: number;
  ended: number;
  latencyMs: number;
}

export class RangeLoad {
  readonly #clock: Clock;
  readonly #buckets: Bucket[] = Array.from({ length: buckets }, () => emptyBucket(-1));
  /** Keys of the last requests, the oldest overwritten. */
  readonly #samples: Uint8Array[] = [];
  readonly #sinceMs: number;
  #at = 0;
  #pending = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  get ageMs(): number {
    return this.#clock.monotonicMs() - this.#sinceMs;
  }

  /** A request that is let in; what is given is called when it ends. */
  begin(kind: "read" | "write", key: Uint8Array, bytes: number): () => void {
    const startMs = this.#clock.monotonicMs();
    const bucket = this.#bucket(startMs);
    if (kind === "read") bucket.reads++;
    else bucket.writes++;
    bucket.bytes += bytes;
    this.#samples[this.#at] = key;
    this.#at = (this.#at + 1) % samplesMax;
    this.#pending++;
    return () => {
      this.#pending--;
      const nowMs = this.#clock.monotonicMs();
      const ended = this.#bucket(nowMs);
      ended.ended++;
      ended.latencyMs += nowMs - startMs;
    };
  }

  throttled(): void {
    this.#bucket(this.#clock.monotonicMs()).throttled++;
  }

  get figures(): LoadFigures {
    const current = Math.floor(this.#clock.monotonicMs() / (windowMs / buckets));
    const sum = emptyBucket(0);
    for (const bucket of this.#buckets) {
      if (bucket.number <= current - buckets) continue;
      sum.reads += bucket.reads;
      sum.writes += bucket.writes;
      sum.throttled += bucket.throttled;
      sum.bytes += bucket.bytes;
      sum.ended += bucket.ended;
      sum.latencyMs += bucket.latencyMs;
    }
    const seconds = windowMs / 1_000;
    return {
      readsPerSecond: sum.reads / seconds,
      writesPerSecond: sum.writes / seconds,
      throttledPerSecond: sum.throttled / seconds,
      bytesPerSecond: sum.bytes / seconds,
      latencyMs: sum.ended === 0 ? 0 : sum.latencyMs / sum.ended,
      pending: this.#pending,
    };
  }

  /** Where the rows of each of the last requests' PartitionName start, in no order. */
  partitionStarts(): Uint8Array[] {
    return this.#samples.map(partitionStart).filter((start) => start !== undefined);
  }

  #bucket(nowMs: number): Bucket {
    const number = Math.floor(nowMs / (windowMs / buckets));
    const held = this.#buckets[number % buckets] as Bucket;
    if (held.number === number) return held;
    const fresh = emptyBucket(number);
    this.#buckets[number % buckets] = fresh;
    return fresh;
  }
}

const emptyBucket = (number: number): Bucket => ({ number, reads: 0, writes: 0, throttled: 0, bytes: 0, ended: 0, latencyMs: 0 });
