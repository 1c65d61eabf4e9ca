/**
 * Admission at the HTTP doors: what a tenant floods a front-end with burns this process's time before any partition server sees it.
 *
 * Requests are started in turns of the event loop, so many in a turn (@stamp/admission); the rest wait, each account behind its own, before
 * their bodies are read. While the loop keeps up a request starts at once. A turn that takes long while several accounts ask starts
 * fewer, so that a request of a quiet account waits for one short turn and not for all that others have sent. Whose account it is has been
 * proved before: nobody is shed for what somebody else sends in its name.
 *
 * And the requests in progress of one account are bounded below those of all, so that others always find a place. The last quarter of an
 * account's places is for addresses that hold few: nobody keeps everybody else from an account, as one reader of a public blob could.
 */
import { type Effect, Gate, type GateFigures, type Refusal, type Ticket } from "@stamp/admission";
import { Prng } from "@stamp/base";
import type { Clock } from "@stamp/ports";

export interface DoorGateOptions {
  /** Requests of all accounts together, at most. */
  readonly requestsMax: number;
  /** Requests of one account, at most: a part of `requestsMax`. */
  readonly accountShareMax: number;
  /** Requests started in one turn of the event loop, while turns are short. */
  readonly startsMax: number;
  readonly startsMin: number;
  /** Turns that take longer on average, while several accounts ask, start fewer. */
  readonly turnTargetMs: number;
  readonly waitMaxMs: number;
  readonly waitAloneMaxMs: number;
}

export interface DoorFigures extends GateFigures {
  /** Requests refused because too many of the same account were in progress. */
  readonly refusedByShare: number;
}

/** Part of an account's places that is kept for addresses with fewer than `fewMax` requests in progress. */
const keptShare = 0.25;
const fewMax = 8;

type Entering = (refusal: Refusal | undefined) => void;

export class DoorGate {
  readonly #clock: Clock;
  readonly #options: DoorGateOptions;
  readonly #gate: Gate<Entering>;
  /** Requests in progress by account. */
  readonly #inProgress = new Map<string, number>();
  /** Requests in progress by account and address. */
  readonly #ofAddress = new Map<string, number>();
  #startedThisTurn: Ticket<Entering>[] = [];
  #turnSinceMs: number | undefined;
  #refusedByShare = 0;

  constructor(clock: Clock, options: DoorGateOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#gate = new Gate(new Prng(1), {
      limitMax: options.startsMax,
      limitMin: options.startsMin,
      targetMs: options.turnTargetMs,
      compared: "mean",
      waitMaxMs: options.waitMaxMs,
      waitAloneMaxMs: options.waitAloneMaxMs,
      waitingMax: options.requestsMax,
    });
  }

  get figures(): DoorFigures {
    return { ...this.#gate.figures(this.#clock.monotonicMs()), refusedByShare: this.#refusedByShare };
  }

  /** Returns undefined when it is let in: then `leave` is called once, when it is over. At once where it need not wait. */
  enter(account: string, address: string): Refusal | undefined | Promise<Refusal | undefined> {
    if (!this.#hasPlace(account, address)) {
      this.#refusedByShare++;
      return { why: "too many wait", retryAfterMs: 1_000 };
    }
    add(this.#inProgress, account, 1);
    add(this.#ofAddress, nameOf(account, address), 1);
    let entered: { readonly refusal: Refusal | undefined } | undefined;
    let entering: Entering = (refusal) => {
      entered = { refusal };
    };
    // Within an account its addresses take turns.
    const asked = { account, partition: nameOf(account, address), kind: "read" as const };
    this.#act(
      this.#gate.offer(this.#clock.monotonicMs(), asked, (refusal) => {
        if (refusal) this.leave(account, address);
        entering(refusal);
      }),
    );
    if (entered !== undefined) return entered.refusal;
    return new Promise((resolve) => {
      entering = resolve;
    });
  }

  leave(account: string, address: string): void {
    add(this.#inProgress, account, -1);
    add(this.#ofAddress, nameOf(account, address), -1);
  }

  #hasPlace(account: string, address: string): boolean {
    const { requestsMax, accountShareMax } = this.#options;
    const placesMax = Math.max(1, Math.floor(requestsMax * accountShareMax));
    const taken = this.#inProgress.get(account) ?? 0;
    const own = this.#ofAddress.get(nameOf(account, address)) ?? 0;
    return taken < placesMax && (own < fewMax || taken < placesMax * (1 - keptShare));
  }

  #act(effects: readonly Effect<Entering>[]): void {
    for (const effect of effects) {
      if (effect.kind === "refuse") effect.item(effect.refusal);
      else {
        this.#startedThisTurn.push(effect.ticket);
        effect.ticket.item(undefined);
      }
    }
    if (this.#turnSinceMs !== undefined || this.#startedThisTurn.length === 0) return;
    this.#turnSinceMs = this.#clock.monotonicMs();
    this.#clock.after(0, () => this.#turn());
  }

  /** Ends a turn of the event loop: what was started has done all it could without waiting for others. */
  #turn(): void {
    const nowMs = this.#clock.monotonicMs();
    const tookMs = nowMs - (this.#turnSinceMs ?? nowMs);
    this.#turnSinceMs = undefined;
    const started = this.#startedThisTurn;
    this.#startedThisTurn = [];
    this.#act(started.flatMap((ticket) => this.#gate.ended(nowMs, ticket, tookMs)));
  }
}

const nameOf = (account: string, address: string): string => `${account} ${address}`;

function add(counts: Map<string, number>, name: string, count: number): void {
  const next = (counts.get(name) ?? 0) + count;
  if (next > 0) counts.set(name, next);
  else counts.delete(name);
}
