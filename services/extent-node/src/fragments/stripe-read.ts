/**
 * Reads one range of one fragment: from the fragment's own file if that is a source, or computed from the same range of others, the fewest that
 * determine it. A source that fails, or is later than usual, does not hold the range up: others are asked beside it, and the first answers that
 * determine the range give it. The other calls are cancelled.
 */
import type { Failed, Outcome } from "@stamp/base";
import { type Plan, type Profile, repairPlan } from "@stamp/erasure";
import type { Clock, Timer } from "@stamp/ports";
import type { FragmentAt } from "./fragment-requests.ts";

/** A fragment's file, and how it answered in this job. */
export interface Source {
  readonly at: FragmentAt;
  /** The node has no such fragment. It is not asked again. */
  gone: boolean;
  /** Number of failed reads since the last good one. */
  failures: number;
  /** Number of the step before which this source is asked only if the others are not enough. */
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
  /** Time after which answers are late, in ms. */
  readonly lateMs: number;
  /** Reads the range from one source. */
  read(source: Source, signal: AbortSignal): Promise<Outcome<Uint8Array>>;
}

/** Bytes of the range, or a plan that computes them with the bytes of its sources. */
export type StripeFound =
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  | { readonly kind: "plan"; readonly plan: Plan; readonly bytesOf: ReadonlyMap<number, Uint8Array> };

export interface StripeFailure {
  readonly last: Failed | undefined;
  /** A source had a bad chunk in the range: a shorter range may be determined. */
  readonly isDamaged: boolean;
}

/** Steps for which a source that failed or was late is not asked again if others are enough. */
const restSteps = 16;
/** A bad chunk says nothing about the next ones, but so many in a row do. */
const badChunksMax = 3;

export class StripeRead {
  readonly #parts: StripeParts;
  readonly #arrived = new Map<number, Uint8Array>();
  readonly #waiting = new Map<number, AbortController>();
  readonly #failed = new Set<number>();
  readonly #late = new Set<number>();
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
    const { clock, lateMs } = this.#parts;
    this.#timer?.cancel();
    this.#timer = clock.after(lateMs, () => this.#isLate());
    for (const source of sources) {
      const controller = new AbortController();
      this.#waiting.set(source.at.index, controller);
      void this.#parts.read(source, controller.signal).then((answer) => this.#answered(source, answer), this.#reject);
    }
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
    for (const index of this.#waiting.keys()) {
      this.#late.add(index);
      const source = this.#parts.sources.find(({ at }) => at.index === index);
      if (source !== undefined) source.restsUntil = this.#parts.step + restSteps;
    }
    this.#goOn();
  }
}

export const sourceOf = (at: FragmentAt): Source => ({ at, gone: false, failures: 0, restsUntil: 0 });
