/**
 * A bound on the bytes that all requests of a front-end hold together. Who waits holds nothing of what it waits for.
 *
 * Each holder is an account at an address. Fair shares:
 * - A part of the budget (`reservedShare`) is kept for requests of an account or an address that holds nothing, so that nobody who begins
 *   stands behind all that others hold.
 * - What is given back goes to the waiting request whose account and address hold least; within that, first come, first served.
 * - While requests wait, those that hold most and can do without give it back (`whenWanted`). They are told if the one that is next would still
 *   hold less than their account and address after that.
 * - They are asked before anybody waits, too: from `askedFrom` of the open part until `askedUntil` of it. Otherwise slow uploads fill the budget
 *   and each further chunk of a quick one waits until a slow one was written.
 * - Who waits longer than `waitMaxMs` is refused: 503 with Retry-After.
 */
import { assert, type Outcome, ok, refused } from "@stamp/base";
import type { Clock, Timer } from "@stamp/ports";

/** Part of the budget that only requests of an account or address that holds nothing may use. */
export const reservedShare = 1 / 4;
/** Parts of the open part: holders are asked to give back when more is used than the first, until no more is used than the second. */
const askedFrom = 3 / 4;
const askedUntil = 1 / 2;
/** Longest wait because of a bound that is lower for a while, in milliseconds. */
const lowMaxMs = 1_000;
/** Time between two rounds in which holders are asked, in milliseconds; holders that give back in one round, at most. */
const wantedEveryMs = 100;
const askedMax = 64;

export interface ByteBudgetOptions {
  readonly bytesMax: number;
  /** Longest wait of a request for its bytes, in milliseconds. */
  readonly waitMaxMs: number;
  /**
   * Returns the bound that is in force now, in bytes, at most `bytesMax`. Undefined: always `bytesMax`. Whoever has waited for `lowMaxMs` is
   * let in by `bytesMax`: holders that stand still would else keep everybody out of a small room.
   */
  readonly bytesNow?: () => number;
}

export interface ByteHolder {
  readonly account: string;
  /** Address of the client; "" for work of the stamp itself, such as copies. */
  readonly address: string;
}

/**
 * The party that wants bytes of a holder: nobody yet, the budget is only nearly full; a request that waits; or a request that waits and whose account or
 * address will still hold less than the holder's when it has them.
 */
export type WantedBy = "nobody" | "anybody" | "smaller";

/** The part of the budget that one request takes and gives. */
export interface ByteShare {
  /** Takes bytes if that needs no wait; false otherwise. More than the whole budget passes if nothing else is held. */
  tryTake(bytes: number): boolean;
  /** Takes bytes. If refused, after too long a wait or because the client went away, nothing was taken. */
  take(bytes: number): Promise<Outcome<void>>;
  /** Part of the whole budget that is in force now; greater than 0, at most 1. */
  readonly partInForce: number;
  /** Gives bytes back, in any parts. */
  give(bytes: number): void;
  /**
   * Registers what is called when this request holds much and bytes are wanted. It returns false if the request keeps what it holds: then the
   * next one is asked. The result ends the registration.
   */
  whenWanted(giveBack: (by: WantedBy) => boolean): () => void;
}

/** Bytes that one account, or one address, holds. */
interface Held {
  bytes: number;
  /** Shares that hold something or wait. */
  users: number;
}

interface Pair {
  readonly account: Held;
  readonly address: Held;
}

interface Waiting {
  readonly pair: Pair;
  readonly bytes: number;
  readonly sinceMs: number;
  readonly resolve: (outcome: Outcome<void>) => void;
}

interface Wanted {
  readonly held: () => number;
  readonly pair: () => Pair;
  readonly giveBack: (by: WantedBy) => boolean;
}

export class ByteBudget {
  readonly bytesMax: number;
  readonly #clock: Clock;
  readonly #waitMaxMs: number;
  readonly #bytesNow: () => number;
  /** Bytes that holders may have when the whole budget is in force, without what is kept for those who hold nothing. */
  readonly #openMax: number;
  #used = 0;
  #refused = 0;
  readonly #accounts = new Map<string, Held>();
  readonly #addresses = new Map<string, Held>();
  /** Requests that wait, the longest first. */
  readonly #waiting = new Set<Waiting>();
  readonly #wanted = new Set<Wanted>();
  #asking: Timer | undefined;

  constructor(clock: Clock, { bytesMax, waitMaxMs, bytesNow = () => bytesMax }: ByteBudgetOptions) {
    this.#clock = clock;
    this.bytesMax = bytesMax;
    this.#waitMaxMs = waitMaxMs;
    this.#bytesNow = bytesNow;
    this.#openMax = openOf(bytesMax);
  }

  get usedBytes(): number {
    return this.#used;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Number of requests that were refused because they waited too long. */
  get refusedLate(): number {
    return this.#refused;
  }

  /** Returns the share of a holder; `signal`: ends the share's waits when its client goes away. */
  of(holder: ByteHolder, signal?: AbortSignal): ByteShare {
    let own = 0;
    let waits = 0;
    let pair: Pair | undefined;
    // While the share holds nothing and waits for nothing, nobody keeps its account and address.
    const look = (): Pair =>
      pair ?? { account: this.#accounts.get(holder.account) ?? nothing, address: this.#addresses.get(holder.address) ?? nothing };
    const enter = (): Pair => {
      pair ??= { account: entered(this.#accounts, holder.account), address: entered(this.#addresses, holder.address) };
      return pair;
    };
    const leave = (): void => {
      if (pair === undefined || own > 0 || waits > 0) return;
      pair = undefined;
      left(this.#accounts, holder.account);
      left(this.#addresses, holder.address);
    };
    const hold = (bytes: number): void => {
      if (bytes === 0) return;
      const { account, address } = enter();
      own += bytes;
      account.bytes += bytes;
      address.bytes += bytes;
      this.#used += bytes;
      leave();
      if (bytes > 0) this.#ask();
    };
    const partInForce = (): number => this.#bytesNow() / this.bytesMax;
    return {
      get partInForce() {
        return partInForce();
      },
      tryTake: (bytes) => {
        if (!this.#mayTakeNow(look(), bytes)) return false;
        hold(bytes);
        return true;
      },
      take: async (bytes) => {
        if (this.#mayTakeNow(look(), bytes)) {
          hold(bytes);
          return ok();
        }
        if (signal?.aborted) return clientLeft;
        waits++;
        const outcome = await this.#wait(enter(), bytes, () => hold(bytes), signal);
        waits--;
        leave();
        return outcome;
      },
      give: (bytes) => {
        if (bytes === 0) return;
        assert(own >= bytes, "no more bytes are given back than were taken");
        hold(-bytes);
        this.#serve();
      },
      whenWanted: (giveBack) => {
        const wanted: Wanted = { held: () => own, pair: look, giveBack };
        this.#wanted.add(wanted);
        return () => this.#wanted.delete(wanted);
      },
    };
  }

  /** True if the pair may take now: nobody who waits is overtaken, except by somebody who holds less than the one that would be next. */
  #mayTakeNow(pair: Pair, bytes: number): boolean {
    const next = this.#next();
    if (next && compareHeld(next.pair, pair) <= 0) return false;
    return this.#fits(pair, bytes);
  }

  #wait(pair: Pair, bytes: number, hold: () => void, signal: AbortSignal | undefined): Promise<Outcome<void>> {
    return new Promise((resolve) => {
      const end = (outcome: Outcome<void>): void => {
        timer.cancel();
        signal?.removeEventListener("abort", leave);
        this.#waiting.delete(waiting);
        if (outcome.ok) hold();
        resolve(outcome);
        if (!outcome.ok) this.#serve();
      };
      const leave = (): void => end(clientLeft);
      const timer = this.#clock.after(this.#waitMaxMs, () => {
        this.#refused++;
        end(late);
      });
      const waiting: Waiting = { pair, bytes, sinceMs: this.#clock.monotonicMs(), resolve: end };
      signal?.addEventListener("abort", leave, { once: true });
      this.#waiting.add(waiting);
      this.#ask();
    });
  }

  #serve(): void {
    for (let next = this.#next(); next; next = this.#next()) {
      const served = this.#fits(next.pair, next.bytes, next.sinceMs) ? next : this.#keptOutByLow(next);
      if (served === undefined) return;
      served.resolve(ok());
    }
  }

  /**
   * Returns the request that has waited longest, if only a lower bound keeps it out: those that hold less and come later would stand before
   * it in a small room for as long as they come.
   */
  #keptOutByLow(next: Waiting): Waiting | undefined {
    const [longest] = this.#waiting;
    if (longest === undefined || longest === next || this.#bytesNow() >= this.bytesMax) return undefined;
    return this.#fits(longest.pair, longest.bytes, longest.sinceMs) ? longest : undefined;
  }

  /** Returns the waiting request whose account and address hold the fewest bytes. */
  #next(): Waiting | undefined {
    let least: Waiting | undefined;
    for (const each of this.#waiting) if (least === undefined || compareHeld(each.pair, least.pair) < 0) least = each;
    return least;
  }

  /** Asks those that hold most, as many as hold what is waited for, or what is used beyond `askedUntil` if that is more. */
  #ask(): void {
    const waiting = this.#waiting.size > 0;
    if (this.#asking !== undefined || (!waiting && this.#used <= this.#openMax * askedFrom)) return;
    this.#asking = this.#clock.after(wantedEveryMs, () => {
      this.#asking = undefined;
      // The bound may have grown meanwhile, and nothing else tells.
      this.#serve();
      this.#ask();
    });
    let waited = 0;
    for (const { bytes } of this.#waiting) waited += bytes;
    let needed = Math.max(waited, this.#used - this.#openMax * askedUntil);
    const next = this.#next();
    let neededNext = next === undefined ? 0 : this.#used + next.bytes - this.#openMax;
    let giving = 0;
    for (const { wanted, bytes, larger } of this.#holders(next)) {
      if (needed <= 0 || giving === askedMax) return;
      const by = !waiting ? "nobody" : larger && neededNext > 0 ? "smaller" : "anybody";
      if (!wanted.giveBack(by)) continue;
      giving++;
      needed -= bytes;
      neededNext -= bytes;
    }
  }

  /** Returns the holders in the order in which they are asked: first those whose account or address holds more than that of the next one. */
  #holders(next: Waiting | undefined): { readonly wanted: Wanted; readonly bytes: number; readonly larger: boolean }[] {
    const holders: { readonly wanted: Wanted; readonly bytes: number; readonly larger: boolean }[] = [];
    for (const wanted of this.#wanted) {
      const bytes = wanted.held();
      if (bytes > 0) holders.push({ wanted, bytes, larger: next !== undefined && staysLarger(wanted.pair(), bytes, next) });
    }
    return holders.sort((a, b) => Number(b.larger) - Number(a.larger) || b.bytes - a.bytes);
  }

  /** True if the bytes fit; `sinceMs`: time since which the request waits; undefined: it does not. */
  #fits({ account, address }: Pair, bytes: number, sinceMs?: number): boolean {
    if (this.#used === 0) return true;
    const holdsNothing = account.bytes === 0 || address.bytes === 0;
    const waitedMs = sinceMs === undefined ? 0 : this.#clock.monotonicMs() - sinceMs;
    const bytesNow = waitedMs >= lowMaxMs ? this.bytesMax : this.#bytesNow();
    return this.#used + bytes <= (holdsNothing ? bytesNow : openOf(bytesNow));
  }
}

/** Compares by the larger of what account and address hold, then by the smaller: many accounts at one address are as one, and vice versa. */
function compareHeld(a: Pair, b: Pair): number {
  const larger = (pair: Pair): number => Math.max(pair.account.bytes, pair.address.bytes);
  const smaller = (pair: Pair): number => Math.min(pair.account.bytes, pair.address.bytes);
  return larger(a) - larger(b) || smaller(a) - smaller(b);
}

/**
 * True if a holder's account or address would still hold no less than that of the waiting request if so many bytes went from one to the other.
 * Otherwise the two would take them from each other in turns. What both have in common says nothing.
 */
function staysLarger(holder: Pair, bytes: number, { pair, bytes: wanted }: Waiting): boolean {
  const sameAccount = holder.account === pair.account;
  const sameAddress = holder.address === pair.address;
  if (sameAccount && sameAddress) return false;
  const of = ({ account, address }: Pair): number => Math.max(sameAccount ? 0 : account.bytes, sameAddress ? 0 : address.bytes);
  return of(holder) - bytes >= of(pair) + wanted;
}

/** Returns the bytes of a budget that anybody may use. */
const openOf = (bytesMax: number): number => bytesMax - Math.floor(bytesMax * reservedShare);

const nothing: Held = { bytes: 0, users: 0 };

function entered(all: Map<string, Held>, name: string): Held {
  const held = all.get(name) ?? { bytes: 0, users: 0 };
  held.users++;
  all.set(name, held);
  return held;
}

function left(all: Map<string, Held>, name: string): void {
  const held = all.get(name);
  if (held && --held.users === 0) all.delete(name);
}

const late: Outcome<never> = refused("unavailable", "overloaded", "the bytes of requests in progress leave no room", {
  retryAfterSeconds: "1",
});

const clientLeft: Outcome<never> = refused("cancelled", "cancelled", "the client went away");
