/**
 * The load of one range as its server sees it: rates over the last seconds, and where the requests went. Cheap enough for every request.
 * And that of the whole server.
 */
import { partitionStart } from "@stamp/objects";
import type { Clock, World } from "@stamp/ports";

const windowMs = 10_000;
const buckets = 10;
const samplesMax = 1_024;

export interface LoadFigures {
  /** Reads per second over the last 10 s. */
  readonly readsPerSecond: number;
  readonly writesPerSecond: number;
  readonly throttledPerSecond: number;
  /** Bytes of rows and blob data that requests brought, per second. */
  readonly bytesInPerSecond: number;
  /** Bytes of rows that were read for requests, per second. Blob data is read past this server. */
  readonly bytesOutPerSecond: number;
  /** Mean latency of the requests that ended, in milliseconds. */
  readonly latencyMs: number;
  /** Number of requests in progress. */
  readonly pending: number;
}

/** Counted since the range was loaded, or since the server started. */
export interface LoadTotals {
  readonly reads: number;
  readonly writes: number;
  readonly throttled: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly ended: number;
  /** Sum of the times of ended operations, in milliseconds. */
  readonly latencyMs: number;
}

type Counted = { -readonly [name in keyof LoadTotals]: number };

interface Bucket extends Counted {
  number: number;
}

export class RangeLoad {
  readonly #clock: Clock;
  readonly #buckets: Bucket[] = Array.from({ length: buckets }, () => emptyBucket(-1));
  /** Keys of the last requests, the oldest overwritten. */
  readonly #samples: Uint8Array[] = [];
  readonly #sinceMs: number;
  readonly #totals: Counted = noCounts();
  readonly #whole: Counted;
  #at = 0;
  #pending = 0;

  readonly #parentsWritten: boolean;

  /**
   * `whole` counts what all ranges of the server did, those too that it has no more. `parentsWritten`: it came to be here of ranges that
   * were being written to.
   */
  constructor(clock: Clock, whole: Counted = noCounts(), parentsWritten = false) {
    this.#clock = clock;
    this.#whole = whole;
    this.#parentsWritten = parentsWritten;
    this.#sinceMs = clock.monotonicMs();
  }

  get ageMs(): number {
    return this.#clock.monotonicMs() - this.#sinceMs;
  }

  /** Whether somebody writes to it now: over the last 10 s, those included in which its keys were its parents'. */
  get isWritten(): boolean {
    return this.figures.writesPerSecond > 0 || (this.#parentsWritten && this.ageMs < windowMs);
  }

  /** Admits a request that waited since `sinceMs`. The returned function is called at its end. */
  begin(kind: "read" | "write", key: Uint8Array, sinceMs: number = this.#clock.monotonicMs()): () => void {
    this.#add(kind === "read" ? "reads" : "writes", 1);
    this.#samples[this.#at] = key;
    this.#at = (this.#at + 1) % samplesMax;
    this.#pending++;
    return () => {
      this.#pending--;
      this.#add("ended", 1);
      this.#add("latencyMs", this.#clock.monotonicMs() - sinceMs);
    };
  }

  /** Counts bytes of a request under way. */
  moved(inBytes: number, outBytes: number): void {
    this.#add("bytesIn", inBytes);
    this.#add("bytesOut", outBytes);
  }

  throttled(): void {
    this.#add("throttled", 1);
  }

  get totals(): LoadTotals {
    return { ...this.#totals };
  }

  #add(name: keyof LoadTotals, by: number): void {
    this.#bucket(this.#clock.monotonicMs())[name] += by;
    this.#totals[name] += by;
    this.#whole[name] += by;
  }

  get figures(): LoadFigures {
    const current = Math.floor(this.#clock.monotonicMs() / (windowMs / buckets));
    const sum = emptyBucket(0);
    for (const bucket of this.#buckets) {
      if (bucket.number <= current - buckets) continue;
      sum.reads += bucket.reads;
      sum.writes += bucket.writes;
      sum.throttled += bucket.throttled;
      sum.bytesIn += bucket.bytesIn;
      sum.bytesOut += bucket.bytesOut;
      sum.ended += bucket.ended;
      sum.latencyMs += bucket.latencyMs;
    }
    const seconds = windowMs / 1_000;
    return {
      readsPerSecond: sum.reads / seconds,
      writesPerSecond: sum.writes / seconds,
      throttledPerSecond: sum.throttled / seconds,
      bytesInPerSecond: sum.bytesIn / seconds,
      bytesOutPerSecond: sum.bytesOut / seconds,
      latencyMs: sum.ended === 0 ? 0 : sum.latencyMs / sum.ended,
      pending: this.#pending,
    };
  }

  /** Returns where the rows of each of the last requests' PartitionName start, in no order. */
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

const emptyBucket = (number: number): Bucket => ({ number, ...noCounts() });

const noCounts = (): Counted => ({
  reads: 0,
  writes: 0,
  throttled: 0,
  bytesIn: 0,
  bytesOut: 0,
  ended: 0,
  latencyMs: 0,
});

export interface ServerFigures extends LoadFigures {
  /** Processors that the process used over the last seconds: 1 is one core; 0: not known. */
  readonly processors: number;
  /** Bytes of rows in all ranges of the server. */
  readonly rowBytes: number;
}

export interface OneRange extends LoadFigures {
  /** Memory table and checkpoints. */
  readonly rowBytes: number;
}

/** Load of everything that a server serves. */
export class ServerLoad {
  readonly #world: Pick<World, "clock" | "cpuMs">;
  /** Totals of all ranges, also of former ones. */
  readonly totals: Counted = noCounts();
  /** CPU time at moments of the last seconds, a second apart. */
  readonly #moments: { readonly atMs: number; readonly cpuMs: number }[] = [];

  constructor(world: Pick<World, "clock" | "cpuMs">) {
    this.#world = world;
  }

  /** Returns the figures of the server. CPU is the use since the call before, about a second ago. */
  figures(ranges: readonly OneRange[]): ServerFigures {
    const sum = (of: (one: OneRange) => number): number => ranges.reduce((total, one) => total + of(one), 0);
    const requests = sum((one) => one.readsPerSecond + one.writesPerSecond);
    const waited = sum((one) => one.latencyMs * (one.readsPerSecond + one.writesPerSecond));
    return {
      readsPerSecond: sum((one) => one.readsPerSecond),
      writesPerSecond: sum((one) => one.writesPerSecond),
      throttledPerSecond: sum((one) => one.throttledPerSecond),
      bytesInPerSecond: sum((one) => one.bytesInPerSecond),
      bytesOutPerSecond: sum((one) => one.bytesOutPerSecond),
      latencyMs: requests === 0 ? 0 : waited / requests,
      pending: sum((one) => one.pending),
      processors: this.#processors(),
      rowBytes: sum((one) => one.rowBytes),
    };
  }

  #processors(): number {
    const { clock, cpuMs } = this.#world;
    if (cpuMs === undefined) return 0;
    const now = { atMs: clock.monotonicMs(), cpuMs: cpuMs() };
    while (this.#moments.length > 1 && now.atMs - (this.#moments[1]?.atMs ?? 0) >= windowMs) this.#moments.shift();
    const first = this.#moments[0];
    const last = this.#moments.at(-1);
    if (last === undefined || now.atMs - last.atMs >= windowMs / buckets) this.#moments.push(now);
    if (first === undefined || now.atMs <= first.atMs) return 0;
    return (now.cpuMs - first.cpuMs) / (now.atMs - first.atMs);
  }
}
