/**
 * Reads one range of one fragment: from the fragment's own file if that is a source, or computed from the same range of others, the fewest that
 * determine it. A source that fails, or is later than usual, does not hold the range up: others are asked beside it, and the first answers that
 * determine the range give it. The other calls are cancelled.
 *
 * Invariants:
 * - Lateness asks for as many more fragments as are missing without the late ones, at most two of which are given up at a time.
 * - While more than half of the sources that were asked are late, all are slow: the read waits once more before it asks others.
 * - Each wait of a range is twice as long as the one before.
 */
import type { Failed, Outcome } from "@stamp/base";
import { type CodingPlan, type Profile, repairPlan } from "@stamp/erasure";
import type { Clock, Timer } from "@stamp/ports";
import type { FragmentAt } from "./fragment-requests.ts";

/** File of a fragment, with its answers in this job. */
export interface Source {
  readonly at: FragmentAt;
  /** True if the node has no such fragment. It is not asked again. */
  gone: boolean;
  /** Number of failed reads since the last good one. */
  failures: number;
  /** Number of the step until which this source is asked only if the others are not enough. */
  restsUntil: number;
}

export interface StripeParts {
  readonly clock: Clock;
  readonly profile: Profile;
  /** Index of the fragment whose bytes are wanted. */
  readonly wanted: number;
  readonly sources: readonly Source[];
  /** Number of this step in the job. */
  readonly step: number;
  readonly late: LateLimit;
  /** Reads the range from one source. */
  read(source: Source, signal: AbortSignal): Promise<Outcome<Uint8Array>>;
}

/** Bytes of a range, or a plan that computes them from its sources' bytes. */
export type StripeFound =
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  | { readonly kind: "plan"; readonly plan: CodingPlan; readonly bytesOf: ReadonlyMap<number, Uint8Array> };

export interface StripeFailure {
  readonly last: Failed | undefined;
  /** True if a source had a bad chunk in the range: a shorter range may be determined. */
  readonly isDamaged: boolean;
}

/** Steps for which a source that failed, or was later than others asked after it, is not asked again if others are enough. */
const restSteps = 16;
/** Number of bad chunks in a row after which a source rests; one says nothing about the next ones. */
const badChunksMax = 3;
/** Sources that are taken for late at a time. More late ones at once are rather a sign that all nodes are slow. */
const lateAtOnce = 2;

/** Time after which an answer is late, in ms: at the start, at least, usually at most, and as a multiple of what answers took lately. */
const lateStartMs = 1_000;
const lateMinMs = 300;
const lateMaxMs = 2_500;
const lateTimes = 8;
/** However slow the nodes are, an answer is late only after this multiple of what answers took lately. */
const lateTimesMin = 2;
const learnShare = 0.2;

/** Time after which an answer is late. It grows with the time that answers of the job take, so that slow nodes are not asked for more. */
export class LateLimit {
  #tookMs = lateStartMs / lateTimes;

  /** Notes the time that an answer took, in milliseconds. */
  took(ms: number): void {
    this.#tookMs = this.#tookMs * (1 - learnShare) + ms * learnShare;
  }

  get ms(): number {
    return Math.max(lateMinMs, Math.min(lateMaxMs, this.#tookMs * lateTimes), this.#tookMs * lateTimesMin);
  }
}

export class StripeRead {
  readonly #parts: StripeParts;
  readonly #arrived = new Map<number, Uint8Array>();
  readonly #waiting = new Map<number, AbortController>();
  readonly #failed = new Set<number>();
  readonly #late = new Set<number>();
  /** Number of times that sources were late. */
  #waits = 0;
  #last: Failed | undefined;
  #isDamaged = false;
  #timer: Timer | undefined;
  #resolve: ((found: StripeFound | StripeFailure) => void) | undefined;
  #reject: (error: unknown) => void = () => {};

  constructor(parts: StripeParts) {
    this.#parts = parts;
  }

  run(): Promise<StripeFound | StripeFailure> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#goOn();
    });
  }

  #finish(found: StripeFound | StripeFailure): void {
    const resolve = this.#resolve;
    this.#resolve = undefined;
    this.#timer?.cancel();
    for (const controller of this.#waiting.values()) controller.abort();
    // A late source that answered before the others is as quick as they are.
    const { sources, step } = this.#parts;
    for (const source of sources) {
      const { index } = source.at;
      if (this.#late.has(index) && this.#waiting.has(index)) source.restsUntil = step + restSteps;
    }
    resolve?.(found);
  }

  /** Ends if what has arrived is enough, or asks for what is missing. */
  #goOn(): void {
    const { profile, wanted } = this.#parts;
    const bytes = this.#arrived.get(wanted);
    if (bytes !== undefined) {
      this.#finish({ kind: "bytes", bytes });
      return;
    }
    const plan = repairPlan(profile, [wanted], [...this.#arrived.keys()]);
    if (plan !== undefined) {
      this.#finish({ kind: "plan", plan, bytesOf: this.#arrived });
      return;
    }
    const missing = this.#missing();
    if (missing.length > 0) this.#ask(missing);
    else if (this.#waiting.size === 0) this.#finish({ last: this.#last, isDamaged: this.#isDamaged });
  }

  /** Sources to be asked now: the fewest that are enough with those that are on time, or all that are left. */
  #missing(): Source[] {
    const { profile, wanted, sources, step } = this.#parts;
    const open = sources.filter(({ gone, at }) => !gone && !this.#failed.has(at.index));
    const isAsked = ({ at }: Source): boolean => this.#arrived.has(at.index) || this.#waiting.has(at.index);
    const isOnTime = ({ at }: Source): boolean => !this.#late.has(at.index);
    const isRested = (source: Source): boolean => source.restsUntil <= step || isAsked(source);
    for (const group of [open.filter((each) => isOnTime(each) && isRested(each)), open.filter(isOnTime)]) {
      const own = group.find(({ at }) => at.index === wanted);
      if (own !== undefined) return isAsked(own) ? [] : [own];
      const ordered = [...group.filter(isAsked), ...group.filter((each) => !isAsked(each))];
      const plan = repairPlan(
        profile,
        [wanted],
        ordered.map(({ at }) => at.index),
      );
      if (plan !== undefined) return group.filter((each) => plan.sources.includes(each.at.index) && !isAsked(each));
    }
    return open.filter((each) => !isAsked(each));
  }

  #ask(sources: readonly Source[]): void {
    this.#wait();
    for (const source of sources) {
      const controller = new AbortController();
      this.#waiting.set(source.at.index, controller);
      void this.#timed(source, controller.signal).then((answer) => this.#answered(source, answer), this.#reject);
    }
  }

  async #timed(source: Source, signal: AbortSignal): Promise<Outcome<Uint8Array>> {
    const { clock, late } = this.#parts;
    const startedMs = clock.monotonicMs();
    const answer = await this.#parts.read(source, signal);
    if (answer.ok && this.#resolve !== undefined) late.took(clock.monotonicMs() - startedMs);
    return answer;
  }

  #wait(): void {
    const { clock, late } = this.#parts;
    this.#timer?.cancel();
    this.#timer = clock.after(late.ms * 2 ** this.#waits, () => this.#isLate());
  }

  #answered(source: Source, answer: Outcome<Uint8Array>): void {
    if (this.#resolve === undefined) return;
    const { index } = source.at;
    this.#waiting.delete(index);
    if (answer.ok) {
      source.failures = 0;
      this.#arrived.set(index, answer.value);
    } else {
      this.#failed.add(index);
      this.#last = answer;
      source.failures += 1;
      const { reason } = answer.failure;
      if (reason === "unknownExtent") source.gone = true;
      this.#isDamaged ||= reason === "damaged";
      if (reason !== "damaged" || source.failures >= badChunksMax) source.restsUntil = this.#parts.step + restSteps;
    }
    this.#goOn();
  }

  #isLate(): void {
    if (this.#resolve === undefined) return;
    // In the order in which they were asked.
    const late = [...this.#waiting.keys()].filter((index) => !this.#late.has(index));
    if (late.length === 0) return;
    this.#waits += 1;
    if (this.#waits === 1 && late.length > 1 && late.length > this.#arrived.size) {
      this.#wait();
      return;
    }
    for (const index of late.slice(0, lateAtOnce)) this.#late.add(index);
    this.#wait();
    this.#goOn();
  }
}

export const fragmentSourceOf = (at: FragmentAt): Source => ({ at, gone: false, failures: 0, restsUntil: 0 });
