/**
 * Rounds of questions to the stamps. Each round asks what the round before is not waiting for any more: a stamp or an account whose question has
 * no answer yet is left out, and everything else is asked.
 *
 * Invariants:
 * - A stamp that does not answer delays no question to another one, and no round.
 * - Settings that are due are compared with the account's next question, also if one is under way when they become due.
 * - A round has at most one question about each stamp and each account under way, so that what waits is bounded by the registry.
 */
import type { AccountRecord, StampRecord } from "@stamp/geo";

export interface RoundsOptions {
  readonly stamps: () => readonly StampRecord[];
  readonly accounts: () => readonly AccountRecord[];
  readonly askStamp: (stamp: StampRecord) => Promise<void>;
  /** Called for an account that has a copy or an operation under way. `withSettings`: the settings of its copy are compared, too. */
  readonly askAccount: (account: AccountRecord, withSettings: boolean) => Promise<void>;
  /** Takes what a question threw, which is a defect here or an answer that can't be one. The round and the others go on. */
  readonly onThrown: (what: string, error: unknown) => void;
}

export class Rounds {
  readonly #options: RoundsOptions;
  readonly #asking = new Set<string>();
  /** Accounts whose settings are compared at their next question. */
  readonly #settingsDue = new Set<string>();

  constructor(options: RoundsOptions) {
    this.#options = options;
  }

  /** Begins a round, and waits for nothing. */
  begin(withSettings: boolean): void {
    const { stamps, accounts, askStamp, askAccount } = this.#options;
    for (const stamp of stamps()) this.#unlessAsking(`stamp ${stamp.name}`, () => askStamp(stamp));
    const asked = accounts().filter(({ secondary, running }) => secondary !== undefined || running !== undefined);
    if (withSettings) for (const { name } of asked) this.#settingsDue.add(name);
    for (const account of asked)
      this.#unlessAsking(`account ${account.name}`, () => askAccount(account, this.#settingsDue.delete(account.name)));
  }

  /** Asks the stamps that are lost, between rounds. */
  askLost(): void {
    const { stamps, askStamp } = this.#options;
    for (const stamp of stamps()) if (stamp.lost === true) this.#unlessAsking(`stamp ${stamp.name}`, () => askStamp(stamp));
  }

  #unlessAsking(what: string, ask: () => Promise<unknown>): void {
    if (this.#asking.has(what)) return;
    this.#asking.add(what);
    void ask()
      .catch((error: unknown) => this.#options.onThrown(what, error))
      .finally(() => this.#asking.delete(what));
  }
}
