/**
 * Rounds of questions to the stamps. Each round asks what the round before is not waiting for any more: a stamp or an account whose question has
 * no answer yet is left out, and everything else is asked.
 *
 * Invariants:
 * - A stamp that does not answer delays no question to another one, and no round.
 * - A round has at most one question about each stamp and each account under way, so that what waits is bounded by the registry.
 */
import type { AccountRecord, StampRecord } from "@stamp/geo";

export interface RoundsOptions {
  readonly stamps: () => readonly StampRecord[];
  readonly accounts: () => readonly AccountRecord[];
  readonly askStamp: (stamp: StampRecord) => Promise<void>;
  /** Called for an account that has a copy or an operation under way. `withSettings`: the settings of its copy are compared, too. */
  readonly askAccount: (account: AccountRecord, withSettings: boolean) => Promise<void>;
}

export class Rounds {
  readonly #options: RoundsOptions;
  readonly #asking = new Set<string>();

  constructor(options: RoundsOptions) {
    this.#options = options;
  }

  /** Begins a round, and waits for nothing. */
  begin(withSettings: boolean): void {
    const { stamps, accounts, askStamp, askAccount } = this.#options;
    for (const stamp of stamps()) this.#unlessAsking(`stamp ${stamp.name}`, () => askStamp(stamp));
    for (const account of accounts())
      if (account.secondary !== undefined || account.running !== undefined)
        this.#unlessAsking(`account ${account.name}`, () => askAccount(account, withSettings));
  }

  #unlessAsking(what: string, ask: () => Promise<unknown>): void {
    if (this.#asking.has(what)) return;
    this.#asking.add(what);
    void ask().finally(() => this.#asking.delete(what));
  }
}
