/**
 * Requests that end at this front-end, for operators that watch them now (`stamp trace`, `stamp top`). In memory, and of this process only.
 *
 * Invariants:
 * - A request is never held up: what a listener has not read in time is counted as missed.
 * - Without listeners a request costs the look whether there are any, and three additions to the counts of its account.
 * - Memory is bounded: listeners, the requests that wait for each, and the accounts that are counted. No text that is kept is a part of a
 *   longer one, as of a batch of 4 MiB, which would stay with it.
 */
import type { CorsRule } from "@stamp/azure-rest";
import { fromUtf8, loggedTarget, utf8 } from "@stamp/base";
import type { Cause, HttpRequest, TraceSpan } from "@stamp/ports";

export interface EndedRequest {
  /** End of the request by the wall clock, in milliseconds since 1970. */
  readonly endedMs: number;
  readonly requestId: string;
  readonly service: string;
  readonly account: string;
  readonly operation: string;
  readonly method: string;
  readonly target: string;
  readonly status: number;
  readonly errorCode: string;
  readonly tookMs: number;
  readonly remoteAddress: string;
}

/** Requests that a listener wants. A text that is empty, and a number that is 0, wants all. */
export interface WantedTrace {
  readonly account: string;
  /** Part of the name, in lower or upper case. */
  readonly operation: string;
  readonly statusMin: number;
  readonly statusMax: number;
  readonly tookMinMs: number;
}

/** Facts about a request that has ended. */
export interface RequestEnd
  extends Pick<EndedRequest, "endedMs" | "requestId" | "service" | "account" | "status" | "errorCode" | "tookMs"> {
  /** Counts of the account; undefined: the address names no account that exists. */
  readonly counts: AccountCount | undefined;
  /** Name of the operation; undefined: it was not recognized. */
  readonly operation: string | undefined;
}

export interface AccountCount {
  readonly account: string;
  requests: number;
  clientErrors: number;
  serverErrors: number;
  tookMs: number;
}

export interface ToldRequests {
  readonly requests: readonly EndedRequest[];
  /** Requests that were wanted and are not told. */
  readonly missed: number;
}

export interface TraceFollower {
  /** Waits for requests and returns them, the oldest first. None: `signal` was aborted, or all followings end. */
  next(signal: AbortSignal): Promise<ToldRequests>;
  close(): void;
}

/** Characters of a path and query that are told. */
const targetMax = 1_024;
/** Characters of a method that are told: that of a request inside of a batch is any text. */
const methodMax = 32;
const listenersMax = 16;
/** Requests that wait for a listener. */
const waitingMax = 2_000;
/** Number of requests in one message to a follower. */
const toldMax = 200;
const accountsMax = 1_000;

interface Listener {
  readonly wanted: WantedTrace;
  waiting: EndedRequest[];
  missed: number;
  wake: (() => void) | undefined;
}

export class RequestTrace {
  readonly #listeners = new Set<Listener>();
  readonly #accounts = new Map<string, AccountCount>();
  #ended = false;

  /** True while somebody follows the requests. */
  get isFollowed(): boolean {
    return this.#listeners.size > 0;
  }

  get ended(): boolean {
    return this.#ended;
  }

  get accounts(): readonly AccountCount[] {
    return [...this.#accounts.values()];
  }

  /** Wakes every listener, because the process stops. */
  stop(): void {
    this.#ended = true;
    for (const { wake } of this.#listeners) wake?.();
  }

  /** Returns the counts of an account that exists. With too many accounts, the one that was not asked for longest is counted anew. */
  countsOf(account: string): AccountCount {
    const known = this.#accounts.get(account);
    const counts = known ?? { account: copyOf(account), requests: 0, clientErrors: 0, serverErrors: 0, tookMs: 0 };
    // The account that was asked for last is the last of the map.
    if (known !== undefined) this.#accounts.delete(counts.account);
    else if (this.#accounts.size >= accountsMax) for (const oldest of this.#accounts.keys().take(1)) this.#accounts.delete(oldest);
    this.#accounts.set(counts.account, counts);
    return counts;
  }

  /** Counts a request that has ended, and sends it to followers of its kind. */
  end(request: Pick<HttpRequest, "method" | "target" | "remoteAddress">, end: RequestEnd): void {
    const { counts, status, tookMs, requestId, service, account, operation = "", errorCode, endedMs } = end;
    if (counts !== undefined) {
      counts.requests++;
      counts.tookMs += tookMs;
      if (status >= 500) counts.serverErrors++;
      else if (status >= 400) counts.clientErrors++;
    }
    if (!this.isFollowed) return;
    const { remoteAddress } = request;
    const method = copyOf(request.method.slice(0, methodMax));
    const target = copyOf(loggedTarget(request.target).slice(0, targetMax));
    const told = {
      endedMs,
      requestId,
      service,
      account: copyOf(account),
      operation,
      method,
      target,
      status,
      errorCode,
      tookMs,
      remoteAddress,
    };
    this.tell(told);
  }

  /** Sends a request to the followers that asked for its kind. */
  tell(request: EndedRequest): void {
    for (const listener of this.#listeners) {
      if (!isWanted(request, listener.wanted)) continue;
      if (listener.waiting.length < waitingMax) listener.waiting.push(request);
      else listener.missed++;
      listener.wake?.();
    }
  }

  /** Registers a listener; undefined if there are too many. */
  follow(wanted: WantedTrace): TraceFollower | undefined {
    if (this.#listeners.size >= listenersMax) return undefined;
    const operation = wanted.operation.toLowerCase();
    const listener: Listener = { wanted: { ...wanted, operation }, waiting: [], missed: 0, wake: undefined };
    this.#listeners.add(listener);
    return { next: (signal) => this.#next(listener, signal), close: () => void this.#listeners.delete(listener) };
  }

  async #next(listener: Listener, signal: AbortSignal): Promise<ToldRequests> {
    if (listener.waiting.length === 0 && listener.missed === 0 && !signal.aborted && !this.#ended) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const aborted = (): void => resolve();
      listener.wake = resolve;
      signal.addEventListener("abort", aborted, { once: true });
      await promise;
      signal.removeEventListener("abort", aborted);
      listener.wake = undefined;
    }
    const requests = listener.waiting.splice(0, toldMax);
    // Missed requests came after the waiting ones.
    const missed = listener.waiting.length === 0 ? listener.missed : 0;
    listener.missed -= missed;
    return { requests, missed };
  }
}

/** Returns a copy of the text, because a part of a longer text would keep that in memory. */
const copyOf = (text: string): string => fromUtf8(utf8(text));

function isWanted({ account, operation, status, tookMs }: EndedRequest, wanted: WantedTrace): boolean {
  return (
    (wanted.account === "" || wanted.account === account) &&
    (wanted.operation === "" || operation.toLowerCase().includes(wanted.operation)) &&
    status >= wanted.statusMin &&
    (wanted.statusMax === 0 || status <= wanted.statusMax) &&
    tookMs >= wanted.tookMinMs
  );
}

/** Facts about a request that the steps of its way collect. */
export interface SeenRequest {
  readonly requestId: string;
  /** Goes along with every call that is made for the request. */
  readonly cause: Cause;
  readonly startMs: number;
  version: string;
  /** Account in the address; empty until that was read. */
  account: string;
  /** Counts of the account, as soon as there is known to be one. */
  counts: AccountCount | undefined;
  operation: string | undefined;
  /** The rules of the account, as soon as it is known. */
  cors: readonly CorsRule[];
  /** Functions that are called when the request is over, its answer's body included. */
  readonly leave: (() => void)[];
  /** Span of the request; undefined if it is not traced, or part of another one. */
  readonly span: TraceSpan | undefined;
}

export function runLeave({ leave }: SeenRequest): void {
  for (const one of leave.splice(0)) one();
}
