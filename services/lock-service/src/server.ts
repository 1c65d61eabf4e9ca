/** Calls of LockService and MetadataStore, turned into turns of the committer. */
import type { Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import type { LeaseTable, LeaseView } from "@stamp/lease";
import type { CallContext, Handlers } from "@stamp/ports";
import { fromWire, type LockService, type MetadataStore, type ReadChangesRequest, toWire } from "@stamp/wire";
import type { CommitTurn, Committer } from "./committer.ts";
import { keyNews, leaseNews, leasesNews, leasesState } from "./held-questions.ts";
import { otherHolder } from "./holders.ts";
import type { TransactionInput } from "./judge.ts";
import { checkTransaction, judgeTransaction } from "./judge.ts";
import type { Snapshots } from "./store/snapshots.ts";
import { type GroupSize, keySize } from "./store/store.ts";
import type { StoredLevel } from "./store/stored-level.ts";

export const leaseNameMax = 512;
export const leasesMax = 100_000;
/** Prefix of the leases of gateways, which clients name as they like. */
const sessionPrefix = "files/";
/** Leases from which on a gateway with a new name gets none, so that the stamp's own processes always get theirs. */
const sessionsMax = leasesMax / 2;
const keysPerGetMax = 1_000;
const pageKeysMax = 1_000;
const changesBytesMax = 4 << 20;

/** The opened store for handlers; refused with `notReady` and the reason while there is none. */
export interface OpenStore {
  readonly stampId: string;
  /** Id of this start of the lock service. */
  readonly instance: string;
  readonly committer: Committer;
  /** Leases that waits for news look at. Answers do not come from here: they are judged in a turn of the committer. */
  readonly leases: LeaseTable;
  /** Returns monotonic time, in milliseconds. */
  readonly nowMs: () => number;
  /** Feature level in the store. */
  readonly level: StoredLevel;
  judge(transaction: TransactionInput, turn: CommitTurn): Promise<Outcome<void>>;
  readonly snapshots: Snapshots;
  /** Returns the number of keys, and the bound from which on none is made. */
  readonly keys: () => number;
  readonly keysMax: number;
  /** Most keys that one transaction writes; undefined: as many as it may name. */
  readonly writesMax: number | undefined;
}
export type StoreAccess = () => Outcome<OpenStore>;

/**
 * Numbers are read before a turn is asked for. A malformed one is its caller's fault and throws; thrown inside a turn it would end the
 * process, as a failure of the disk does.
 */
export function lockServiceHandlers(access: StoreAccess): Handlers<typeof LockService> {
  const turn = <T>(
    context: CallContext,
    work: (turn: CommitTurn, store: OpenStore) => Outcome<T>,
    options?: { readonly writes: boolean },
  ): Promise<Outcome<T>> => {
    const store = access();
    if (!store.ok) return Promise.resolve(store);
    return store.value.committer.submit(context.deadlineMs, (current) => work(current, store.value), options);
  };
  const waits = async (wait: (store: OpenStore) => Promise<void>): Promise<void> => {
    const store = access();
    if (store.ok) await wait(store.value);
  };
  return {
    acquireLease: async (request, context) => {
      const { name, holder, identity, instance, address, termMs } = request;
      const incarnation = fromWire(request.incarnation);
      const above = fromWire(request.above);
      return turn(context, (current, { stampId }) => {
        if (name === "" || holder === "" || name.length > leaseNameMax || holder.length > leaseNameMax || address.length > leaseNameMax) {
          return refused("invalidArgument", "badRequest", `a lease needs a name and a holder of at most ${leaseNameMax} characters`);
        }
        const most = name.startsWith(sessionPrefix) ? sessionsMax : leasesMax;
        if (current.leases.size >= most && current.leases.epochOf(name) === 0) {
          const advice = most === sessionsMax ? ": give a gateway the same name at each start" : "";
          return refused("resourceExhausted", "overloaded", `there are ${most} leases already${advice}`);
        }
        if (identity.length > leaseNameMax || instance.length > leaseNameMax) {
          return refused("invalidArgument", "badRequest", `identity and instance have at most ${leaseNameMax} characters`);
        }
        if (request.stampId !== "" && request.stampId !== stampId) {
          const message = `${holder} at ${address} belongs to stamp ${request.stampId}; this is the lock service of stamp ${stampId}`;
          return refused("failedPrecondition", "wrongStamp", message, { stampId });
        }
        const wanted = { name, holder, identity, instance, incarnation, address, termMs, above };
        const decision = current.leases.acquire(wanted, current.nowMs());
        const decided = current.decided(decision);
        // A standby learns from the refusal whose stamp it stands by for.
        if (!decided.ok) return { ok: false, failure: { ...decided.failure, details: { ...decided.failure.details, stampId } } };
        return mapped(decided, (grant) => ({ leaseEpoch: toWire(grant.epoch), termMs: grant.termMs, stampId }));
      });
    },
    renewLease: async (request, context) => {
      const epoch = fromWire(request.leaseEpoch);
      const renewal = (current: CommitTurn) =>
        otherHolder(current.leases, { name: request.name, epoch }, context) ??
        mapped(current.decided(current.leases.renew(request.name, epoch, current.nowMs())), (grant) => ({
          leaseEpoch: toWire(grant.epoch),
          termMs: grant.termMs,
        }));
      return turn(context, renewal, { writes: false });
    },
    releaseLease: async (request, context) => {
      const epoch = fromWire(request.leaseEpoch);
      const released = (current: CommitTurn) =>
        otherHolder(current.leases, { name: request.name, epoch }, context) ??
        mapped(current.decided(current.leases.release(request.name, epoch, current.nowMs())), leaseState);
      return turn(context, released);
    },
    refuseRenewals: async (request, context) => {
      const epoch = fromWire(request.leaseEpoch);
      return turn(context, (current) =>
        mapped(current.decided(current.leases.refuseRenewals(request.name, epoch, current.nowMs())), leaseState),
      );
    },
    getLease: async (request, context) => {
      const known = fromWire(request.knownEpoch);
      if (request.waitMs > 0) await waits((store) => leaseNews(store, request.name, known, request.waitMs, context));
      const state = (current: CommitTurn) =>
        mapped(current.decided(current.leases.get(request.name, current.nowMs())), (view) =>
          view === undefined ? { name: request.name } : leaseState(view),
        );
      return turn(context, state, { writes: false });
    },
    listLeases: async (request, context) => {
      const { prefix, knownState, waitMs } = request;
      if (waitMs > 0) await waits((store) => leasesNews(store, prefix, knownState, waitMs, context));
      const list = (current: CommitTurn, store: OpenStore) => {
        const leases = [];
        const state = leasesState(store);
        for (const name of current.leases.names(prefix)) {
          const view = current.decided(current.leases.get(name, current.nowMs()));
          // A list without it would say that there is none.
          if (!view.ok) return view;
          if (view.value !== undefined) leases.push(leaseState(view.value));
        }
        return ok({ leases, state });
      };
      return turn(context, list, { writes: false });
    },
  };
}

export function metadataStoreHandlers(access: StoreAccess): Handlers<typeof MetadataStore> {
  return {
    getStamp: async () => {
      const store = access();
      return store.ok ? ok({ stampId: store.value.stampId }) : store;
    },
    readSnapshot: async ({ offsetBytes, checksum, knownChecksum }) => {
      const store = access();
      if (!store.ok) return store;
      const part = await store.value.snapshots.part(fromWire(offsetBytes), checksum, knownChecksum);
      if (!part.ok) return part;
      const { payload, totalBytes, version } = part.value;
      return ok({
        checksum: part.value.checksum,
        totalBytes: toWire(totalBytes),
        version: toWire(version),
        payload: new Uint8Array(payload),
      });
    },
    getKeys: async (request, context) => {
      const store = access();
      if (!store.ok) return store;
      if (request.keys.length > keysPerGetMax) return refused("invalidArgument", "badRequest", `at most ${keysPerGetMax} keys in one call`);
      return store.value.committer.submit(
        context.deadlineMs,
        async (current) => {
          const entries = [];
          for (const key of request.keys) {
            const state = await current.key(key);
            if (!state.ok) return state;
            entries.push({ key, value: state.value.value ?? new Uint8Array(0), version: toWire(state.value.version) });
          }
          return ok({ entries });
        },
        { writes: false },
      );
    },
    listKeys: async (request, context) => {
      const store = access();
      if (!store.ok) return store;
      const limit = request.limit === 0 ? pageKeysMax : Math.min(request.limit, pageKeysMax);
      const page = async (current: CommitTurn) =>
        mapped(await current.page(request.prefix, request.after, limit), ({ entries, more }) => ({
          entries: entries.map((entry) => ({ ...entry, version: toWire(entry.version) })),
          more,
        }));
      return store.value.committer.submit(context.deadlineMs, page, { alone: true, writes: false });
    },
    readChanges: (request, context) => readChanges(access, request, context),
    transact: async (request, context) => {
      const store = access();
      if (!store.ok) return store;
      if (request.fence === undefined) return refused("invalidArgument", "badRequest", "a transaction needs a fence");
      const { stampId } = store.value;
      if (request.fence.stampId !== "" && request.fence.stampId !== stampId) {
        const message = `a leader of stamp ${request.fence.stampId} can't write here: this is the metadata store of stamp ${stampId}`;
        return refused("failedPrecondition", "wrongStamp", message, { stampId });
      }
      const transaction: TransactionInput = {
        fence: { leaseName: request.fence.leaseName, leaseEpoch: fromWire(request.fence.leaseEpoch) },
        conditions: request.conditions.map(({ key, version }) => ({ key, version: fromWire(version) })),
        // Copied: a received value is a view of a larger buffer, and it waits here.
        writes: request.writes.map(({ key, value }) => (value === undefined ? { key } : { key, value: new Uint8Array(value) })),
      };
      const wellFormed = checkTransaction(transaction, store.value.writesMax);
      if (!wellFormed.ok) return wellFormed;
      const levelKnown = await store.value.level.before(transaction);
      if (!levelKnown.ok) return levelKnown;
      const judged = async (current: CommitTurn) => {
        if (current.refusal !== undefined) return current.refusal;
        const { leaseName, leaseEpoch } = transaction.fence;
        const other = otherHolder(current.leases, { name: leaseName, epoch: leaseEpoch }, context);
        if (other !== undefined) return other;
        const { keys, keysMax } = store.value;
        if (keys() >= keysMax && makesKeys(transaction)) {
          const message = `the metadata store holds ${keys()} keys, and ${keysMax} are the most (keysMax): delete blobs, or wait until space is given back`;
          return refused("resourceExhausted", "diskFull", message);
        }
        const decided = await store.value.judge(transaction, current);
        return decided.ok ? ok({ version: toWire(current.write(transaction.writes)) }) : decided;
      };
      return store.value.committer.submit(context.deadlineMs, judged, { size: sizeOf(transaction) });
    },
  };
}

const sizeOf = ({ writes }: TransactionInput): GroupSize => ({
  leases: 0,
  keys: writes.length,
  keyBytes: writes.reduce((sum, { key, value }) => sum + keySize(key, value), 0),
});

/** True if the transaction makes a key: it has the condition that the key is absent. Others only free or change keys. */
const makesKeys = ({ conditions, writes }: TransactionInput): boolean => {
  const absent = new Set(conditions.filter(({ version }) => version === 0).map(({ key }) => key));
  return writes.some(({ key, value }) => value !== undefined && absent.has(key));
};

async function readChanges(access: StoreAccess, { prefix, afterVersion, instance, waitMs }: ReadChangesRequest, context: CallContext) {
  const store = access();
  if (!store.ok) return store;
  const { committer, instance: ours } = store.value;
  const known = instance === ours ? fromWire(afterVersion) : undefined;
  if (waitMs > 0 && known !== undefined) await keyNews(store.value, prefix, known, waitMs, context);
  return committer.submit(
    context.deadlineMs,
    async (current) => {
      const version = toWire(current.lastVersion);
      if (instance === "") return ok({ entries: [], version, instance: ours });
      const entries = await changes(current, prefix, known);
      return mapped(entries, (found) => ({ entries: found, version, instance: ours }));
    },
    { alone: true, writes: false },
  );
}

async function changes(turn: CommitTurn, prefix: string, afterVersion: number | undefined) {
  const keys = afterVersion === undefined ? undefined : turn.changedSince(afterVersion, prefix);
  if (keys === undefined) return refused("outOfRange", "outOfRange", "what was written since then is not known (any more)");
  const entries = [];
  let bytes = 0;
  for (const key of keys) {
    const state = await turn.key(key);
    if (!state.ok) return state;
    const value = state.value.value ?? new Uint8Array(0);
    bytes += key.length + value.length;
    if (bytes > changesBytesMax) {
      return refused("outOfRange", "outOfRange", `more than ${changesBytesMax} bytes were written since transaction ${afterVersion}`);
    }
    entries.push({ key, value, version: toWire(state.value.version) });
  }
  return ok(entries);
}

/** Reads what the transaction depends on, then lets the judge decide. */
export async function judgeInTurn(
  transaction: TransactionInput,
  turn: CommitTurn,
  rules: Parameters<typeof judgeTransaction>[2],
): Promise<Outcome<void>> {
  const versions = new Map<string, number>();
  for (const { key } of transaction.conditions) {
    const state = await turn.key(key);
    if (!state.ok) return state;
    versions.set(key, state.value.version);
  }
  const view = { leaseEpoch: (name: string) => turn.leases.epochOf(name), keyVersion: (key: string) => versions.get(key) ?? 0 };
  return judgeTransaction(transaction, view, rules);
}

const leaseState = (view: LeaseView) => ({
  name: view.name,
  holder: view.holder,
  incarnation: toWire(view.incarnation),
  address: view.address,
  leaseEpoch: toWire(view.epoch),
  ended: view.ended,
  renewalsRefused: view.refused,
  remainingMs: Math.ceil(view.remainingMs),
});

const mapped = <T, U>(outcome: Outcome<T>, map: (value: T) => U): Outcome<U> => (outcome.ok ? ok(map(outcome.value)) : outcome);
