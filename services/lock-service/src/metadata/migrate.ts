/**
 * Moves the metadata store of a stopped stamp between the lock service's folder and etcd. Keys and values are the same in both
 * (docs/formats/lock-service.md), so they are copied as they are and compared key by key; the lineage stays.
 *
 * Invariants:
 *   - No lock service runs meanwhile: this one's folder is held, and the election in etcd is won.
 *   - The stamp's own record is written last: a target that was cut short is never served, and is begun anew.
 *   - The source is given up after both stores were read and found equal. Its content stays where it is.
 *   - A store in etcd is replaced only when that was said, and after all of it, proof included, was written into a LevelDB beside the lock
 *     service's own. It may be damaged, so it is read and removed as it is. Its stamp record goes first: the rest is never served.
 */
import { compareBytes, equalBytes, FailureError, fromHex, fromUtf8, type Outcome, ok, refused, utf8 } from "@stamp/base";
import { Election, EtcdKeyValue, type Session } from "@stamp/etcd";
import { type CompleteStore, type KeyValue, type KeyValueOperation, sleep, type World } from "@stamp/ports";
import type { LockServiceConfig } from "../config.ts";
import { type EtcdSecrets, etcdAccess } from "../store/etcd-access.ts";
import { openEtcdStore, openLevelStore } from "../store/store.ts";
import { whileStopped } from "./restore.ts";

export type MetadataPlace = LockServiceConfig["metadataStore"];

export interface MigrationResult {
  /** Number of keys that were copied, leases among them. */
  readonly keys: number;
  /** Name of the LevelDB with the store that was replaced in etcd; undefined if there was none. */
  readonly replaced?: string | undefined;
}

/** Longest wait for the election, in milliseconds. */
const electionMs = 20_000;
const stampKey = utf8("stamp");
/** Number of operations in one batch, if the store has no bound of its own. */
const batchOperations = 1_000;
const batchBytes = 1 << 20;

/** Returns the name of the LevelDB that keeps a store of etcd which another one replaces. */
const replacedName = (wallMs: number): string => `metadata.replaced-in-etcd-${Math.floor(wallMs)}`;

/**
 * Refused with `conflict` if a lock service runs, or the target holds a store. `replace`: a store in etcd gives way to the one of the folder, which
 * was restored from a copy.
 */
export async function migrateMetadata(
  world: World,
  config: LockServiceConfig,
  secrets: EtcdSecrets,
  to: MetadataPlace,
  replace = false,
): Promise<Outcome<MigrationResult>> {
  return whileStopped(world, async () => {
    const session = await elected(world, config, secrets);
    if (!session.ok) return session;
    try {
      return await migrate(world, new EtcdKeyValue(session.value, world.rules), to, replace);
    } catch (error) {
      if (error instanceof FailureError) return { ok: false, failure: error.failure };
      throw error;
    } finally {
      await session.value.resign();
    }
  });
}

async function elected(world: World, config: LockServiceConfig, secrets: EtcdSecrets): Promise<Outcome<Session>> {
  const access = etcdAccess(world, config, secrets);
  if (!access.ok) return access;
  const { client, keys } = access.value;
  const election = new Election(
    client,
    { keys, name: "metadata-migrate", address: () => "", ttlSeconds: config.etcdTtlSeconds },
    world.rules,
  );
  const given = new AbortController();
  const done = new AbortController();
  void sleep(world.clock, electionMs, done.signal).then(() => given.abort());
  try {
    return ok(await election.campaign(given.signal));
  } catch (error) {
    if (!(error instanceof FailureError)) throw error;
    const { holder } = election;
    if (holder !== undefined) {
      return refused("failedPrecondition", "conflict", `${holder.name} at ${holder.address} is the active lock service: stop it first`);
    }
    return refused("unavailable", "notReady", `etcd does not answer: ${client.trouble?.message ?? "nothing is known"}`);
  } finally {
    done.abort();
  }
}

async function migrate(world: World, etcd: KeyValue, to: MetadataPlace, replace: boolean): Promise<Outcome<MigrationResult>> {
  const inEtcd = to === "leveldb";
  const source = await (inEtcd ? openEtcdStore(world, etcd) : openLevelStore(world));
  if (!source.ok) return source;
  try {
    if ((await source.value.get(stampKey)) === undefined) {
      return refused("failedPrecondition", "conflict", `there is no stamp in ${inEtcd ? "etcd" : "the folder of the lock service"}`);
    }
    const replaced = replace && !inEtcd ? await setAside(world, etcd) : undefined;
    const anew = { discardMark: true, lineage: fromHex(source.value.lineage) };
    const target = await (inEtcd ? openLevelStore(world, anew) : openEtcdStore(world, etcd, anew));
    if (!target.ok) return target;
    try {
      if ((await target.value.get(stampKey)) !== undefined) {
        return refused(
          "failedPrecondition",
          "conflict",
          `there is a metadata store in ${inEtcd ? "the folder of the lock service" : "etcd; if this one takes its place: --replace"}`,
        );
      }
      await clear(target.value);
      await copy(source.value, target.value);
      const keys = await compare(source.value, target.value);
      if (!keys.ok) return keys;
      if (inEtcd) await source.value.batch([{ kind: "delete", key: stampKey }], { sync: true });
      return ok({ keys: keys.value, replaced });
    } finally {
      if (inEtcd) await target.value.close();
    }
  } finally {
    if (!inEtcd) await source.value.close();
  }
}

/** Writes what is in etcd into a LevelDB, and removes it. Returns the name of the LevelDB; undefined if etcd was empty. */
async function setAside(world: World, etcd: KeyValue): Promise<string | undefined> {
  const keys: Uint8Array[] = [];
  const name = replacedName(world.clock.wallMs());
  const opened = await world.keyValue.open(name);
  if (opened.kind === "corrupt") throw new FailureError(refused("dataLoss", "damaged", `${name}: ${opened.message}`).failure);
  try {
    const aside = batchesOf(opened.store);
    for await (const [key, value] of etcd.range({})) {
      keys.push(key);
      await aside.add({ kind: "put", key, value });
    }
    await aside.end();
  } finally {
    await opened.store.close();
  }
  if (keys.length === 0) {
    await world.keyValue.destroy(name);
    return undefined;
  }
  await etcd.batch([{ kind: "delete", key: stampKey }], { sync: true });
  const removed = batchesOf(etcd);
  for (const key of keys) await removed.add({ kind: "delete", key });
  await removed.end();
  return name;
}

async function clear(target: CompleteStore): Promise<void> {
  const batch = batchesOf(target);
  for await (const [key] of target.range({})) await batch.add({ kind: "delete", key });
  await batch.end();
}

async function copy(source: CompleteStore, target: CompleteStore): Promise<void> {
  const batch = batchesOf(target);
  let stamp: Uint8Array | undefined;
  for await (const [key, value] of source.range({})) {
    if (equalBytes(key, stampKey)) stamp = value;
    else await batch.add({ kind: "put", key, value });
  }
  await batch.end();
  if (stamp !== undefined) await target.batch([{ kind: "put", key: stampKey, value: stamp }], { sync: true });
}

function batchesOf(target: Pick<KeyValue, "batch" | "batchMax">) {
  const { operations: operationsMax, bytes: bytesMax } = target.batchMax ?? { operations: batchOperations, bytes: batchBytes };
  let operations: KeyValueOperation[] = [];
  let bytes = 0;
  const end = async (): Promise<void> => {
    if (operations.length > 0) await target.batch(operations, { sync: true });
    operations = [];
    bytes = 0;
  };
  const add = async (operation: KeyValueOperation): Promise<void> => {
    // The store adds a prefix and a frame to each.
    const size = operation.key.length + (operation.kind === "put" ? operation.value.length : 0) + 512;
    if (operations.length === operationsMax || bytes + size > bytesMax) await end();
    operations.push(operation);
    bytes += size;
  };
  return { add, end };
}

/** Returns the number of keys; refused with `damaged` if the two differ in any. */
async function compare(source: CompleteStore, target: CompleteStore): Promise<Outcome<number>> {
  const others = target.range({})[Symbol.asyncIterator]();
  let keys = 0;
  for await (const [key, value] of source.range({})) {
    const other = await others.next();
    const same = other.done !== true && compareBytes(key, other.value[0]) === 0 && equalBytes(value, other.value[1]);
    if (!same) return refused("dataLoss", "damaged", `the copy differs from the store at key ${fromUtf8(key)}: nothing was given up`);
    keys += 1;
  }
  if ((await others.next()).done !== true)
    return refused("dataLoss", "damaged", "the copy holds more than the store: nothing was given up");
  return ok(keys);
}
