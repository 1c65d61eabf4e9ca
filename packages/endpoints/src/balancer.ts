/**
 * Chooses among private endpoints without a proxy and without a central controller: asks the nodes themselves (article "Load balancing
 * private endpoints on worker roles"). The machine `Ring` decides; this file asks.
 *
 * Invariants:
 * - A no, an error and no answer in time are the same: the next node is asked.
 * - One round of questions at a time; all who resolve meanwhile wait for it.
 * - When no node says yes, callers get that outcome at once until the back-off is over, so that unavailable nodes are not flooded.
 */
import { Ring } from "./ring.ts";
import { type BalancerClock, requireNumber, systemClock, UsageError } from "./time.ts";

export interface BalancerOptions<N extends string> {
  /** Addresses of the nodes. */
  readonly nodes: readonly N[];
  /** Number of this caller among its like, from 0: callers with different numbers begin at different nodes. */
  readonly ordinal: number;
  /** Asks a node if it takes calls. A rejection counts as no. */
  readonly isAvailable: (node: N, signal: AbortSignal) => Promise<boolean>;
  /** Time for which a yes is good, in milliseconds. Default 5,000, as in the article. */
  readonly cacheMs?: number;
  /** Share by which that time is moved at random, so that callers do not ask together. Default 0.2. */
  readonly jitter?: number;
  /** Longest time for one answer, in milliseconds. Default 1,000. */
  readonly deadlineMs?: number;
  /** First and longest time between two rounds in which nobody said yes, in milliseconds. Default 100 and 5,000. */
  readonly backoffFirstMs?: number;
  readonly backoffMaxMs?: number;
  readonly clock?: BalancerClock;
}

export type Resolution<N> =
  | { readonly kind: "node"; readonly node: N }
  /** No node says that it is available. Ask again after the time. */
  | { readonly kind: "none"; readonly retryAfterMs: number };

/** Error: no node took the call. */
export class NoNodeAvailableError extends Error {
  override readonly name = "NoNodeAvailableError";
  readonly retryAfterMs: number;

  constructor(retryAfterMs: number, options?: ErrorOptions) {
    super(`no node is available; try again in ${Math.ceil(retryAfterMs)} ms`, options);
    this.retryAfterMs = retryAfterMs;
  }
}

export interface NodeCounters {
  /** Times that the node was given to a caller. */
  given: number;
  yes: number;
  no: number;
  errors: number;
  timeouts: number;
}

type Answer = "yes" | "no" | "errors" | "timeouts";

export class EndpointBalancer<N extends string = string> {
  readonly #ring: Ring<N>;
  readonly #clock: BalancerClock;
  readonly #isAvailable: BalancerOptions<N>["isAvailable"];
  readonly #cacheMs: number;
  readonly #jitter: number;
  readonly #deadlineMs: number;
  readonly #backoff: { readonly firstMs: number; readonly maxMs: number };
  readonly #counters = new Map<N, NodeCounters>();
  #rounds = 0;
  #round: Promise<Resolution<N>> | undefined;
  #failedRounds = 0;
  #restUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: BalancerOptions<N>) {
    const { cacheMs = 5_000, jitter = 0.2, deadlineMs = 1_000, backoffFirstMs = 100, backoffMaxMs = 5_000 } = options;
    if (!Number.isInteger(options.ordinal) || options.ordinal < 0) {
      throw new UsageError(`ordinal is ${options.ordinal}; give this caller's number among its like, from 0`);
    }
    requireNumber("cacheMs", cacheMs, 0, 86_400_000);
    requireNumber("jitter", jitter, 0, 0.9);
    requireNumber("deadlineMs", deadlineMs, 1, 600_000);
    requireNumber("backoffFirstMs", backoffFirstMs, 1, 600_000);
    requireNumber("backoffMaxMs", backoffMaxMs, backoffFirstMs, 600_000);
    this.#ring = new Ring(options.nodes, options.ordinal);
    this.#clock = options.clock ?? systemClock;
    this.#isAvailable = options.isAvailable;
    this.#cacheMs = cacheMs;
    this.#jitter = jitter;
    this.#deadlineMs = deadlineMs;
    this.#backoff = { firstMs: backoffFirstMs, maxMs: backoffMaxMs };
  }

  /** Returns the node to call, if one said yes a short time ago; undefined if nodes must be asked. Asks nobody and allocates nothing. */
  current(): N | undefined {
    const node = this.#ring.current(this.#clock.monotonicMs());
    if (node !== undefined) this.#counter(node).given++;
    return node;
  }

  /** Returns the node to call. Never rejects. */
  async resolve(): Promise<Resolution<N>> {
    const node = this.current();
    if (node !== undefined) return { kind: "node", node };
    const restMs = this.#restUntilMs - this.#clock.monotonicMs();
    if (restMs > 0 && this.#round === undefined) return { kind: "none", retryAfterMs: restMs };
    this.#round ??= this.#ask().finally(() => {
      this.#round = undefined;
    });
    const resolution = await this.#round;
    if (resolution.kind === "node") this.#counter(resolution.node).given++;
    return resolution;
  }

  /**
   * Runs a call against the node. If it fails and `isNodesFault` says that the node did not do it, the call goes to the next node, at most
   * once to each. Rejects with the call's error, or with a NoNodeAvailableError.
   */
  async call<T>(work: (node: N) => Promise<T>, isNodesFault: (error: unknown) => boolean): Promise<T> {
    let last: unknown;
    const tried = new Set<N>();
    for (;;) {
      const resolution = await this.resolve();
      if (resolution.kind === "none") throw new NoNodeAvailableError(resolution.retryAfterMs, { cause: last });
      const node = tried.has(resolution.node) ? await this.#another(tried) : resolution.node;
      if (node === undefined) break;
      tried.add(node);
      try {
        return await work(node);
      } catch (error) {
        if (!isNodesFault(error)) throw error;
        last = error;
        this.reportFailed(node);
      }
    }
    throw new NoNodeAvailableError(this.#backoff.firstMs, { cause: last });
  }

  /** Returns a node that says yes and was not tried: a call that failed slowly comes here, when the time of its first node's rest is over. */
  async #another(tried: ReadonlySet<N>): Promise<N | undefined> {
    for (const node of this.#ring.order(this.#clock.monotonicMs())) {
      if (tried.has(node) || !(await this.#yes(node)) || !this.#choose(node)) continue;
      this.#counter(node).given++;
      return node;
    }
    return undefined;
  }

  /** Tells that a call to the node failed: this caller keeps from it for the cache time, also if it says that it is available. */
  reportFailed(node: N): void {
    this.#ring.rest(node, this.#clock.monotonicMs() + this.#cacheMs);
  }

  /** Keeps this caller from a node for a time. Other callers are not told: for that the node itself must say no. */
  disableNode(node: N, forMs: number): void {
    requireNumber("forMs", forMs, 0, Number.MAX_SAFE_INTEGER);
    if (!this.#ring.disable(node, this.#clock.monotonicMs() + forMs)) throw new UsageError(`there is no node ${node}`);
    this.#restUntilMs = Number.NEGATIVE_INFINITY;
  }

  enableNode(node: N): void {
    this.disableNode(node, 0);
  }

  /** Replaces the nodes, in an order that is the same for all callers. */
  setNodes(nodes: readonly N[]): void {
    this.#ring.set(nodes);
    this.#failedRounds = 0;
    this.#restUntilMs = Number.NEGATIVE_INFINITY;
    for (const node of this.#counters.keys()) if (!nodes.includes(node)) this.#counters.delete(node);
  }

  get nodes(): readonly N[] {
    return this.#ring.nodes;
  }

  /** Counters since the start: rounds of questions, and by node. */
  counters(): { readonly rounds: number; readonly nodes: Readonly<Record<string, Readonly<NodeCounters>>> } {
    return { rounds: this.#rounds, nodes: Object.fromEntries([...this.#counters].map(([node, counted]) => [node, { ...counted }])) };
  }

  async #ask(): Promise<Resolution<N>> {
    this.#rounds++;
    const { preferred, last } = this.#ring;
    const order = this.#ring.order(this.#clock.monotonicMs());
    // A preferred node that said no, or hangs, must not delay those who have another one: that one is asked at the same time.
    if (last !== undefined && last !== preferred && order.includes(last)) {
      const returning = preferred !== undefined && order.includes(preferred) ? this.#yes(preferred) : Promise.resolve(false);
      if ((await this.#yes(last)) && this.#choose(last)) {
        void returning.then((yes) => {
          if (yes && preferred !== undefined) this.#choose(preferred);
        });
        return { kind: "node", node: last };
      }
      if ((await returning) && preferred !== undefined && this.#choose(preferred)) return { kind: "node", node: preferred };
      return await this.#askInTurn(order.filter((node) => node !== preferred && node !== last));
    }
    return await this.#askInTurn(order);
  }

  async #askInTurn(order: readonly N[]): Promise<Resolution<N>> {
    for (const node of order) {
      // Chosen only if it was not removed or disabled meanwhile.
      if ((await this.#yes(node)) && this.#choose(node)) return { kind: "node", node };
    }
    const boundMs = Math.min(this.#backoff.maxMs, this.#backoff.firstMs * 2 ** Math.min(this.#failedRounds++, 30));
    const retryAfterMs = boundMs * (1 - this.#jitter * this.#clock.random());
    this.#restUntilMs = this.#clock.monotonicMs() + retryAfterMs;
    return { kind: "none", retryAfterMs };
  }

  #choose(node: N): boolean {
    const nowMs = this.#clock.monotonicMs();
    const forMs = this.#cacheMs * (1 + this.#jitter * (2 * this.#clock.random() - 1));
    if (!this.#ring.choose(node, nowMs, nowMs + forMs)) return false;
    this.#failedRounds = 0;
    this.#restUntilMs = Number.NEGATIVE_INFINITY;
    return true;
  }

  async #yes(node: N): Promise<boolean> {
    const answer = await this.#answer(node);
    this.#counter(node)[answer]++;
    return answer === "yes";
  }

  #answer(node: N): Promise<Answer> {
    const controller = new AbortController();
    return new Promise((resolve) => {
      const cancel = this.#clock.after(this.#deadlineMs, () => {
        resolve("timeouts");
        controller.abort(new Error(`node ${node} did not answer within ${this.#deadlineMs} ms`));
      });
      const settle = (answer: Answer) => {
        cancel();
        resolve(answer);
      };
      // The balancer calls the function inside a promise: an exception that it throws then counts as a rejection.
      Promise.resolve()
        .then(() => this.#isAvailable(node, controller.signal))
        .then(
          (available) => settle(available ? "yes" : "no"),
          () => settle("errors"),
        );
    });
  }

  #counter(node: N): NodeCounters {
    let counter = this.#counters.get(node);
    if (counter === undefined) {
      counter = { given: 0, yes: 0, no: 0, errors: 0, timeouts: 0 };
      this.#counters.set(node, counter);
    }
    return counter;
  }
}
