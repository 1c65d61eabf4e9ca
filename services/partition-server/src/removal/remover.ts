/**
 * Deletes, in the background, what the ranges of this server have of accounts that were removed from the stamp
 * (docs/design/geo-shipping.md "Removal"). Bytes of blobs to which no row refers any more are given back by the collector.
 *
 *     roles (shipper) ──► removed accounts ──► tenure recorded in the range ──► pages of rows deleted ──► looked at again later
 *
 * All accounts and ranges take turns of a few pages, so that a large one does not keep the others waiting.
 *
 * Invariants (docs/design/model/geo-removal.pml):
 * - Nothing is deleted below the feature level that brings removals: a partition manager of an older release ends none before an
 *   account comes back.
 * - A range deletes nothing of an account that has come back to the stamp (rule `geoRemovalEnds`, remove-page.ts). Before each page the role
 *   that was told last is read again.
 * - The removal's tenure is durable in the range before the first row goes: what is still on its way to the copy before is
 *   refused, also by a later owner.
 * - Nothing is deleted while a front-end may still serve the copy by the role before, or answers a read that began then: a reader would see a state
 *   that never was.
 * - What is left is found by looking, so that a new owner goes on by itself.
 * - A removal is not told to be over before the collector has looked at every extent that was full when the last row was gone, or the extent has
 *   left the range. Extents that others fill later have no bytes of the account, but for the one that was not full.
 * - A range that is lost, or rows that can't be read, stop the removal from that range until later, and nothing else.
 */
import { FailureError, neededLevels, type Outcome, ok, refused } from "@stamp/base";
import { type AccountRole, removalOf, roleTermMs } from "@stamp/geo";
import { accountKeys, hasBytes, objectTables, queuesTable, shippedNames } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import { jitteredPause, sleep, Turns, type World } from "@stamp/ports";
import { type DataExtent, hasRowsBetween, type RangePartition, removePage } from "@stamp/range-partition";
import { fromWire, type RangeRemoval, type RemovedAccount, toWire } from "@stamp/wire";
import type { HeldRange, Holdings } from "../ranges/holdings.ts";
import { estimatedBytes, keysWithin } from "../shipping/range-work.ts";

export interface RemoverOptions {
  /** How often the removed accounts are looked at, in milliseconds; 0: never. */
  readonly everyMs: number;
  readonly rowsPerSecond: number;
  /** Time that no request exceeds, in milliseconds. */
  readonly requestMs: number;
  /** Returns the accounts that were removed from this stamp, with their roles, as the partition manager told last. */
  readonly removed: () => ReadonlyMap<string, AccountRole>;
  /** True if the collector has looked at a full extent of the range in a pass that began after a time, by the monotonic clock. */
  readonly lookedAt: (held: HeldRange, extentId: number, sinceMs: number) => boolean;
  /** True if the feature level of the stamp says that every process knows removals. */
  readonly mayRemove: () => boolean;
}

/** One account in one range. */
interface Removal {
  readonly tenure: number;
  /** Time at which this server first heard of the removal, by the monotonic clock, in milliseconds. */
  readonly heardMs: number;
  rows: number;
  /** Key at which the next page begins; undefined: no page was begun, or the last one is over. */
  from: Uint8Array | undefined;
  /** Time at which the range was looked at last and had no row of the account, by the monotonic clock; undefined: it was not, or has rows. */
  endedMs: number | undefined;
  /** Time since which the range has had no row of the account, in milliseconds; undefined: it has rows. */
  emptySinceMs: number | undefined;
  /** Extents that were full then, and of which the collector was not seen to have looked at. */
  extents: readonly number[];
  /** Time at which the removal failed last, by the monotonic clock; undefined: it goes on. */
  failedMs: number | undefined;
  failure: string;
}

/** A range with keys of a removed account. */
interface Task {
  readonly account: string;
  readonly held: HeldRange;
  readonly partition: RangePartition;
  readonly removal: Removal;
}

/** Tables of which something is deleted. The row of the account's role stays. */
const tables = objectTables.filter((table) => table !== "Account");
/** Factor for clocks that differ in rate. */
const termAllowance = 1.1;
/** A write that a front-end let in long ago may come behind the end. */
const lookAgainMs = 600_000;
/** Number of pages of one account in one range before the next one's turn. */
const pagesOfTurn = 4;
const belowLevel = `removals need feature level ${neededLevels.accountRemovals}: ./stamp upgrade status`;

export class Remover {
  readonly #world: World;
  readonly #holdings: Holdings;
  readonly #options: RemoverOptions;
  /** Keyed by range, owner epoch and account. */
  readonly #removals = new Map<string, Removal>();

  constructor(world: World, holdings: Holdings, options: RemoverOptions) {
    this.#world = world;
    this.#holdings = holdings;
    this.#options = options;
  }

  /** Removes until the signal. Never rejects: whatever a range answers, the others are looked at. */
  async run(signal: AbortSignal): Promise<void> {
    const { logger } = this.#world;
    const { everyMs } = this.#options;
    let isUnderWay = false;
    while (everyMs > 0 && !signal.aborted) {
      if (!isUnderWay) await jitteredPause(this.#world, everyMs, signal);
      isUnderWay = await this.#look(signal).catch((error: unknown) => {
        logger.error("removed accounts were not looked at", { error: String(error) });
        return false;
      });
    }
  }

  /** Returns how far the removal of these accounts is, for each range of this server that has keys of them. */
  async facts(asked: readonly RemovedAccount[], mayAnswer: (held: HeldRange) => Outcome<void>): Promise<Omit<RangeRemoval, "$typeName">[]> {
    const turns = new Turns(this.#world.clock);
    const found: Omit<RangeRemoval, "$typeName">[] = [];
    for (const { account, tenure } of asked) {
      for (const held of this.#rangesOf(account)) {
        if (turns.over) await turns.next();
        const { range, engine, state } = held;
        const partition = engine?.partition;
        if (state !== "serving" || partition === undefined || !mayAnswer(held).ok) continue;
        const removal = this.#removals.get(keyOf(range, account));
        const left = removal?.tenure === fromWire(tenure) ? this.#extentsLeft(held, partition, removal) : undefined;
        const ended = left !== undefined && left.length === 0;
        const { low, high } = keysWithin(range, account);
        found.push({
          rangeId: range.rangeId,
          ownerEpoch: toWire(range.ownerEpoch),
          account,
          ended,
          rows: toWire(removal?.rows ?? 0),
          bytesLeft: toWire(
            left === undefined
              ? Math.round(estimatedBytes(partition, low, high))
              : left.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0),
          ),
          failure: this.#options.mayRemove() ? (removal?.failure ?? "") : belowLevel,
        });
      }
    }
    return found;
  }

  /**
   * Returns the full extents that may have bytes of the account still; undefined: the range has rows of it. What is not left is not noted any
   * more.
   */
  #extentsLeft(held: HeldRange, { data }: RangePartition, removal: Removal): readonly DataExtent[] | undefined {
    const { emptySinceMs, extents } = removal;
    if (emptySinceMs === undefined) return undefined;
    if (extents.length === 0) return [];
    const noted = new Set(extents);
    const left = data.sealedExtents.filter(({ extentId }) => noted.has(extentId) && !this.#options.lookedAt(held, extentId, emptySinceMs));
    removal.extents = left.map(({ extentId }) => extentId);
    return left;
  }

  #rangesOf(account: string): readonly HeldRange[] {
    const keys = accountKeys(account);
    return tables.flatMap((table) => this.#holdings.overlapping({ table, ...keys }));
  }

  /** Gives a turn to each removed account in each range with keys of it. Returns true if one of them has more pages. */
  async #look(signal: AbortSignal): Promise<boolean> {
    if (!this.#options.mayRemove()) return false;
    const { clock } = this.#world;
    const turns = new Turns(clock);
    const seen = new Set<string>();
    let isUnderWay = false;
    for (const [account, role] of this.#options.removed()) {
      if (turns.over) await turns.next();
      const tenure = removalOf(role);
      if (tenure === undefined) continue;
      for (const held of this.#rangesOf(account)) {
        if (signal.aborted) return false;
        const partition = held.engine?.partition;
        if (held.state !== "serving" || partition === undefined) continue;
        const key = keyOf(held.range, account);
        seen.add(key);
        const removal = this.#removalOf(key, tenure);
        if (!this.#isDue(removal)) continue;
        const rowsBefore = removal.rows;
        await this.#turn({ account, held, partition, removal }, signal);
        isUnderWay ||= removal.from !== undefined && removal.failedMs === undefined && removal.rows > rowsBefore;
      }
    }
    for (const key of this.#removals.keys()) if (!seen.has(key)) this.#removals.delete(key);
    return isUnderWay;
  }

  #removalOf(key: string, tenure: number): Removal {
    const known = this.#removals.get(key);
    if (known?.tenure === tenure) return known;
    const heardMs = this.#world.clock.monotonicMs();
    const removal: Removal = { tenure, heardMs, rows: 0, from: undefined, failedMs: undefined, failure: "", ...hasRows };
    this.#removals.set(key, removal);
    return removal;
  }

  #isDue({ heardMs, endedMs, failedMs }: Removal): boolean {
    const nowMs = this.#world.clock.monotonicMs();
    if (nowMs - heardMs < roleTermMs(undefined) * termAllowance + this.#options.requestMs) return false;
    if (failedMs !== undefined) return nowMs - failedMs >= this.#options.everyMs;
    return endedMs === undefined || nowMs - endedMs >= lookAgainMs;
  }

  async #turn(task: Task, signal: AbortSignal): Promise<void> {
    const { account, held, removal } = task;
    const { clock, logger } = this.#world;
    const rowsBefore = removal.rows;
    const done = await this.#pages(task, signal).catch((error: unknown): Outcome<boolean> => {
      if (error instanceof FailureError) return { ok: false, failure: error.failure };
      logger.error("a removed account was not deleted from a range", { range: held.range.rangeId, account, error: String(error) });
      return refused("internal", "bug", String(error));
    });
    removal.failure = done.ok ? "" : done.failure.message;
    removal.failedMs = done.ok ? undefined : clock.monotonicMs();
    if (!done.ok) logger.warn("rows of a removed account were not deleted", { range: held.range.rangeId, account, ...done.failure });
    if (!done.ok || !done.value) {
      Object.assign(removal, hasRows);
      return;
    }
    removal.endedMs = clock.monotonicMs();
    if (removal.rows === rowsBefore && removal.emptySinceMs !== undefined) return;
    removal.emptySinceMs = removal.endedMs;
    removal.extents = hasBytes(held.range.table) ? task.partition.data.sealedExtents.map(({ extentId }) => extentId) : [];
  }

  /** Returns whether the range has nothing of the account that is to be deleted. */
  async #pages({ account, held, partition, removal }: Task, signal: AbortSignal): Promise<Outcome<boolean>> {
    const { clock, logger } = this.#world;
    const { range } = held;
    const { low, high } = keysWithin(range, account);
    const prefix = accountKeys(account).low;
    const { tenure } = removal;
    const role = this.#options.removed().get(account);
    if (range.table === queuesTable && role?.dropsQueues !== true) return ok(true);
    if (removal.from === undefined) {
      const found = await hasRowsBetween(partition, low, high);
      if (!found.ok || !found.value) return found.ok ? ok(true) : found;
      removal.from = low;
    }
    if (partition.fences.recordedTenure(prefix) < tenure) {
      const recorded = await partition.fences.raiseTenure(prefix, tenure);
      if (!recorded.ok) return recorded;
    }
    for (let i = 0; i < pagesOfTurn; i++) {
      if (signal.aborted || held.state !== "serving" || !this.#isRemoved(account, tenure)) return ok(false);
      const page = await removePage(this.#world, partition, { low: removal.from, high }, { prefix, tenure, nameOf: shippedNames(account) });
      if (!page.ok) return page;
      removal.rows += page.value.rows;
      removal.from = page.value.next;
      await sleep(clock, (page.value.rows * 1_000) / this.#options.rowsPerSecond, signal);
      if (removal.from !== undefined) continue;
      logger.info("the rows of a removed account were deleted", { range: range.rangeId, account, rows: removal.rows });
      // Deleted rows leave the disks when they are merged with what deleted them.
      const written = await partition.checkpoint();
      return written.ok ? ok(true) : written;
    }
    return ok(false);
  }

  /** True if the last known roles say that the account is removed, and the stamp's level allows the removal. */
  #isRemoved(account: string, tenure: number): boolean {
    const role = this.#options.removed().get(account);
    return role !== undefined && removalOf(role) === tenure && this.#options.mayRemove();
  }
}

const hasRows = { endedMs: undefined, emptySinceMs: undefined, extents: [] } as const;

const keyOf = ({ rangeId, ownerEpoch }: Range, account: string): string => `${rangeId} ${ownerEpoch} ${account}`;
