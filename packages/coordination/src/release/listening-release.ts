/**
 * Waits for a signal that is pushed (article "Synchronizing multiple nodes", class ListeningRelease). Immediate and without storage
 * operations; who starts after the signal, or whose connection is lost when it comes, waits in vain. `Release` has neither weakness.
 */
import { type Clock, systemClock } from "../time/clock.ts";
import { type WaitOptions, withDeadline } from "./polling-release.ts";
import type { SignalChannel } from "./signal-channel.ts";

export class ListeningRelease {
  readonly #channel: SignalChannel;
  readonly #topic: string;
  readonly #clock: Clock;

  constructor(channel: SignalChannel, topic: string, options: { readonly clock?: Clock } = {}) {
    this.#channel = channel;
    this.#topic = topic;
    this.#clock = options.clock ?? systemClock;
  }

  /** Resolves with the first signal of the topic that arrives after the subscription stands. */
  async wait(options: WaitOptions = {}): Promise<void> {
    await withDeadline(this.#clock, `signal ${this.#topic}`, options, (signal) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const subscription = this.#channel.subscribe(this.#topic, resolve);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      return promise.finally(() => subscription.close());
    });
  }
}
