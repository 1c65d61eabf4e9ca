/**
 * Releases processes that wait for one event: flag and signal together, the combination that the article "Synchronizing multiple nodes"
 * leaves to its reader.
 *
 *   release():  set the flag, then publish the signal
 *   wait():     subscribe ──▶ look at the flag ──▶ signal, or the next look
 *
 * Invariants:
 * - The flag is the truth. Who starts late, or lost its connection, sees it at the next look.
 * - The subscription stands before the first look and after each new connection there is another look, so that no signal falls between.
 */
import { requireNumber } from "../errors.ts";
import { jitteredMs } from "../time/backoff.ts";
import { type Clock, sleep, systemClock, withTimeout } from "../time/clock.ts";
import type { GlobalFlag } from "./global-flag.ts";
import { type PollingOptions, PollingRelease, type WaitOptions, withDeadline } from "./polling-release.ts";
import type { SignalChannel } from "./signal-channel.ts";

export interface ReleaseOptions extends PollingOptions {
  /** Topic of the signal. Default: the name of the flag. */
  readonly topic?: string;
  /** Time between two looks at the flag while the channel is connected, in milliseconds. Default 60,000. */
  readonly connectedIntervalMs?: number;
  /** Longest time for setting or clearing the flag, in milliseconds. Default 30,000. */
  readonly setTimeoutMs?: number;
}

export class Release {
  readonly #flag: GlobalFlag;
  readonly #channel: SignalChannel;
  readonly #topic: string;
  readonly #polling: PollingRelease;
  readonly #intervalMs: number;
  readonly #connectedIntervalMs: number;
  readonly #setTimeoutMs: number;
  readonly #onError: (error: unknown) => void;
  readonly #clock: Clock;

  constructor(flag: GlobalFlag, channel: SignalChannel, options: ReleaseOptions = {}) {
    const { connectedIntervalMs = 60_000, intervalMs = 2_500, setTimeoutMs = 30_000 } = options;
    requireNumber("connectedIntervalMs", connectedIntervalMs, 1, 86_400_000);
    requireNumber("setTimeoutMs", setTimeoutMs, 1, 3_600_000);
    this.#flag = flag;
    this.#channel = channel;
    this.#topic = options.topic ?? flag.name;
    this.#polling = new PollingRelease(flag, options);
    this.#intervalMs = intervalMs;
    this.#connectedIntervalMs = connectedIntervalMs;
    this.#setTimeoutMs = setTimeoutMs;
    this.#onError = options.onError ?? (() => {});
    this.#clock = options.clock ?? systemClock;
  }

  /**
   * Releases everybody who waits and everybody who will. Rejects if the flag can't be set, with a TimeoutError if the service does not
   * answer (the flag may be set then; call it again). A signal that fails only delays.
   */
  async release(signal?: AbortSignal): Promise<void> {
    await withTimeout(this.#clock, this.#setTimeoutMs, signal, (each) => this.#flag.set(each));
    try {
      await this.#channel.publish(this.#topic, signal);
    } catch (error) {
      signal?.throwIfAborted();
      this.#onError(error);
    }
  }

  /** Lets later waits wait again. */
  async reset(signal?: AbortSignal): Promise<void> {
    await withTimeout(this.#clock, this.#setTimeoutMs, signal, (each) => this.#flag.clear(each));
  }

  /** Resolves when the flag is set or the signal arrives. Errors as of `PollingRelease.wait`. */
  async wait(options: WaitOptions = {}): Promise<void> {
    await withDeadline(this.#clock, this.#flag.name, options, async (signal) => {
      let connected = false;
      let released = false;
      /** Aborted to end the pause between two looks. */
      let pause = new AbortController();
      const subscription = this.#channel.subscribe(
        this.#topic,
        () => {
          released = true;
          pause.abort();
        },
        (now) => {
          connected = now;
          // A signal may have passed while there was no connection; and without one the looks come more often.
          pause.abort();
        },
      );
      // Signals that came while subscribing are from before the first look.
      pause = new AbortController();
      try {
        while (!released && !(await this.#polling.look(signal)) && !released) {
          // A change during the look ended a pause that had not begun: look again at once.
          if (!pause.signal.aborted) {
            const pauseMs = jitteredMs(this.#clock, connected ? this.#connectedIntervalMs : this.#intervalMs, 0.1);
            await sleep(this.#clock, pauseMs, AbortSignal.any([signal, pause.signal])).catch(() => {});
          }
          signal.throwIfAborted();
          pause = new AbortController();
        }
      } finally {
        subscription.close();
      }
    });
  }
}
