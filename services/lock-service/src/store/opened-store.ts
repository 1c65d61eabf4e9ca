/** One turn of serving a store: its identity, its leases and its committer. */
import { type Failed, FailureError, type Outcome, ok, refused } from "@stamp/base";
import { LeaseTable } from "@stamp/lease";
import { type Leadership, sleep, uuid, type World } from "@stamp/ports";
import { Committer } from "../committer.ts";
import type { LockServiceConfig } from "../config.ts";
import { judgeInTurn, type OpenStore } from "../server.ts";
import { Snapshots } from "./snapshots.ts";
import type { LockStore } from "./store.ts";
import { StoredLevel } from "./stored-level.ts";

export interface OpenedStore {
  readonly access: OpenStore;
  readonly store: LockStore;
  readonly leases: LeaseTable;
}

export interface StoreRoom {
  /** Returns why nothing can be written now. `writes`: somebody asks to record something. */
  readonly refusal: (writes: boolean) => Promise<Failed | undefined>;
  readonly giveRoom: () => Promise<boolean>;
  readonly broken: (why: string) => void;
}

/** Names no way to a new stamp: the extent nodes may hold everything of the one that was here, and this process does not know them. */
const emptyStoreText =
  "a stamp: the metadata store is empty. If a stamp was here, its disk is lost: `stamp health` names the newest copy of the metadata on the " +
  "extent nodes and the command that puts it back (docs/guides/metadata.md)";

/**
 * Reads what the store holds. Every lease gets a full term (rule leasesExtendedOnRestart), counted from `lastJudgedMs`, the last moment at which
 * the process before can have judged a renewal that it answered; undefined: from after the store was opened. Closes the store if it can't be
 * served.
 */
export async function openedStore(
  world: World,
  config: LockServiceConfig,
  store: LockStore,
  room: StoreRoom,
  lastJudgedMs?: number,
): Promise<Outcome<OpenedStore>> {
  const { clock, logger, random, rules } = world;
  const failed = async (failure: Outcome<never>): Promise<Outcome<never>> => {
    await store.close();
    return failure;
  };
  if (await store.empty()) {
    if (!config.init) return failed(refused("unavailable", "notReady", emptyStoreText));
    const stampId = uuid(random);
    await store.initialise(stampId);
    logger.info("a new stamp was created", { stampId });
  }
  const stampId = await store.stampId();
  if (!stampId.ok) return failed(stampId);
  if (stampId.value === undefined) return failed(refused("dataLoss", "damaged", "the metadata store holds data but no stamp identity"));
  const lastVersion = await store.lastVersion();
  if (!lastVersion.ok) return failed(lastVersion);
  const records = await store.leases();
  if (!records.ok) return failed(records);
  const level = await StoredLevel.open(world, store);
  if (!level.ok) return failed(level);
  await forgetLocationSecrets(world, store);
  const nowMs = clock.monotonicMs();
  const fromMs = Math.min(nowMs, lastJudgedMs ?? nowMs);
  if (lastJudgedMs !== undefined) logger.info("terms of leases count from before the election", { beforeMs: Math.round(nowMs - fromMs) });
  const leases = new LeaseTable(records.value, fromMs, rules);
  const { waitingMax, groupMax } = config;
  const committer = new Committer(world, store, leases, { waitingMax, groupMax, lastVersion: lastVersion.value, ...room });
  const access: OpenStore = {
    stampId: stampId.value,
    instance: uuid(random),
    committer,
    leases,
    nowMs: () => clock.monotonicMs(),
    level: level.value,
    judge: (transaction, turn) => judgeInTurn(transaction, turn, rules),
    snapshots: new Snapshots(world, store, stampId.value, config.reserveBytes),
    keys: () => store.count,
    keysMax: config.keysMax,
    writesMax: store.writesMax,
  };
  return ok({ access, store, leases });
}

/**
 * Records of a location service had the keys of new accounts in releases before 28 November 2026: their old values are in the files until LevelDB
 * merges those. Done at every start, because a location service of such a release may have written since. The store is served also if it fails.
 */
async function forgetLocationSecrets({ logger }: World, store: LockStore): Promise<void> {
  try {
    await store.forgetOld(accountRecords);
  } catch (error) {
    logger.warn(
      "old records of accounts stay in the files of the store, with keys that a release before has written: restart to try again",
      {
        error: String(error),
      },
    );
  }
}

/** Prefix of the records of a location service about accounts (docs/formats/location.md). */
const accountRecords = "location/accounts/";

export interface StoreTurn {
  readonly leadership: Leadership;
  readonly stopping: AbortSignal;
  /** Reads the store. A turn that ends meanwhile throws FailureError `notLeader`, or answers with it. */
  readonly open: () => Promise<Outcome<OpenedStore>>;
  /** Called with the store when it is served, with undefined when it no longer is, and with the reason if it can't be. */
  readonly tell: (opened: OpenedStore | undefined, failure: Failed | undefined) => void;
}

/** Pause before a store that can't be served is read again, in milliseconds. */
const lookAgainMs = 2_000;

/** Serves one turn as the active lock service: reads the store, serves it until leadership or this process ends, and closes it. */
export async function serveTurn({ clock, logger }: World, { leadership, stopping, open, tell }: StoreTurn): Promise<void> {
  const opened = await openInTurn(open);
  if (!opened.ok) {
    const gone = opened.failure.reason === "notLeader";
    tell(undefined, gone ? undefined : opened);
    if (!gone) await sleep(clock, lookAgainMs, stopping);
    leadership.end("its store can't be served");
    return;
  }
  tell(opened.value, undefined);
  await firstAborted(leadership.ended, stopping);
  if (!stopping.aborted) logger.warn("not the active lock service any more", { why: leadership.why });
  tell(undefined, undefined);
  await closeOpened(opened.value);
}

export async function closeOpened({ access, store }: OpenedStore): Promise<void> {
  await access.committer.close();
  await access.snapshots.close();
  await store.close();
}

async function openInTurn(open: () => Promise<Outcome<OpenedStore>>): Promise<Outcome<OpenedStore>> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof FailureError) return { ok: false, failure: error.failure };
    throw error;
  }
}

/** Resolves when one of the signals is aborted, and removes all listeners. */
async function firstAborted(...signals: readonly AbortSignal[]): Promise<void> {
  let over = (): void => {};
  await new Promise<void>((resolve) => {
    over = resolve;
    for (const signal of signals) signal.addEventListener("abort", over, { once: true });
    if (signals.some(({ aborted }) => aborted)) resolve();
  });
  for (const signal of signals) signal.removeEventListener("abort", over);
}
