/**
 * Calls about this stamp's copies to its partition manager: reports of their primaries go there, and Last Sync Time comes from there. Nothing
 * is cached: the time is asked for when a client asks, and is never told ahead of this process's clock.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Outcome, ok } from "@stamp/base";
import { notAhead } from "@stamp/geo";
import { LeaderCalls } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { Accounts, type CopyReportSchema, type CopyWordSchema, fromWire } from "@stamp/wire";

const askTimeoutMs = 2_000;

export class Copies {
  readonly #world: World;
  readonly #manager: LeaderCalls;

  constructor(world: World, lockService: string) {
    this.#world = world;
    this.#manager = new LeaderCalls(world, { lockService, leaseName: "partition-manager" });
  }

  /** Returns Last Sync Time of the copy under a role epoch, in milliseconds since 1970; undefined: it is not known. */
  async lastSyncMs(account: string, epoch: number): Promise<number | undefined> {
    const asked = await this.#call(askTimeoutMs, (client, options) => client.getCopy({ account }, options));
    if (!asked.ok || fromWire(asked.value.epoch) !== epoch || asked.value.lastSyncMs === undefined) return undefined;
    return notAhead(fromWire(asked.value.lastSyncMs), this.#world.clock.wallMs());
  }

  /** Returns the time for which the account's copy here may be read from, in milliseconds; undefined: that is not known now. */
  async servesForMs(account: string): Promise<number | undefined> {
    const asked = await this.#call(askTimeoutMs, (client, options) => client.getCopyTerm({ account }, options));
    // A partition manager of an older release does not bound it.
    if (!asked.ok) return asked.failure.reason === "unknownMethod" ? Number.POSITIVE_INFINITY : undefined;
    return asked.value.servesForMs;
  }

  /** Gives on word of the primary about keys and settings of a copy here. */
  confirm(word: MessageInitShape<typeof CopyWordSchema>, timeoutMs: number): Promise<Outcome<{ settingsWanted: boolean }>> {
    return this.#call(timeoutMs, (client, options) => client.confirmCopy(word, options));
  }

  /** Passes on a report of the primary about a copy here. Answers with the lineage of this stamp. */
  async note(report: MessageInitShape<typeof CopyReportSchema>, timeoutMs: number): Promise<Outcome<{ lineage: bigint }>> {
    const noted = await this.#call(timeoutMs, (client, options) => client.noteCopy(report, options));
    return noted.ok ? ok({ lineage: noted.value.lineage }) : noted;
  }

  #call<T>(
    timeoutMs: number,
    call: (client: ReturnType<typeof accountsAt>, options: { readonly timeoutMs: number }) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    return this.#manager.call(timeoutMs, (address, leftMs) => call(accountsAt(this.#world, address), { timeoutMs: leftMs }), {
      idempotent: true,
      mayLackMethod: true,
    });
  }
}

const accountsAt = (world: World, address: string) => world.transport.client(address, Accounts);
