/**
 * Watches a stamp for the console: asks for its facts in turns, keeps the figures of the last hour and the last events, and wakes the pages
 * that follow.
 *
 * Invariants:
 * - One turn at a time; a turn without an answer ends by the deadlines of `gather`. While no page looks, turns are five seconds apart.
 * - Memory is bounded: 3,600 figures, 500 events, one snapshot, and the ranges of the last answer.
 */
import type { Point, Snapshot, StampEvent } from "@stamp/console-page";
import type { StampFacts } from "../health/facts.ts";
import { eventsBetween } from "./events.ts";
import { type Counted, snapshotOf } from "./snapshot.ts";

const watchedEveryMs = 1_000;
const idleEveryMs = 5_000;
const pointsMax = 3_600;
const eventsMax = 500;

export interface LiveStampOptions {
  /** Asks every process once. May throw: no stamp runs, or its configuration can't be read. */
  readonly ask: () => Promise<StampFacts>;
  readonly wallMs: () => number;
  /** Resolves after the time, or at once when the signal is aborted. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

export class LiveStamp {
  readonly #options: LiveStampOptions;
  readonly #points: Point[] = [];
  readonly #events: StampEvent[] = [];
  readonly #followers = new Set<() => void>();
  readonly #ended = new AbortController();
  #wake = new AbortController();
  #facts: StampFacts | undefined;
  #snapshot: Snapshot | undefined;
  #counted: Counted | undefined;
  #eventNumber = 0;
  #turn = 0;

  constructor(options: LiveStampOptions) {
    this.#options = options;
  }

  /** Number of the last turn that has ended; 0 before the first. */
  get turn(): number {
    return this.#turn;
  }

  get snapshot(): Snapshot | undefined {
    return this.#snapshot;
  }

  get facts(): StampFacts | undefined {
    return this.#facts;
  }

  /** Figures of the last hour, the oldest first. */
  get points(): readonly Point[] {
    return this.#points;
  }

  /** Events with a higher number, the oldest first. */
  eventsAfter(number: number): StampEvent[] {
    return this.#events.filter((each) => each.number > number);
  }

  /** Calls back after every turn until the returned function is called. The next turn begins within a second. */
  follow(told: () => void): () => void {
    this.#followers.add(told);
    this.#wake.abort();
    return () => this.#followers.delete(told);
  }

  /** Watches until `stop`. Never throws. */
  async run(): Promise<void> {
    const { signal } = this.#ended;
    while (!signal.aborted) {
      await this.look();
      const wake = new AbortController();
      this.#wake = wake;
      await this.#options.sleep(watchedEveryMs, signal);
      if (this.#followers.size === 0) await this.#options.sleep(idleEveryMs - watchedEveryMs, AbortSignal.any([signal, wake.signal]));
    }
  }

  stop(): void {
    this.#ended.abort();
  }

  /** One turn. Never throws. */
  async look(): Promise<void> {
    const before = this.#snapshot;
    const snapshot = await this.#ask();
    this.#snapshot = snapshot;
    this.#points.push(snapshot.figures);
    if (this.#points.length > pointsMax) this.#points.shift();
    for (const happened of this.#happened(before, snapshot)) {
      this.#events.push({ ...happened, number: ++this.#eventNumber, atMs: snapshot.atMs });
    }
    if (this.#events.length > eventsMax) this.#events.splice(0, this.#events.length - eventsMax);
    this.#turn++;
    for (const told of this.#followers) told();
  }

  /** Two answers that can't be compared, e.g. of another release, cost the events between them, not the console. */
  #happened(before: Snapshot | undefined, now: Snapshot): Omit<StampEvent, "number" | "atMs">[] {
    try {
      return eventsBetween(before, now);
    } catch (error) {
      return [{ kind: "bad", subject: "", text: `what has changed can't be told: ${(error as Error).message}` }];
    }
  }

  async #ask(): Promise<Snapshot> {
    try {
      const facts = await this.#options.ask();
      const { snapshot, counted } = snapshotOf(facts, this.#counted);
      this.#facts = facts;
      this.#counted = counted;
      return snapshot;
    } catch (error) {
      this.#facts = undefined;
      this.#counted = undefined;
      return absentSnapshot(this.#options.wallMs(), (error as Error).message);
    }
  }
}

const unknown = {
  requestsPerSecond: null,
  errorsPerSecond: null,
  writtenPerSecond: null,
  readPerSecond: null,
  p50Ms: null,
  p99Ms: null,
} as const;

const absentSnapshot = (atMs: number, sentence: string): Snapshot => ({
  atMs,
  state: "absent",
  sentence,
  findings: [],
  dataDir: "",
  endpoints: [],
  processes: [],
  nodes: [],
  repair: [],
  latency: [],
  figures: { atMs, ...unknown },
});
