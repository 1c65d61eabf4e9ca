/**
 * The metadata store as its clients see it: transactional keys under a fence. Nothing is retried here: a transaction whose outcome is
 * unknown is the caller's to judge (a leader ends its term).
 */
import type { Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import { type Address, type CallOptions, type Client, type Identity, sleep, type World } from "@stamp/ports";
import { fromWire, MetadataStore, toWire } from "@stamp/wire";
import { lockServices } from "./lock-services.ts";

export interface StoredKey {
  readonly key: string;
  /** Value, owned by the caller; empty when absent. */
  readonly value: Uint8Array;
  /** Version of the transaction that last wrote the key; 0 when absent. */
  readonly version: number;
}

/** Between two transactions of one start of the store. */
export interface StorePosition {
  /** Version of the last transaction. */
  readonly version: number;
  readonly instance: string;
}

export interface StoreFence {
  readonly leaseName: string;
  readonly leaseEpoch: number;
}

export interface StoreCondition {
  readonly key: string;
  /** 0: it must be absent. */
  readonly version: number;
}

export interface StoreWrite {
  readonly key: string;
  /** Absent: delete the key. */
  readonly value?: Uint8Array;
}

export interface StoreTransaction {
  readonly fence: StoreFence;
  readonly conditions: readonly StoreCondition[];
  readonly writes: readonly StoreWrite[];
}

const pageKeys = 1_000;
const partTimeoutMs = 15_000;
const askAgainMs = 500;

export class MetadataClient {
  readonly #world: Pick<World, "clock" | "transport">;
  readonly #identity: Pick<Identity, "stampId"> | undefined;
  readonly #client: Client<typeof MetadataStore>;

  /** `identity`: of the process that transacts; its fences are for the stamp that it is bound to. */
  constructor(world: Pick<World, "clock" | "transport">, lockServiceAddress: Address, identity?: Pick<Identity, "stampId">) {
    this.#world = world;
    this.#identity = identity;
    this.#client = lockServices(world, lockServiceAddress, MetadataStore);
  }

  /** Reads one entry for each key, in that order, from one moment. */
  async get(keys: readonly string[], timeoutMs: number): Promise<Outcome<StoredKey[]>> {
    const answer = await this.#client.getKeys({ keys: [...keys] }, { timeoutMs });
    if (!answer.ok) return answer;
    return ok(answer.value.entries.map(storedKey));
  }

  /** Returns every key with the prefix, in key order. Each page of 1,000 is from one moment, all of them only while nobody writes. */
  async list(prefix: string, timeoutMs: number): Promise<Outcome<StoredKey[]>> {
    const deadlineMs = this.#world.clock.monotonicMs() + timeoutMs;
    const all: StoredKey[] = [];
    for (;;) {
      const page = await this.page(prefix, all.at(-1)?.key ?? "", Math.max(deadlineMs - this.#world.clock.monotonicMs(), 1));
      if (!page.ok) return page;
      all.push(...page.value.entries);
      if (!page.value.more) return ok(all);
    }
  }

  /** Returns the next keys with the prefix behind `after` (empty: from the start), at most 1,000, from one moment. */
  async page(prefix: string, after: string, timeoutMs: number): Promise<Outcome<{ entries: StoredKey[]; more: boolean }>> {
    const answer = await this.#client.listKeys({ prefix, after, limit: pageKeys }, { timeoutMs });
    return answer.ok ? ok({ entries: answer.value.entries.map(storedKey), more: answer.value.more }) : answer;
  }

  /** Returns where the store is now. */
  async position(timeoutMs: number): Promise<Outcome<StorePosition>> {
    const answer = await this.#client.readChanges({}, { timeoutMs });
    return answer.ok ? ok({ version: fromWire(answer.value.version), instance: answer.value.instance }) : answer;
  }

  /**
   * Reads every key with the prefix that was written since, as it is now (deleted: version 0), from one moment, and where the store is then.
   * Refused with `outOfRange` when that is not known (any more), or too much: list everything again.
   */
  async changes(
    prefix: string,
    since: StorePosition,
    timeoutMs: number,
  ): Promise<Outcome<{ readonly entries: StoredKey[]; readonly position: StorePosition }>> {
    const answer = await this.#client.readChanges({ prefix, afterVersion: toWire(since.version), instance: since.instance }, { timeoutMs });
    if (!answer.ok) return answer;
    const { entries, instance, version } = answer.value;
    return ok({ entries: entries.map(storedKey), position: { version: fromWire(version), instance } });
  }

  /**
   * Resolves when a key with the prefix was written since, and after `waitMs` at the latest; at once if the lock service is of a release that holds
   * no questions, or can't be asked.
   */
  async news(prefix: string, since: StorePosition, options: CallOptions & { readonly waitMs: number }): Promise<void> {
    const { waitMs, ...rest } = options;
    await this.#client.readChanges({ prefix, afterVersion: toWire(since.version), instance: since.instance, waitMs }, rest);
  }

  /** Returns the version of every key that was written. Without writes it only proves that fence and conditions hold. */
  async transact(transaction: StoreTransaction, timeoutMs: number): Promise<Outcome<number>> {
    const answer = await this.#client.transact(
      {
        fence: {
          leaseName: transaction.fence.leaseName,
          leaseEpoch: toWire(transaction.fence.leaseEpoch),
          stampId: this.#identity?.stampId ?? "",
        },
        conditions: transaction.conditions.map(({ key, version }) => ({ key, version: toWire(version) })),
        writes: transaction.writes.map(({ key, value }) => (value === undefined ? { key } : { key, value })),
      },
      { timeoutMs },
    );
    return answer.ok ? ok(fromWire(answer.value.version)) : answer;
  }

  /**
   * Reads a snapshot of the whole store part by part, at most 1 MiB each, into `write`, which begins anew when it is called with offset 0.
   * Gives undefined, and writes nothing, when the newest one still has `knownChecksum`. `timeoutMs`: for all of it.
   */
  async readSnapshot(
    write: (bytes: Uint8Array, offsetBytes: number) => Promise<void>,
    timeoutMs: number,
    knownChecksum = 0,
    signal?: AbortSignal,
  ): Promise<Outcome<{ readonly checksum: number; readonly totalBytes: number } | undefined>> {
    const { clock } = this.#world;
    const deadlineMs = clock.monotonicMs() + timeoutMs;
    let offsetBytes = 0;
    let checksum = 0;
    for (;;) {
      const leftMs = Math.max(deadlineMs - clock.monotonicMs(), 1);
      const request = { offsetBytes: toWire(offsetBytes), checksum, knownChecksum };
      if (signal?.aborted === true) return refused("cancelled", "cancelled", "whoever reads the snapshot is stopping");
      const options = { timeoutMs: Math.min(leftMs, partTimeoutMs), ...(signal === undefined ? {} : { signal }) };
      const answer = await this.#client.readSnapshot(request, options);
      if (!answer.ok) {
        const { reason } = answer.failure;
        // It is being taken; or somebody else had another one taken.
        if ((reason !== "throttled" && reason !== "conflict") || clock.monotonicMs() + askAgainMs >= deadlineMs) return answer;
        if (reason === "conflict") offsetBytes = checksum = 0;
        await sleep(clock, askAgainMs, signal);
        continue;
      }
      const { payload } = answer.value;
      const totalBytes = fromWire(answer.value.totalBytes);
      if (offsetBytes === 0 && payload.length === 0) return ok(undefined);
      if (payload.length === 0) return refused("dataLoss", "damaged", `the snapshot ends at ${offsetBytes} of ${totalBytes} bytes`);
      checksum = answer.value.checksum;
      await write(payload, offsetBytes);
      offsetBytes += payload.length;
      if (offsetBytes >= totalBytes) return ok({ checksum, totalBytes });
    }
  }

  /** Returns the id of the stamp. Refuses with `notReady` while the store was never initialised. */
  async stampId(timeoutMs: number): Promise<Outcome<string>> {
    const answer = await this.#client.getStamp({}, { timeoutMs });
    return answer.ok ? ok(answer.value.stampId) : answer;
  }
}

const storedKey = (entry: { key: string; value: Uint8Array; version: bigint }): StoredKey => ({
  key: entry.key,
  value: entry.value,
  version: fromWire(entry.version),
});
