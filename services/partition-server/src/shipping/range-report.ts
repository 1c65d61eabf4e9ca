/**
 * Reports what one range has of one account that the account's new primary lacks, after a forced failover deposed this stamp
 * (docs/design/geo-shipping.md "Report of a deposed primary"). It goes on where the shipping of the range stood: at the same follower.
 *
 *     role heard ──► a term of the caches ──► commits behind the cursor up to the last one ──► reported, until the role changes
 *
 * Invariants:
 * - The report ends behind every write that a front-end of this stamp acknowledged: until a term of the cache after `demote` was
 *   written, one may act on the old role (rule `geoCachedRolesEnd`).
 * - A range whose log does not reach back to what the copy has reports nothing, and says so: its rows stay as they are.
 */

import type { AccountRole } from "@stamp/geo";
import { answersFromMs, commandWaitMs } from "@stamp/geo";
import { type ShippedTable, shippedNames } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import { jittered, sleep, type World } from "@stamp/ports";
import { type RangePartition, reportRange } from "@stamp/range-partition";
import { GeoLink, type TransportToStamp } from "./geo-link.ts";
import { noteOf } from "./note.ts";
import type { RangeWork, ShippingFacts } from "./range-work.ts";

const backoffStartMs = 100;
const backoffMaxMs = 5_000;
const notKept =
  "the log behind the copy was not kept, so that nobody can tell what only this stamp has; `geo unprotect` and `geo protect` give that up";

export class RangeReport implements RangeWork {
  readonly account: string;
  readonly role: AccountRole;
  readonly #world: World;
  readonly #range: Range;
  readonly #partition: RangePartition;
  readonly #transportTo: TransportToStamp;
  readonly #stop = new AbortController();
  #state: ShippingFacts["state"] = "reporting";
  #failure = "";
  /** Resolves when nothing is reported any more. */
  readonly ended: Promise<void>;

  /** `before`: resolves when nothing of the range is being shipped. */
  constructor(
    world: World,
    range: Range,
    partition: RangePartition,
    account: string,
    role: AccountRole,
    { transportTo }: { readonly transportTo: TransportToStamp },
    before: Promise<unknown>,
  ) {
    this.#world = world;
    this.#range = range;
    this.#partition = partition;
    this.account = account;
    this.role = role;
    this.#transportTo = transportTo;
    this.ended = this.#run(before).finally(() => {
      this.#state = "ended";
    });
  }

  get isEnded(): boolean {
    return this.#state === "ended";
  }

  get facts(): ShippingFacts {
    const { followers } = this.#partition;
    return {
      account: this.account,
      rangeId: this.#range.rangeId,
      table: this.#range.table,
      epoch: this.role.epoch,
      state: this.#state,
      complete: this.#state === "reported",
      pending: this.#state === "reported" ? 0 : (followers.status(this.account)?.pending ?? 0),
      pendingBytes: 0,
      backlogBytes: followers.backlogBytes(this.account),
      lastSyncMs: undefined,
      passedMonotonicMs: undefined,
      seededBytes: 0,
      seedBytes: 0,
      seedBytesPerSecond: 0,
      sentWhole: 0,
      failure: this.#failure,
    };
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Lets the log go that is kept for the report: what only this stamp has is not known any more, and stays. */
  async letGo(): Promise<void> {
    this.#world.logger.warn("the log is not kept any longer for the report of a deposed primary", {
      range: this.#range.rangeId,
      account: this.account,
      backlogBytes: this.#partition.followers.backlogBytes(this.account),
    });
    await this.#partition.followers.end(this.account);
  }

  async #run(before: Promise<unknown>): Promise<void> {
    const { clock, rules, random } = this.#world;
    const { signal } = this.#stop;
    const fromMs = answersFromMs(clock.monotonicMs(), commandWaitMs({ kind: "demote" }), rules);
    await before;
    await sleep(clock, Math.max(0, fromMs - clock.monotonicMs()), signal);
    const upTo = this.#partition.followers.lastSequence;
    for (let waitMs = backoffStartMs; !signal.aborted; waitMs = Math.min(2 * waitMs, backoffMaxMs)) {
      if (await this.#report(upTo)) break;
      await sleep(clock, jittered(random, waitMs), signal);
    }
    await aborted(signal);
  }

  /** Makes the report; false: it is not complete and is tried again. */
  async #report(upTo: number): Promise<boolean> {
    const note = noteOf(this.#partition.followers.status(this.account)?.note ?? "");
    // Under this role epoch, or with rows that were not seeded, the copy never had what is before the cursor.
    if (note === undefined || note.upTo !== undefined || note.epoch >= this.role.epoch) {
      this.#failure = notKept;
      return false;
    }
    const reported = await reportRange(this.#world, this.#partition, this.#link(), {
      follower: this.account,
      epoch: note.epoch,
      lineage: this.#partition.lineage.log,
      operation: this.role.epoch,
      upTo,
      nameOf: shippedNames(this.account),
      signal: this.#stop.signal,
    });
    this.#failure = reported.ok ? "" : reported.failure.message;
    if (!reported.ok) return false;
    this.#state = "reported";
    this.#world.logger.info("a range has reported what only this stamp has", {
      range: this.#range.rangeId,
      account: this.account,
      rows: reported.value,
    });
    return true;
  }

  #link(): GeoLink {
    const { peer = "", peerDoors: doors = [] } = this.role;
    const table = this.#range.table as ShippedTable;
    return new GeoLink({ account: this.account, table, peer, doors, transportTo: this.#transportTo, promotedAs: this.role.epoch });
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  signal.aborted ? Promise.resolve() : new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
