/**
 * Listeners of signals (`stamp.v1.Signals`), in memory: who publishes a topic of an account reaches everybody who listens to it at this
 * front-end now.
 *
 * Invariants:
 * - A listener holds one number, however many signals come before it reads: a slow one costs no memory and delays nobody.
 * - The number of listeners is bounded; one account holds at most half of them.
 */

/** Longest topic, in characters. */
const topicCharactersMax = 1_024;

interface Listener {
  /** Number of signals since the listener read last. */
  signals: number;
  wake: (() => void) | undefined;
}

export interface Subscription {
  /** Waits for signals and returns how many there were since the last call; 0 when `signal` was aborted or all subscriptions end. */
  next(signal: AbortSignal): Promise<number>;
  close(): void;
}

export class Signals {
  readonly #listenersMax: number;
  /** Keyed by account and topic. */
  readonly #topics = new Map<string, Map<string, Set<Listener>>>();
  readonly #byAccount = new Map<string, number>();
  #listeners = 0;
  #published = 0;
  #ended = false;

  constructor(listenersMax: number) {
    this.#listenersMax = listenersMax;
  }

  get figures(): { readonly listeners: number; readonly published: number } {
    return { listeners: this.#listeners, published: this.#published };
  }

  /** True once `end` was called. */
  get ended(): boolean {
    return this.#ended;
  }

  /**
   * Wakes every listener, because the process stops: a subscription has no end of its own, and would hold up the stop for as long as calls
   * in progress may take.
   */
  end(): void {
    this.#ended = true;
    for (const topics of this.#topics.values())
      for (const listeners of topics.values()) for (const listener of listeners) listener.wake?.();
  }

  static isTopic(topic: string): boolean {
    return topic !== "" && topic.length <= topicCharactersMax;
  }

  /** Returns the number of listeners that the signal reached. */
  publish(account: string, topic: string): number {
    this.#published++;
    const listeners = this.#topics.get(account)?.get(topic);
    if (listeners === undefined) return 0;
    for (const listener of listeners) {
      listener.signals++;
      listener.wake?.();
    }
    return listeners.size;
  }

  /** Registers a listener; undefined if there are too many. */
  subscribe(account: string, topic: string): Subscription | undefined {
    const mine = this.#byAccount.get(account) ?? 0;
    if (this.#listeners >= this.#listenersMax || mine >= Math.max(1, Math.floor(this.#listenersMax / 2))) return undefined;
    const topics = this.#topics.get(account) ?? new Map<string, Set<Listener>>();
    const listeners = topics.get(topic) ?? new Set<Listener>();
    const listener: Listener = { signals: 0, wake: undefined };
    this.#topics.set(account, topics.set(topic, listeners.add(listener)));
    this.#byAccount.set(account, mine + 1);
    this.#listeners++;
    return {
      next: (signal) => this.#next(listener, signal),
      close: () => {
        if (!listeners.delete(listener)) return;
        this.#listeners--;
        const left = (this.#byAccount.get(account) ?? 1) - 1;
        if (left === 0) this.#byAccount.delete(account);
        else this.#byAccount.set(account, left);
        if (listeners.size === 0) topics.delete(topic);
        if (topics.size === 0) this.#topics.delete(account);
      },
    };
  }

  async #next(listener: Listener, signal: AbortSignal): Promise<number> {
    if (listener.signals === 0 && !signal.aborted && !this.#ended) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const aborted = () => resolve();
      listener.wake = resolve;
      signal.addEventListener("abort", aborted, { once: true });
      await promise;
      signal.removeEventListener("abort", aborted);
      listener.wake = undefined;
    }
    const { signals } = listener;
    listener.signals = 0;
    return signal.aborted ? 0 : signals;
  }
}
