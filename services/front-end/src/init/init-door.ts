/** Keeps a front-end's doors closed until its init files are applied (docs/guides/init.md). */
import { type HttpHandler, sleep, type World, type WrittenFiles } from "@stamp/ports";
import type { Accounts } from "../accounts/accounts.ts";
import { applyInit } from "./apply-init.ts";
import type { Init } from "./load-init.ts";
import { type InitService, OwnRequests } from "./own-requests.ts";

/** Begins the state of a front-end whose init file can't be applied; the reason follows. */
export const initFailed = "init failed: ";

const readyPollMs = 20;
const accountPollMs = 100;

export interface InitDoorOptions {
  readonly world: World;
  readonly accounts: Accounts;
  readonly handlers: Readonly<Record<InitService, HttpHandler>>;
  /** Name of this front-end. */
  readonly self: string;
  readonly lookupTimeoutMs: number;
  /** Returns the names of other things that the front-end waits for; empty: none. */
  waitingFor(): readonly string[];
}

export class InitDoor {
  readonly #options: InitDoorOptions;
  readonly #ending = new AbortController();
  /** Reason for closed doors; undefined: there is none. */
  #waiting: string | undefined;

  constructor(options: InitDoorOptions) {
    this.#options = options;
  }

  get waitingFor(): readonly string[] {
    return this.#waiting === undefined ? [] : [this.#waiting];
  }

  /** Makes what the files say. Throws InitError; until another call, the front-end is not ready then. */
  async apply(load: () => Promise<readonly Init[]>, files: WrittenFiles): Promise<void> {
    const { world, accounts, handlers, self, waitingFor } = this.#options;
    const { clock, logger } = world;
    this.#waiting = "its init file";
    try {
      const inits = await load();
      // A range that is not served yet must not be taken for a refusal.
      while (inits.length > 0 && waitingFor().length > 0) if (!(await this.#pause(readyPollMs))) return;
      const applying = {
        requests: new OwnRequests(world, accounts, handlers, this.#ending.signal),
        files,
        self,
        account: (name: string) => this.#accountThere(name),
        pause: (ms: number) => this.#pause(ms),
        nowMs: () => clock.monotonicMs(),
        differs: (what: string) => logger.warn(what),
      };
      const counts = await applyInit(applying, inits);
      if (inits.length > 0) logger.info("init files applied", { files: inits.map(({ name }) => name), ...counts });
      this.#waiting = undefined;
    } catch (error) {
      if (this.#ending.signal.aborted) throw error;
      this.#waiting = `${initFailed}${(error as Error).message}`;
      logger.error("the init file can't be applied, and the doors stay closed", { error });
      throw error;
    }
  }

  end(): void {
    this.#ending.abort();
  }

  /** Waits until an account is there. False when the front-end stops. */
  async #accountThere(name: string): Promise<boolean> {
    const { world, accounts, lookupTimeoutMs } = this.#options;
    for (;;) {
      const found = await accounts.find(name, { deadlineMs: world.clock.monotonicMs() + lookupTimeoutMs });
      if (found?.ok === true && found.value.kind === "known") break;
      this.#waiting = `account ${name} of its init file (if nobody makes it: stamp account create ${name})`;
      if (!(await this.#pause(accountPollMs))) return false;
    }
    this.#waiting = "its init file";
    return true;
  }

  /** Waits; false when the front-end stops. */
  async #pause(ms: number): Promise<boolean> {
    return (await sleep(this.#options.world.clock, ms, this.#ending.signal)) === "elapsed";
  }
}
