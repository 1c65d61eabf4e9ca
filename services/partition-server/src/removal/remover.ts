/**
 * Deletes, in the background, what the ranges of this server have of accounts that were removed from the stamp
 * (docs/design/geo.md "Removal"). Bytes of blobs to which no row refers any more are given back by the collector.
 *
 *     roles (shipper) ──► removed accounts ──► tenure recorded in the range ──► pages of rows deleted ──► looked at again later
 *
 * Invariants (docs/design/model/geo-removal.pml):
 * - A range deletes nothing of an account that has come back to the stamp (rule `geoRemovalEnds`, remove-page.ts).
 * - The removal's tenure is durable in the range before the first row goes: what is still on its way to the copy before is
 *   refused, also by a later owner.
 * - Nothing is deleted while a front-end may still serve the copy by the role before, or answers a read that began then: a reader would see a state
 *   that never was.
 * - What is left is found by looking, so that a new owner goes on by itself.
 */
import { type Outcome, ok } from "@stamp/base";
import { type AccountRole, removalOf, roleTermMs } from "@stamp/geo";
import { accountKeys, holdsAccount, shippedNames } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import { jittered, sleep, type World } from "@stamp/ports";
import { type RangePartition, removePage } from "@stamp/range-partition";
import { fromWire, type RangeRemoval, type RemovedAccount, toWire } from "@stamp/wire";
import type { Held, Holdings } from "../ranges/holdings.ts";
import { estimatedBytes, keysWithin } from "../shipping/range-shipping.ts";

export interface RemoverOptions {
  /** How often the removed accounts are looked at, in milliseconds; 0: never. */
  readonly everyMs: number;
  readonly rowsPerSecond: number;
  /** Longer than a request takes, in milliseconds. */
  readonly requestMs: number;
  /** Accounts that were removed from this stamp, as the partition manager told last. */
  readonly removed: () => Iterable<readonly [account: string, role: AccountRole]>;
}

/** One account in one range. */
interface Removal {
  readonly tenure: number;
  /** When this server heard of it first, by the monotonic clock. */
  readonly heardMs: number;
  rows: number;
  /** When the range was found to have nothing of the account, by the monotonic clock; undefined: it was not. */
  endedMs: number | undefined;
  failure: string;
}

/** Table whose rows no other stamp has. */
const queuesTable = "Message";
/** Table with the row of the account's role, which stays. */
const rolesTable = "Account";
/** For clocks that differ in rate. */
const termAllowance = 1.1;
/** A write that a front-end let in long ago may come behind the end. */
const lookAgainMs = 600_000;

export class Remover {
  readonly #world: World;
  readonly #holdings: Holdings;
  readonly #options: RemoverOptions;
  /** By range, owner epoch and account. */
  #removals = new Map<string, Removal>();

  constructor(world: World, holdings: Holdings, options: RemoverOptions) {
    this.#world = world;
    this.#holdings = holdings;
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#world;
    const { everyMs } = this.#options;
    while (everyMs > 0 && !signal.aborted) {
      await sleep(clock, jittered(random, everyMs), signal);
      await this.#look(signal);
    }
  }

  /** How far the removal of these accounts is, for each range of this server that has keys of them. */
  facts(asked: readonly RemovedAccount[], mayAnswer: (held: Held) => Outcome<void>): Omit<RangeRemoval, "$typeName">[] {
    return this.#holdings.all.flatMap((held) => {
      const { range, engine, state } = held;
      const partition = engine?.partition;
      if (state !== "serving" || partition === undefined || range.table === rolesTable || !mayAnswer(held).ok) return [];
      return asked
        .filter(({ account }) => holdsAccount(range, account))
        .map(({ account, tenure }) => {
          const removal = this.#removals.get(keyOf(range, account));
          const ended = removal?.tenure === fromWire(tenure) && removal.endedMs !== undefined;
          const { low, high } = keysWithin(range, account);
          return {
            rangeId: range.rangeId,
            ownerEpoch: toWire(range.ownerEpoch),
            account,
            ended,
            rows: toWire(removal?.rows ?? 0),
            bytesLeft: toWire(ended ? 0 : Math.round(estimatedBytes(partition, low, high))),
            failure: removal?.failure ?? "",
          };
        });
    });
  }

  async #look(signal: AbortSignal): Promise<void> {
    const known = new Map<string, Removal>();
    for (const { range, engine, state } of this.#holdings.all) {
      const partition = engine?.partition;
      if (state !== "serving" || partition === undefined || range.table === rolesTable) continue;
      for (const [account, role] of this.#options.removed()) {
        const tenure = removalOf(role);
        if (signal.aborted || tenure === undefined || !holdsAccount(range, account)) continue;
        const key = keyOf(range, account);
        const held = this.#removals.get(key);
        const nowMs = this.#world.clock.monotonicMs();
        const removal = held?.tenure === tenure ? held : { tenure, heardMs: nowMs, rows: 0, endedMs: undefined, failure: "" };
        known.set(key, removal);
        this.#removals.set(key, removal);
        if (nowMs - removal.heardMs < roleTermMs(undefined) * termAllowance + this.#options.requestMs) continue;
        if (removal.endedMs !== undefined && nowMs - removal.endedMs < lookAgainMs) continue;
        const keeps = range.table === queuesTable && role.keepsQueues === true;
        const done = keeps ? ok() : await this.#remove(range, partition, account, removal, signal);
        removal.failure = done.ok ? "" : done.failure.message;
        if (done.ok && !signal.aborted) removal.endedMs = this.#world.clock.monotonicMs();
      }
    }
    this.#removals = known;
  }

  async #remove(range: Range, partition: RangePartition, account: string, removal: Removal, signal: AbortSignal): Promise<Outcome<void>> {
    const { clock, logger } = this.#world;
    const { low, high } = keysWithin(range, account);
    const prefix = accountKeys(account).low;
    if (!(await hasRows(partition, low, high))) return ok();
    const { tenure } = removal;
    if (partition.fences.tenure(prefix) < tenure) {
      const recorded = await partition.fences.raiseTenure(prefix, tenure);
      if (!recorded.ok) return recorded;
    }
    const rowsBefore = removal.rows;
    for (let from: Uint8Array | undefined = low; from !== undefined && !signal.aborted; ) {
      const page = await removePage(this.#world, partition, { low: from, high }, { prefix, tenure, nameOf: shippedNames(account) });
      if (!page.ok) return page;
      removal.rows += page.value.rows;
      from = page.value.next;
      await sleep(clock, (page.value.rows * 1_000) / this.#options.rowsPerSecond, signal);
    }
    logger.info("the rows of a removed account were deleted", { range: range.rangeId, account, rows: removal.rows - rowsBefore });
    // Deleted rows leave the disks when they are merged with what deleted them.
    return partition.checkpoint();
  }
}

async function hasRows(partition: RangePartition, low: Uint8Array, high: Uint8Array): Promise<boolean> {
  for await (const _row of partition.scan({ gte: low, lt: high, background: true, hidden: true })) return true;
  return false;
}

const keyOf = ({ rangeId, ownerEpoch }: Range, account: string): string => `${rangeId} ${ownerEpoch} ${account}`;
