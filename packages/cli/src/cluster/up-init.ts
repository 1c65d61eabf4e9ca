/** The init file of `stamp up`: checked before anything starts, applied by the front-ends before their doors open (docs/guides/init.md). */
import { resolve } from "node:path";
import { type ClusterConfig, type ClusterStatus, ownTransport, StampInspector } from "@stamp/cluster";
import type { Init, makeAccounts } from "@stamp/front-end";
import { nodeWrittenFiles } from "@stamp/ports-node";
import { Accounts } from "@stamp/wire";
import type { Command } from "commander";
import { CommandError, exitCodes, flaggedConfig } from "../context.ts";
import { warn } from "../say.ts";
import { emulatorValues } from "./emulator-flags.ts";

const call = { timeoutMs: 10_000 } as const;
const againMs = 200;
/** Beginning of the state of a front-end that can't apply its file (`initFailed` there, whose module `up` loads only for an init file). */
const failed = "init failed: ";

/**
 * The configuration of `up`: `--init FILE` is its `initFile`, and `--init` alone makes a new stamp on several hosts; flags of the emulator stand for
 * keys, too.
 */
export function upConfigOf(command: Command): ClusterConfig {
  const { init } = command.opts<{ init?: boolean | string }>();
  const values = emulatorValues(command, process.env);
  return flaggedConfig(command, typeof init === "string" ? { ...values, initFile: resolve(init) } : values);
}

/** Throws a CommandError with the place of each mistake. */
export async function checkInitFile({ initFile }: ClusterConfig): Promise<void> {
  if (initFile !== undefined) await loaded(initFile);
}

async function loaded(path: string): Promise<readonly Init[]> {
  const { InitError, loadInit } = await import("@stamp/front-end");
  try {
    return await loadInit(nodeWrittenFiles, path);
  } catch (error) {
    throw error instanceof InitError ? new CommandError(error.message, exitCodes.usage) : error;
  }
}

/** The init file of one start: makes its accounts, for which the front-ends wait, as the operator, and sees what can't be made. */
export class UpInit {
  readonly #transport: ReturnType<typeof ownTransport>;
  #failure: string | undefined;
  #ended = false;
  #making: Promise<void> = Promise.resolve();

  constructor(config: ClusterConfig) {
    this.#transport = ownTransport(config);
  }

  /** `lockService`: addresses of the lock services that are started. */
  begin({ initFile }: ClusterConfig, lockService: string): void {
    if (initFile !== undefined) this.#making = this.#makeAccounts(initFile, lockService);
  }

  /** Returns why the file can't be applied; undefined: nothing was told. */
  failure({ processes }: Pick<ClusterStatus, "processes">): string | undefined {
    const told = processes.flatMap(({ waitingFor }) => waitingFor).find((each) => each.startsWith(failed));
    return this.#failure ?? told?.slice(failed.length);
  }

  async end(): Promise<void> {
    this.#ended = true;
    await this.#making;
    await this.#transport.close();
  }

  /** Tries until everything is made or refused: while the stamp starts nobody answers yet. */
  async #makeAccounts(path: string, lockService: string): Promise<void> {
    const { InitError, makeAccounts } = await import("@stamp/front-end");
    const inits = await loaded(path);
    while (!this.#ended) {
      try {
        const address = await new StampInspector(this.#transport, lockService).leader("partition-manager");
        const told: string[] = [];
        await makeAccounts(makerAt(this.#transport, address), inits, (what) => told.push(what));
        for (const line of told) warn(`stamp: ${line}`);
        return;
      } catch (error) {
        if (error instanceof InitError) {
          this.#failure = error.message;
          return;
        }
      }
      await new Promise((resolve) => setTimeout(resolve, againMs));
    }
  }
}

function makerAt(transport: ReturnType<typeof ownTransport>, address: string): Parameters<typeof makeAccounts>[0] {
  const accounts = transport.client(address, Accounts);
  return {
    get: (account) => accounts.get({ account }, call),
    create: (asked) => accounts.create(asked, call),
    createHierarchical: (asked) => accounts.createHierarchical(asked, call),
  };
}

export const refuseInitOfSeveral = ({ initFile }: ClusterConfig, command: Command): void => {
  const [emulators] = Object.keys(emulatorValues(command, {}));
  if (emulators !== undefined)
    throw new CommandError("flags of the emulator are for one stamp: leave them or --stamps out", exitCodes.usage);
  if (initFile === undefined) return;
  throw new CommandError("--init FILE is for one stamp: start each with its own --data and --init, or leave --stamps out", exitCodes.usage);
};

/** Returns the error of `up` after it has stopped what it started. */
export const initError = (why: string): CommandError =>
  new CommandError(`the init file can't be applied, and the cluster is stopped again: ${why}`, exitCodes.initFailed);
