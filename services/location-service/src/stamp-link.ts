/**
 * Calls to one stamp: who it is, how full it is, its accounts. Every call names the leader of the stamp by the stamp's
 * own lock service.
 */
import type { Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import type { StampRecord } from "@stamp/geo";
import { LeaderCalls, MetadataClient } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { type Account, Accounts, fromWire, StreamManager } from "@stamp/wire";

export interface Capacity {
  readonly usedBytes: number;
  readonly totalBytes: number;
}

export class StampLink {
  readonly #world: World;
  readonly #record: Pick<StampRecord, "name" | "lockService">;
  readonly #timeoutMs: number;
  readonly #metadata: MetadataClient;
  readonly #streamManager: LeaderCalls;
  readonly #partitionManager: LeaderCalls;

  /** `world`: with a transport that proves the secret of the stamp. */
  constructor(world: World, record: Pick<StampRecord, "name" | "lockService">, timeoutMs: number) {
    const { lockService } = record;
    this.#world = world;
    this.#record = record;
    this.#timeoutMs = timeoutMs;
    this.#metadata = new MetadataClient(world, lockService);
    this.#streamManager = new LeaderCalls(world, { lockService, leaseName: "stream-manager" });
    this.#partitionManager = new LeaderCalls(world, { lockService, leaseName: "partition-manager" });
  }

  async stampId(): Promise<Outcome<string>> {
    return this.#named(await this.#metadata.stampId(this.#timeoutMs));
  }

  /** Bytes of the extent nodes that are up. */
  async capacity(): Promise<Outcome<Capacity>> {
    const { transport } = this.#world;
    const listed = await this.#streamManager.call(
      this.#timeoutMs,
      (address, timeoutMs) => transport.client(address, StreamManager).listNodes({}, { timeoutMs }),
      { idempotent: true },
    );
    if (!listed.ok) return this.#named(listed);
    let [usedBytes, totalBytes] = [0, 0];
    for (const node of listed.value.nodes.filter(({ up }) => up)) {
      totalBytes += fromWire(node.totalBytes);
      usedBytes += Math.max(fromWire(node.totalBytes) - fromWire(node.freeBytes), 0);
    }
    return ok({ usedBytes, totalBytes });
  }

  /** Names of all accounts of the stamp. */
  async accounts(): Promise<Outcome<string[]>> {
    const names: string[] = [];
    for (let marker = ""; ; ) {
      const page = await this.#onAccounts((client, options) => client.list({ marker, maxResults: 1_000 }, options));
      if (!page.ok) return page;
      names.push(...page.value.accounts.map(({ name }) => name));
      marker = page.value.nextMarker;
      if (marker === "") return ok(names);
    }
  }

  async hasAccount(account: string): Promise<Outcome<boolean>> {
    const found = await this.#onAccounts((client, options) => client.get({ account }, options));
    if (found.ok) return ok(true);
    return found.failure.code === "notFound" ? ok(false) : found;
  }

  /** Repeated with the same keys it changes nothing. Refused with alreadyExists if the account has other ones. */
  createAccount(account: string, keys: readonly string[]): Promise<Outcome<Account>> {
    return this.#onAccounts((client, options) => client.create({ account, keys: [...keys] }, options));
  }

  async #onAccounts<T>(
    call: (client: ReturnType<typeof accountsAt>, options: { readonly timeoutMs: number }) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    const answer = await this.#partitionManager.call(
      this.#timeoutMs,
      (address, timeoutMs) => call(accountsAt(this.#world, address), { timeoutMs }),
      { idempotent: true },
    );
    return this.#named(answer);
  }

  /** Failures say which stamp they are of. */
  #named<T>(outcome: Outcome<T>): Outcome<T> {
    if (outcome.ok) return outcome;
    return { ok: false, failure: { ...outcome.failure, message: `stamp ${this.#record.name}: ${outcome.failure.message}` } };
  }
}

const accountsAt = (world: World, address: string) => world.transport.client(address, Accounts);

/** Refuses a stamp that is another one than was added under this name. */
export function sameStamp(record: Pick<StampRecord, "name" | "stampId">, stampId: string): Outcome<void> {
  if (record.stampId === stampId) return ok();
  const message = `stamp ${record.name} is ${record.stampId}, and its address is that of stamp ${stampId}: nothing is asked of it`;
  return refused("failedPrecondition", "wrongStamp", message, { stampId });
}
