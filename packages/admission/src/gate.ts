/**
 * Admission: who of those that ask is at work next, who waits, who is refused.
 *
 *   offer ──room──> at work ──ended──> (room for the next of those that wait)
 *     │ no room
 *     ├──> waits: in the queue of its PartitionName, in the ring of its account
 *     └──> refused: it would wait too long, or too many wait
 *
 * Invariants:
 *  - nobody waits while there is room; no more than `limit` are at work, except for those that come from an account that has nothing at
 *    work: they need not wait for one that has, up to twice the limit;
 *  - room goes to the account that waits and has least at work, among equals in turn; within it, to its PartitionNames in turn; within
 *    one of them, in the order in which they came. So whoever asks for much waits behind itself only;
 *  - who is refused is one of those that made the queue: of a PartitionName whose first has waited longer than `waitMaxMs`, of an account
 *    whose PartitionNames wait so long for their turn, or, when `waitingMax` wait, the newest of the account that has most of them;
 *  - while nobody else is there to suffer, `waitMaxMs` is `waitAloneMaxMs`: a single tenant may fill the server.
 */
import { assert, type Prng, present } from "@stamp/base";
import { type AccessKind, ConcurrencyLimit, type LimitOptions } from "./concurrency-limit.ts";
import { type HeavyName, SampleAndHold } from "./sample-and-hold.ts";

export interface GateOptions extends LimitOptions {
  readonly waitMaxMs: number;
  readonly waitAloneMaxMs: number;
  readonly waitingMax: number;
}

export interface OfferedOperation {
  readonly account: string;
  /** PartitionName, within one account. */
  readonly partition: string;
  readonly kind: AccessKind;
}

/** An operation that waits or is at work. */
export interface Ticket<T> {
  readonly item: T;
  readonly asked: OfferedOperation;
  readonly offeredMs: number;
  readonly startedMs: number;
}

export interface Refusal {
  readonly why: "account waits too long" | "partition waits too long" | "too many wait";
  /** Time after which a retry may succeed, in milliseconds. */
  readonly retryAfterMs: number;
}

export type Effect<T> =
  | { readonly kind: "start"; readonly ticket: Ticket<T> }
  | { readonly kind: "refuse"; readonly item: T; readonly refusal: Refusal };

export interface GateFigures {
  readonly atWork: number;
  readonly waiting: number;
  /** Accounts that have something here. */
  readonly accounts: number;
  readonly limit: number;
  /** True if several accounts, or a hot PartitionName and others, asked lately. */
  readonly contended: boolean;
  /** True if even the quickest operation takes longer than the target. */
  readonly standing: boolean;
  readonly started: number;
  /** Operations that started after a wait, and the sum of their waiting times in milliseconds. */
  readonly waited: number;
  readonly waitedMs: number;
  readonly refused: number;
  /** Accounts and PartitionNames that asked for most in the last interval. */
  readonly heaviest: readonly HeavyName[];
  /** Accounts whose requests were refused in the last interval. */
  readonly shed: readonly string[];
}

const intervalMs = 1_000;
/** Time for which the gate remembers that somebody else asked, too. */
const contendedForMs = 10_000;
const heavyShare = 0.25;
/** Share of an account's operations from which on a PartitionName makes the others of the account suffer. */
const hotShare = 0.6;
/** With fewer than this many requests in an interval, a key that appears twice is not a hot key. */
const hotOfMin = 32;
const shedMax = 64;

interface Waiting<T> {
  readonly item: T;
  readonly asked: OfferedOperation;
  readonly offeredMs: number;
}

/** Waiting operations of one PartitionName. */
interface Flow<T> {
  readonly waiting: Waiting<T>[];
  /** Time since which the flow is in the ring, in milliseconds. */
  sinceMs: number;
}

interface Account<T> {
  atWork: number;
  waiting: number;
  /** PartitionNames of which something waits, the next one first. */
  readonly ring: Map<string, Flow<T>>;
}

export class Gate<T> {
  readonly #options: GateOptions;
  readonly #limit: ConcurrencyLimit;
  readonly #heavyAccounts: SampleAndHold;
  readonly #heavyPartitions: SampleAndHold;
  /** Accounts with an operation here. */
  readonly #accounts = new Map<string, Account<T>>();
  /** Accounts with a waiting operation; of equals the first comes next. */
  readonly #ring = new Map<string, Account<T>>();
  #atWork = 0;
  #waiting = 0;
  #started = 0;
  #waited = 0;
  #waitedMs = 0;
  #refused = 0;
  #lastAccount: string | undefined;
  #contendedUntilMs: number = Number.NEGATIVE_INFINITY;
  #intervalEndsMs: number = Number.NEGATIVE_INFINITY;
  #heaviest: readonly HeavyName[] = [];
  #shed: readonly string[] = [];
  readonly #shedNow = new Set<string>();

  constructor(prng: Pick<Prng, "chance">, options: GateOptions) {
    this.#options = options;
    this.#limit = new ConcurrencyLimit(options);
    this.#heavyAccounts = new SampleAndHold(prng);
    this.#heavyPartitions = new SampleAndHold(prng);
  }

  /** Returns the figures of the moment; `nowMs` ends the last interval. */
  figures(nowMs: number): GateFigures {
    this.#turn(nowMs);
    return {
      atWork: this.#atWork,
      waiting: this.#waiting,
      accounts: this.#accounts.size,
      limit: this.#limit.limit,
      contended: this.#contended(nowMs),
      standing: this.#limit.standing,
      started: this.#started,
      waited: this.#waited,
      waitedMs: this.#waitedMs,
      refused: this.#refused,
      heaviest: this.#heaviest,
      shed: this.#shed,
    };
  }

  get atWork(): number {
    return this.#atWork;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Starts it, refuses it, or keeps it until an `ended` starts it. Another one may be refused in its place. */
  offer(nowMs: number, asked: OfferedOperation, item: T): readonly Effect<T>[] {
    this.#see(nowMs, asked);
    // The limit may have been raised meanwhile.
    return [...this.#fill(nowMs), ...this.#place(nowMs, { item, asked, offeredMs: nowMs })];
  }

  #place(nowMs: number, here: Waiting<T>): readonly Effect<T>[] {
    const account = this.#accountOf(here.asked.account);
    if (this.#mayStart(account)) return [this.#start(nowMs, account, here)];
    const refusal = this.#refusal(nowMs, account, here.asked);
    if (refusal) return [this.#refuse(here, account, refusal)];
    if (this.#waiting < this.#options.waitingMax) {
      this.#wait(account, here);
      return [];
    }
    const longest = this.#longest();
    const full: Refusal = { why: "too many wait", retryAfterMs: this.#waitMaxMs(nowMs) };
    if (longest === undefined || longest.waiting <= account.waiting + 1) return [this.#refuse(here, account, full)];
    const newest = this.#takeNewest(longest);
    this.#wait(account, here);
    return [this.#refuse(newest, longest, full)];
  }

  /**
   * Ends an operation. Returns who is at work instead. `tookMs`: time that the limit follows: how long the operation was at work, if nothing
   * better is known.
   */
  ended(nowMs: number, { asked, startedMs }: Ticket<T>, tookMs: number = nowMs - startedMs): readonly Effect<T>[] {
    const account = present(this.#accounts.get(asked.account), "the account of what is at work");
    assert(account.atWork > 0, "what ends was started, and ends once");
    account.atWork--;
    this.#atWork--;
    this.#forget(asked.account, account);
    this.#limit.ended(asked.kind, tookMs);
    this.#turn(nowMs);
    return this.#fill(nowMs);
  }

  #fill(nowMs: number): readonly Effect<T>[] {
    if (this.#waiting === 0) return [];
    const started: Effect<T>[] = [];
    while (this.#waiting > 0 && this.#atWork < this.#limit.limit) started.push(this.#startNext(nowMs));
    return started;
  }

  #mayStart(account: Account<T>): boolean {
    const { limit } = this.#limit;
    if (this.#waiting === 0 && this.#atWork < limit) return true;
    return account.atWork === 0 && account.waiting === 0 && this.#atWork < 2 * limit;
  }

  #start(nowMs: number, account: Account<T>, { item, asked, offeredMs }: Waiting<T>): Effect<T> {
    account.atWork++;
    this.#atWork++;
    this.#started++;
    if (nowMs > offeredMs) {
      this.#waited++;
      this.#waitedMs += nowMs - offeredMs;
    }
    return { kind: "start", ticket: { item, asked, offeredMs, startedMs: nowMs } };
  }

  #startNext(nowMs: number): Effect<T> {
    const [name, account] = this.#leastAtWork();
    const [partition, flow] = present(account.ring.entries().next().value, "a PartitionName of which something waits");
    const first = present(flow.waiting.shift(), "one that waits");
    account.waiting--;
    this.#waiting--;
    // Behind the others, if something of it still waits.
    account.ring.delete(partition);
    if (flow.waiting.length > 0) account.ring.set(partition, { waiting: flow.waiting, sinceMs: nowMs });
    this.#ring.delete(name);
    if (account.waiting > 0) this.#ring.set(name, account);
    return this.#start(nowMs, account, first);
  }

  #leastAtWork(): readonly [string, Account<T>] {
    let least: readonly [string, Account<T>] | undefined;
    for (const entry of this.#ring) {
      if (least === undefined || entry[1].atWork < least[1].atWork) least = entry;
      if (least[1].atWork === 0) break;
    }
    return present(least, "an account of which something waits");
  }

  #wait(account: Account<T>, here: Waiting<T>): void {
    const { asked, offeredMs } = here;
    const flow = account.ring.get(asked.partition);
    if (flow) flow.waiting.push(here);
    else account.ring.set(asked.partition, { waiting: [here], sinceMs: offeredMs });
    account.waiting++;
    this.#waiting++;
    if (!this.#ring.has(asked.account)) this.#ring.set(asked.account, account);
  }

  #refusal(nowMs: number, account: Account<T>, { partition }: OfferedOperation): Refusal | undefined {
    const waitMaxMs = this.#waitMaxMs(nowMs);
    const own = account.ring.get(partition)?.waiting[0];
    if (own && nowMs - own.offeredMs > waitMaxMs) return { why: "partition waits too long", retryAfterMs: nowMs - own.offeredMs };
    const [next] = account.ring.values();
    if (next && nowMs - next.sinceMs > waitMaxMs) return { why: "account waits too long", retryAfterMs: nowMs - next.sinceMs };
    return undefined;
  }

  #refuse({ item, asked }: Waiting<T>, account: Account<T>, refusal: Refusal): Effect<T> {
    this.#refused++;
    if (this.#shedNow.size < shedMax) this.#shedNow.add(refusal.why === "partition waits too long" ? asked.partition : asked.account);
    this.#forget(asked.account, account);
    return { kind: "refuse", item, refusal };
  }

  #longest(): Account<T> | undefined {
    let longest: Account<T> | undefined;
    for (const account of this.#ring.values()) if (longest === undefined || account.waiting > longest.waiting) longest = account;
    return longest;
  }

  /** Takes the newest operation of the PartitionName with the longest queue. */
  #takeNewest(account: Account<T>): Waiting<T> {
    let longest: readonly [string, Flow<T>] | undefined;
    for (const entry of account.ring) {
      if (longest === undefined || entry[1].waiting.length >= longest[1].waiting.length) longest = entry;
    }
    const [partition, flow] = present(longest, "a PartitionName of which something waits");
    const newest = present(flow.waiting.pop(), "one that waits");
    if (flow.waiting.length === 0) account.ring.delete(partition);
    account.waiting--;
    this.#waiting--;
    if (account.waiting === 0) this.#ring.delete(newest.asked.account);
    return newest;
  }

  #accountOf(name: string): Account<T> {
    let account = this.#accounts.get(name);
    if (account === undefined) {
      account = { atWork: 0, waiting: 0, ring: new Map() };
      this.#accounts.set(name, account);
    }
    return account;
  }

  #forget(name: string, account: Account<T>): void {
    if (account.atWork === 0 && account.waiting === 0) this.#accounts.delete(name);
  }

  #see(nowMs: number, { account, partition }: OfferedOperation): void {
    this.#turn(nowMs);
    this.#heavyAccounts.see(account);
    this.#heavyPartitions.see(partition);
    if (this.#lastAccount !== undefined && this.#lastAccount !== account) this.#contendedUntilMs = nowMs + contendedForMs;
    this.#lastAccount = account;
  }

  #contended(nowMs: number): boolean {
    return nowMs < this.#contendedUntilMs;
  }

  #waitMaxMs(nowMs: number): number {
    return this.#contended(nowMs) ? this.#options.waitMaxMs : this.#options.waitAloneMaxMs;
  }

  #turn(nowMs: number): void {
    this.#limit.turn(nowMs, this.#contended(nowMs), this.#atWork);
    if (nowMs < this.#intervalEndsMs) return;
    const idle = nowMs >= this.#intervalEndsMs + intervalMs;
    this.#intervalEndsMs = nowMs + intervalMs;
    const seen = this.#heavyPartitions.seen;
    const accounts = this.#heavyAccounts.turn(heavyShare);
    const partitions = this.#heavyPartitions.turn(heavyShare);
    this.#heaviest = idle ? [] : [...accounts, ...partitions];
    this.#shed = idle ? [] : [...this.#shedNow];
    this.#shedNow.clear();
    const hottest = partitions[0]?.share ?? 0;
    if (seen >= hotOfMin && hottest >= hotShare && seen - Math.round(hottest * seen) >= 1) this.#contendedUntilMs = nowMs + contendedForMs;
  }
}
