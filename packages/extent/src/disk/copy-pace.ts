/**
 * How long copies for repair rest between their steps, so that clients' appends take what they take without them. Pure: what happens comes
 * in with its time, the length of a rest goes out.
 *
 * No figure of a disk or a machine is configured. What is usual is learned from appends that met no step of a copy (there are some in every
 * rest), what it is now from those that did. While the latter take much longer, each rest is twice the one before; when they do not, rests
 * become shorter again, down to as long as the step itself. A copy that is behind its lowest rate does not rest: it is there to end.
 */
import { assert } from "@stamp/base";

export interface CopyPaceLimits {
  /** Longest pause, in milliseconds. */
  readonly restMsMax: number;
  /** Least rate of one copy: a slower copy does not pause. */
  readonly bytesPerSecondMin: number;
}

export const defaultCopyPaceLimits: CopyPaceLimits = { restMsMax: 250, bytesPerSecondMin: 4 * 1024 * 1024 };

/** Factor over the usual time from which on an append beside a step counts as slowed down. */
const slowedTimes = 1.5;
const slowedMs = 1;
/** Bound of a rest, as a multiple of the step before it. */
const timesMax = 16;
const learnShare = 0.1;
/** Appends that must have been seen beside steps before the rests change again. */
const samplesMin = 4;

export interface CopyProgress {
  /** Time of the last step, in milliseconds. */
  readonly stepMs: number;
  /** Time of the whole copy so far, pauses included, in milliseconds. */
  readonly elapsedMs: number;
  readonly copiedBytes: number;
}

export class CopyPace {
  readonly #limits: CopyPaceLimits;
  #inHand = 0;
  #endedMs = Number.NEGATIVE_INFINITY;
  #usualMs: number | undefined;
  #besideMs: number | undefined;
  #samples = 0;
  #times = 1;

  constructor(limits: CopyPaceLimits = defaultCopyPaceLimits) {
    this.#limits = limits;
  }

  /** For people: what appends take without and beside copies, and how many times its step a rest is. */
  get facts(): Readonly<Record<string, number>> {
    const rounded = (ms: number | undefined): number => Math.round((ms ?? 0) * 10) / 10;
    return { usualMs: rounded(this.#usualMs), besideMs: rounded(this.#besideMs), restTimes: rounded(this.#times) };
  }

  stepBegan(): void {
    this.#inHand += 1;
  }

  stepEnded(nowMs: number): void {
    assert(this.#inHand > 0, "a step of a copy ends once");
    this.#inHand -= 1;
    this.#endedMs = nowMs;
  }

  /** Notes that an append that came then is durable now. */
  appendDurable(arrivedMs: number, nowMs: number): void {
    const tookMs = nowMs - arrivedMs;
    if (this.#inHand === 0 && this.#endedMs < arrivedMs) this.#usualMs = learned(this.#usualMs, tookMs);
    else {
      this.#besideMs = learned(this.#besideMs, tookMs);
      this.#samples += 1;
    }
  }

  /** Returns the rest after a step while clients use the node, in milliseconds. */
  restMs({ stepMs, elapsedMs, copiedBytes }: CopyProgress): number {
    if (this.#samples >= samplesMin) {
      this.#times = this.#isSlowed() ? Math.min(this.#times * 2, timesMax) : Math.max(this.#times * 0.75, 1);
      this.#samples = 0;
    }
    const mayTakeMs = (copiedBytes * 1_000) / this.#limits.bytesPerSecondMin;
    return Math.max(0, Math.min(stepMs * this.#times, this.#limits.restMsMax, mayTakeMs - elapsedMs));
  }

  #isSlowed(): boolean {
    return this.#usualMs !== undefined && this.#besideMs !== undefined && this.#besideMs > slowedTimes * this.#usualMs + slowedMs;
  }
}

const learned = (known: number | undefined, ms: number): number => (known === undefined ? ms : known * (1 - learnShare) + ms * learnShare);
