/**
 * One read from one of several replicas: the first is asked, a second one too when the first has not answered within its usual p95
 * (hedging) or has failed; the first good answer wins and the others are cancelled. When two are silent the next one is asked, more slowly:
 * one intact replica is enough.
 */
import type { Failed, Failure, Outcome } from "@stamp/base";
import type { Clock, Timer } from "@stamp/ports";
import { HedgeBudget } from "./hedge-budget.ts";

const samplesMax = 64;
const addressesMax = 1_000;
const hedgeStartMs = 50;
const hedgeFloorMs = 5;
const hedgeCeilingMs = 250;
const learnShare = 0.1;
/** A node's measured time is believed for this long, in milliseconds. Then the node is asked again. */
const believedMs = 10_000;
/** Part of the first node's time below which another node's time makes that node go first. */
const quickerPart = 2 / 3;

/** Longest wait of a large read for a hedge that the budget does not allow, in milliseconds. */
const overdueMs = 1_000;

/** A read of more bytes than this is large. Its usual time is kept apart: small reads are many, and much quicker. */
const smallBytesMax = 256 * 1_024;

/** The last answers of one node to small, or to large reads. */
interface Latencies {
  readonly latenciesMs: number[];
  at: number;
  hedgeMs: number;
}

const noLatencies = (): Latencies => ({ latenciesMs: [], at: 0, hedgeMs: hedgeStartMs });

interface NodeHistory {
  readonly small: Latencies;
  readonly large: Latencies;
  /** Decays with every success. */
  failures: number;
  /** Moving average in milliseconds, with the time of its last value. */
  recentMs: number;
  learnedMs: number;
}

/** How extent nodes answered lately: whom to ask first, and how long to wait for it before asking a second one. */
export class NodeHistories {
  /** Budget of hedges of reads of fragments. */
  readonly hedges = new HedgeBudget();
  /** Budget of hedges of large reads from replicas. */
  readonly largeHedges = new HedgeBudget();
  readonly #nodes = new Map<string, NodeHistory>();

  #of(address: string): NodeHistory {
    let node = this.#nodes.get(address);
    if (node === undefined) {
      node = { small: noLatencies(), large: noLatencies(), failures: 0, recentMs: 0, learnedMs: Number.NEGATIVE_INFINITY };
      this.#nodes.set(address, node);
      if (this.#nodes.size > addressesMax) this.#nodes.delete(this.#nodes.keys().next().value as string);
    }
    return node;
  }

  /** Notes an answer; `bytes`: its size, 0 if not known. */
  succeeded(address: string, latencyMs: number, nowMs: number, bytes = 0): void {
    const node = this.#of(address);
    node.recentMs = nowMs - node.learnedMs > believedMs ? latencyMs : node.recentMs * (1 - learnShare) + latencyMs * learnShare;
    node.learnedMs = nowMs;
    node.failures = Math.floor(node.failures / 2);
    const known = node[sizeOf(bytes)];
    known.latenciesMs[known.at] = latencyMs;
    known.at = (known.at + 1) % samplesMax;
    if (known.latenciesMs.length >= 16 && known.at % 8 === 0) {
      const sorted = known.latenciesMs.toSorted((a, b) => a - b);
      const p95 = sorted[Math.floor(sorted.length * 0.95)] as number;
      known.hedgeMs = Math.min(Math.max(p95 * 1.5, hedgeFloorMs), hedgeCeilingMs);
    }
  }

  failed(address: string): void {
    const node = this.#of(address);
    node.failures = Math.min(node.failures + 1, 8);
  }

  /** Returns the time after which a read of this length is late at this node, in milliseconds. */
  hedgeMs(address: string, bytes = 0): number {
    return this.#nodes.get(address)?.[sizeOf(bytes)].hedgeMs ?? hedgeStartMs;
  }

  /**
   * Sorts by fewest failures, from `start` on; of the first two the one that answered quicker lately, because it is nearer or has less to do.
   * Only of two, so that not everybody goes to the quickest of all.
   */
  order(addresses: readonly string[], start: number, nowMs: number): string[] {
    const rotated = addresses.map((_, i) => addresses[(i + start) % addresses.length] as string);
    const failures = (address: string): number => this.failures(address);
    const [first, second, ...others] = rotated.sort((a, b) => failures(a) - failures(b));
    if (first === undefined || second === undefined) return rotated;
    const isSecondQuicker =
      failures(first) === failures(second) && this.#recentMs(second, nowMs) < quickerPart * this.#recentMs(first, nowMs);
    return isSecondQuicker ? [second, first, ...others] : rotated;
  }

  /** Returns the number of failures lately; halved by every success. */
  failures(address: string): number {
    return this.#nodes.get(address)?.failures ?? 0;
  }

  /** Sorts by fewest failures, then those that answered quickest lately. Those of which nothing is known come before them, to be known. */
  quickestFirst<T>(items: readonly T[], addressOf: (item: T) => string, nowMs: number): T[] {
    const recentMs = (item: T): number => {
      const known = this.#recentMs(addressOf(item), nowMs);
      return Number.isNaN(known) ? 0 : known;
    };
    return items.toSorted((a, b) => this.failures(addressOf(a)) - this.failures(addressOf(b)) || recentMs(a) - recentMs(b));
  }

  /** Returns the recent time of a node; NaN if not known, so that no comparison holds. */
  #recentMs(address: string, nowMs: number): number {
    const node = this.#nodes.get(address);
    return node === undefined || nowMs - node.learnedMs > believedMs ? Number.NaN : node.recentMs;
  }
}

const sizeOf = (bytes: number): "small" | "large" => (bytes > smallBytesMax ? "large" : "small");

export type ReplicaAttempt<T> = (address: string, timeoutMs: number, signal: AbortSignal) => Promise<Outcome<T>>;

/** True: the extent may be elsewhere by now. One that has too much to do says nothing about that. */
export const doubtsPlaces = ({ code }: Failure): boolean => code !== "resourceExhausted" && code !== "cancelled";

export interface RaceOptions {
  readonly deadlineMs: number;
  readonly signal: AbortSignal | undefined;
  /** True if the addresses were looked up for an earlier read, and may be old. */
  readonly isCached: boolean;
  /** Size of the answer, in bytes. Undefined: it is not known. */
  readonly bytes?: number | undefined;
}

/**
 * Decides when a read asks a second replica because the first one is late. A hedge of a large read costs as much as the read. When all nodes
 * are slow because there is much to read, hedging every large read would make them slower: so a budget bounds these hedges. One that gave the
 * answer is not counted: a silent node is read around as often as it takes.
 */
class Hedges {
  readonly #clock: Clock;
  readonly #budget: HedgeBudget | undefined;
  readonly #beganMs: number;
  #taken = 0;
  #isOverdue = false;
  /** Timer that ends this read's place among the reads without budget. */
  #place: Timer | undefined;

  constructor(clock: Clock, histories: NodeHistories, bytes: number | undefined) {
    this.#clock = clock;
    this.#budget = sizeOf(bytes ?? 0) === "large" ? histories.largeHedges : undefined;
    this.#beganMs = clock.monotonicMs();
    this.#budget?.read();
  }

  /** True if another replica may be asked now; false: ask again later. A read that is overdue may ask all of them. */
  may(): boolean {
    if (this.#budget === undefined || this.#isOverdue) return true;
    const nowMs = this.#clock.monotonicMs();
    if (this.#budget.take(nowMs)) {
      this.#taken++;
      return true;
    }
    if (nowMs - this.#beganMs < overdueMs) return false;
    this.#isOverdue = this.#budget.beginOverdue();
    // Where all replicas are silent, the read may last much longer, and others would never be overdue.
    if (this.#isOverdue) this.#place = this.#clock.after(overdueMs, () => this.#endPlace());
    return this.#isOverdue;
  }

  /** Notes that the read is over. `won`: a hedge gave the answer. `unjudged`: it was cancelled while the node before was silent. */
  end(result: "won" | "lost" | "unjudged"): void {
    this.#endPlace();
    if (result === "won") this.#budget?.won(this.#taken);
    if (result === "unjudged") this.#budget?.unjudged(this.#taken);
  }

  #endPlace(): void {
    if (this.#place === undefined) return;
    this.#place.cancel();
    this.#place = undefined;
    this.#budget?.endOverdue();
  }
}

/**
 * Returns the first good answer, or every failure. `addresses` is not empty. Cached addresses are in doubt when a node of them refuses: the
 * silent ones are then waited for as long as they usually take, and the reader looks the extent up again.
 */
export function raceReplicas<T>(
  clock: Clock,
  histories: NodeHistories,
  addresses: readonly string[],
  { deadlineMs, signal, isCached, bytes }: RaceOptions,
  attempt: ReplicaAttempt<T>,
): Promise<{ readonly answer: T } | { readonly failures: readonly Failed[] }> {
  return new Promise((resolve) => {
    const failures: Failed[] = [];
    const active = new Set<AbortController>();
    let next = 0;
    let done = false;
    let hedge: Timer | undefined;
    let isDoubted = false;
    const askedSilent = new Set<string>();
    const hedges = new Hedges(clock, histories, bytes);
    /** True if the caller went away while the node that was asked first was silent. */
    let isUnjudged = false;
    const cancelAll = (): void => {
      for (const controller of active) controller.abort();
    };
    const callerLeft = (): void => {
      isUnjudged = askedSilent.has(addresses[0] as string);
      cancelAll();
    };
    /** Ends the race; `answeredBy`: index of the replica that answered. */
    const finish = (result: { readonly answer: T } | { readonly failures: readonly Failed[] }, answeredBy = 0): void => {
      done = true;
      const isWon = addresses.slice(0, answeredBy).some((earlier) => askedSilent.has(earlier));
      hedges.end(isWon ? "won" : isUnjudged ? "unjudged" : "lost");
      hedge?.cancel();
      signal?.removeEventListener("abort", callerLeft);
      cancelAll();
      resolve(result);
    };
    const giveUpSilent = (): void => {
      for (const silent of askedSilent) histories.failed(silent);
      finish({ failures });
    };
    const giveUpIfLate = (): void => {
      hedge?.cancel();
      hedge = clock.after(Math.max(...[...askedSilent].map((silent) => histories.hedgeMs(silent, bytes))), giveUpSilent);
    };
    const launchLate = (againMs: number): void => {
      if (hedges.may()) launch();
      else hedge = clock.after(againMs, () => launchLate(againMs));
    };
    const launch = (): void => {
      const index = next++;
      const address = addresses[index] as string;
      const controller = new AbortController();
      active.add(controller);
      const startMs = clock.monotonicMs();
      hedge?.cancel();
      // Each silent replica makes the next one wait longer: a slow moment of all must not become three times the load.
      const hedgeMs = histories.hedgeMs(address, bytes) * 4 ** (active.size - 1);
      hedge = next < addresses.length ? clock.after(hedgeMs, () => launchLate(hedgeMs)) : undefined;
      askedSilent.add(address);
      if (isDoubted && next === addresses.length) giveUpIfLate();
      void attempt(address, Math.max(1, deadlineMs - startMs), controller.signal).then((outcome) => {
        active.delete(controller);
        if (done) return;
        askedSilent.delete(address);
        if (outcome.ok) {
          const nowMs = clock.monotonicMs();
          histories.succeeded(address, nowMs - startMs, nowMs, bytes);
          for (const silent of askedSilent) histories.failed(silent);
          finish({ answer: outcome.value }, index);
          return;
        }
        failures.push(outcome);
        isDoubted ||= isCached && doubtsPlaces(outcome.failure);
        if (!signal?.aborted) histories.failed(address);
        if (next < addresses.length && !signal?.aborted && clock.monotonicMs() < deadlineMs) launch();
        else if (active.size === 0) finish({ failures });
        else if (isDoubted) giveUpIfLate();
      });
    };
    signal?.addEventListener("abort", callerLeft, { once: true });
    launch();
    // Its caller went away while the replicas were looked up.
    if (signal?.aborted) callerLeft();
  });
}
