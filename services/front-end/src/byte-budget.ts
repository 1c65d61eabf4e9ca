/**
 * A bound on bytes held by all requests together; who waits, holds nothing of what it waits for. What is given back goes to the account that
 * waits and holds least, and within it first come, first served: so an account that brings much waits behind itself.
 */
import { assert } from "@stamp/base";

/** The part of the budget that one account's requests take and give. */
export interface ByteShare {
  /** False when it would have to wait. More than the whole budget is let through when nothing else is held. */
  tryTake(bytes: number): boolean;
  take(bytes: number): Promise<void>;
  /** What was taken, in any parts. */
  give(bytes: number): void;
}

interface Waiting {
  readonly bytes: number;
  readonly resolve: () => void;
}

interface Account {
  used: number;
  readonly waiting: Waiting[];
}

export class ByteBudget {
  readonly bytesMax: number;
  #used = 0;
  /** Those that hold something or wait; who waits since longest first. */
  readonly #accounts = new Map<string, Account>();

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  get usedBytes(): number {
    return this.#used;
  }

  of(account: string): ByteShare {
    return {
      tryTake: (bytes) => this.#tryTake(account, bytes),
      take: (bytes) => this.#take(account, bytes),
      give: (bytes) => this.#give(account, bytes),
    };
  }

  /** Nobody who waits is overtaken, except by an account that holds less than the one that would be next. */
  #tryTake(name: string, bytes: number): boolean {
    const next = this.#next();
    const held = this.#accounts.get(name);
    if (next && (held?.waiting.length || (held?.used ?? 0) >= next[1].used)) return false;
    if (!this.#fits(bytes)) return false;
    this.#hold(name, bytes);
    return true;
  }

  async #take(name: string, bytes: number): Promise<void> {
    if (this.#tryTake(name, bytes)) return;
    await new Promise<void>((resolve) => {
      this.#accountOf(name).waiting.push({ bytes, resolve });
    });
  }

  #give(name: string, bytes: number): void {
    const account = this.#accounts.get(name);
    if (bytes === 0) return;
    assert(account !== undefined && account.used >= bytes, "no more bytes are given back than were taken");
    account.used -= bytes;
    this.#used -= bytes;
    this.#forget(name, account);
    for (let next = this.#next(); next && this.#fits(next[1].waiting[0]?.bytes ?? 0); next = this.#next()) {
      const first = next[1].waiting.shift();
      if (!first) return;
      this.#hold(next[0], first.bytes);
      first.resolve();
    }
  }

  #hold(name: string, bytes: number): void {
    const account = this.#accountOf(name);
    account.used += bytes;
    this.#used += bytes;
    // Behind others that hold as much.
    this.#accounts.delete(name);
    this.#accounts.set(name, account);
    this.#forget(name, account);
  }

  #next(): readonly [string, Account] | undefined {
    let least: readonly [string, Account] | undefined;
    for (const entry of this.#accounts) {
      if (entry[1].waiting.length > 0 && (least === undefined || entry[1].used < least[1].used)) least = entry;
    }
    return least;
  }

  #accountOf(name: string): Account {
    const held = this.#accounts.get(name);
    if (held) return held;
    const account: Account = { used: 0, waiting: [] };
    this.#accounts.set(name, account);
    return account;
  }

  #forget(name: string, account: Account): void {
    if (account.used === 0 && account.waiting.length === 0) this.#accounts.delete(name);
  }

  #fits(bytes: number): boolean {
    return this.#used === 0 || this.#used + bytes <= this.bytesMax;
  }
}
