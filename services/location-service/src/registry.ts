/**
 * The location service's records during one leader's term: in memory, and in the metadata store of the lock service.
 *
 * Invariants:
 * - Each transaction has the fence of the leader's lease, and the versions of the records that it was decided by.
 * - Memory changes after the transaction has committed. After an unknown outcome the term ends: the next one reads
 *   anew.
 * - Decisions are made one after the other (`turn`).
 */
import type { Checksum, Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import type { AccountRecord, LocationRecord, StampRecord } from "@stamp/geo";
import { accountKey, decodeLocationRecord, encodeLocationRecord, locationPrefix, stampKey } from "@stamp/geo";
import type { MetadataClient, StoreFence } from "@stamp/metadata-store";

interface Held {
  readonly record: LocationRecord;
  readonly version: number;
}

export interface RegistryOptions {
  readonly metadata: MetadataClient;
  readonly fence: StoreFence;
  readonly checksum: Checksum;
  readonly timeoutMs: number;
  /** Ends the term: the store may differ from what this process has in memory. */
  readonly end: (why: string) => void;
}

export class Registry {
  readonly #options: RegistryOptions;
  readonly #held = new Map<string, Held>();
  #turn: Promise<unknown> = Promise.resolve();

  private constructor(options: RegistryOptions) {
    this.#options = options;
  }

  /** Reads every record. The fence is proven before, so that no earlier leader writes behind it. */
  static async load(options: RegistryOptions): Promise<Outcome<Registry>> {
    const { metadata, fence, checksum, timeoutMs } = options;
    const fenced = await metadata.transact({ fence, conditions: [], writes: [] }, timeoutMs);
    if (!fenced.ok) return fenced;
    const listed = await metadata.list(locationPrefix, timeoutMs);
    if (!listed.ok) return listed;
    const registry = new Registry(options);
    for (const { key, value, version } of listed.value) {
      const record = decodeLocationRecord(key, value, checksum);
      if (!record.ok) return record;
      registry.#held.set(key, { record: record.value, version });
    }
    return ok(registry);
  }

  stamp(name: string): StampRecord | undefined {
    const held = this.#held.get(stampKey(name))?.record;
    return held?.kind === "stamp" ? held.record : undefined;
  }

  /** Returns the records of the stamps with these names; names that nobody added are left out. */
  stampsOf(names: readonly (string | undefined)[]): StampRecord[] {
    return names.flatMap((name) => this.stamp(name ?? "") ?? []);
  }

  account(name: string): AccountRecord | undefined {
    const held = this.#held.get(accountKey(name))?.record;
    return held?.kind === "account" ? held.record : undefined;
  }

  /** Records of the stamps, in the order of their names. */
  get stamps(): StampRecord[] {
    return sorted([...this.#held.values()].flatMap(({ record }) => (record.kind === "stamp" ? [record.record] : [])));
  }

  /** Records of the accounts, in the order of their names. */
  get accounts(): AccountRecord[] {
    return sorted([...this.#held.values()].flatMap(({ record }) => (record.kind === "account" ? [record.record] : [])));
  }

  /** Runs `work` after all earlier decisions were made and recorded. */
  turn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => {});
    return result;
  }

  /** Makes records durable together, in turn. Each was decided by what memory has of it. */
  async put(records: readonly LocationRecord[]): Promise<Outcome<void>> {
    const { metadata, fence, checksum, timeoutMs, end } = this.#options;
    const keyed = records.map((record) => ({ record, key: keyOf(record) }));
    const conditions = keyed.map(({ key }) => ({ key, version: this.#held.get(key)?.version ?? 0 }));
    const writes = keyed.map(({ key, record }) => ({ key, value: encodeLocationRecord(record, checksum) }));
    const version = await metadata.transact({ fence, conditions, writes }, timeoutMs);
    if (!version.ok) {
      // A full store has refused and nothing else; after all other failures memory may be behind.
      if (version.failure.reason !== "diskFull") end(`a transaction failed: ${version.failure.message}`);
      return version.failure.applied === "no"
        ? version
        : refused("unavailable", "notLeader", "it is not known whether the change was recorded");
    }
    for (const { key, record } of keyed) this.#held.set(key, { record, version: version.value });
    return ok();
  }
}

const keyOf = ({ kind, record }: LocationRecord): string => (kind === "stamp" ? stampKey(record.name) : accountKey(record.name));

const sorted = <T extends { readonly name: string }>(records: T[]): T[] => records.sort((a, b) => (a.name < b.name ? -1 : 1));

export function knownAccount(name: string, registry: Registry): Outcome<AccountRecord> {
  const held = registry.account(name);
  return held === undefined ? refused("notFound", "conflict", `no stamp is known to have account ${name}`) : ok(held);
}

export function unknownStamp(name: string, registry: Registry) {
  const known = registry.stamps.map((stamp) => stamp.name).join(", ") || "none";
  return refused("notFound", "conflict", `there is no stamp ${name}; stamps are: ${known}`);
}
