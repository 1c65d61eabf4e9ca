/**
 * Gives back what nobody can reach any more, in the background: rows inside deleted containers, tables and queues; rows of blobs that no state
 * of them names, and states whose time is over; extents of blob data to which no row refers, and those that are mostly dead.
 *
 * Order (model/container.pml): the incarnation is noted first, from a row that is inside it, and whether it is still there is asked after:
 * an incarnation that is not there then never comes back. A request that found it there may still be on its way into it, and would find the
 * rows missing: they rest for longer than requests take. What is live in blob data is known from the
 * references that a whole scan finds, never by counting deletes; the scan sees every reference, because none may be made to these extents
 * from before it on (RangePartition.leaveExtents).
 */
import { compareBytes, type Failed, FailureError, type Outcome, ok, refused } from "@stamp/base";
import {
  type Incarnation,
  mayBePurged,
  type ObjectTable,
  ownerOfRow,
  parentRows,
  partitionStart,
  purgeBlob,
  type RowWrite,
  rowsInside,
} from "@stamp/objects";
import { type Range, rangeEnd } from "@stamp/partition-map";
import { jittered, sleep, type World } from "@stamp/ports";
import type { RangeEngine, RowView } from "../operations/engine.ts";
import { runPlan } from "../operations/run-plan.ts";
import type { Holdings, ServingRange } from "../ranges/holdings.ts";
import { CollectorScan, type PieceGarbage } from "./collector-scan.ts";
import { rewriteExtents } from "./extent-rewriter.ts";

export interface CollectedCounts {
  readonly rows: number;
  readonly rowsDeleted: number;
  readonly extents: number;
  readonly extentsDropped: number;
  readonly extentsRewritten: number;
  readonly bytesRewritten: number;
}

/** Asks if an incarnation exists, wherever its row is. */
export type IsThere = (table: ObjectTable, of: Incarnation) => Promise<Outcome<boolean>>;

export interface CollectorOptions {
  readonly everyMs: number;
  /** Time for which an incarnation must have been gone before its rows are deleted, in milliseconds. */
  readonly goneMs: number;
  readonly rowsPerSecond: number;
  /** Extents of which a smaller share lives are rewritten. */
  readonly rewriteBelow: number;
  readonly rewriteBytesPerSecond: number;
  /**
   * True for an account whose rows are another stamp's, or may be: a row whose container or table is not here may have come before it (rule
   * `geoCopiesNotCollected`).
   */
  readonly mayBeCopy?: (account: string) => boolean;
}

/** Number of rows that one commit deletes at most. */
const deletedAtOnceMax = 500;
const transactTimeoutMs = 30_000;
/** Number of extents that one pass rewrites at most. */
const extentsRewrittenMax = 64;
/** Number of owners that one pass remembers at most. */
const ownersMax = 10_000;
/** Incarnations that were found gone and rest, in the metadata of one range. */
const goneRecordedMax = 500;
/** A pass without any change of the range finds only what time purges. */
const unchangedMs = 24 * 3_600_000;
/** A range is looked at for at most a fifth of the time. */
const restRatio = 4;

/** The last pass over a range. */
interface Pass {
  /** Sequence of the range when the pass began. */
  readonly sequence: number;
  /** True if every full extent was looked at, and nothing was left to a later pass. */
  readonly complete: boolean;
  readonly owners: Owners;
  readonly endedMs: number;
  readonly tookMs: number;
  /** Time by full extent that a pass over the range has looked at: when the last of these passes began, by the monotonic clock. */
  readonly lookedAtMs: ReadonlyMap<number, number>;
}

/** Containers, tables or queues in which a range has rows. */
interface Owners {
  readonly there: Incarnation[];
  /** Deleted ones whose rows rest, with the time of the first finding by the wall clock. */
  readonly resting: Map<string, number>;
  /** True if there was more than could be noted. */
  more: boolean;
}

export class Collector {
  readonly #world: World;
  readonly #holdings: Holdings;
  readonly #ask: IsThere;
  readonly #options: CollectorOptions;
  /** Keyed by incarnation: when a pass over any range first found it gone, by the wall clock, oldest first. Rows inside it rest. */
  readonly #goneSinceMs = new Map<string, number>();
  readonly #passes = new Map<string, Pass>();
  #busy = false;
  #now: { readonly range: string; readonly scan: CollectorScan; step: "scan" | "rewrite" } | undefined;

  constructor(world: World, holdings: Holdings, ask: IsThere, options: CollectorOptions) {
    this.#world = world;
    this.#holdings = holdings;
    this.#ask = ask;
    this.#options = options;
  }

  /** Facts about the running pass, for people who wait for it; empty: none runs. */
  get facts(): Readonly<Record<string, unknown>> {
    if (this.#now === undefined) return {};
    const { range, scan, step } = this.#now;
    return { range, step, rows: scan.rows };
  }

  /**
   * True if a full extent of the range is given back if no row has referred to it since `sinceMs`, by the monotonic clock: a pass that began later
   * looked at the extent, or a complete pass has seen the range as it is now.
   */
  lookedAt(rangeId: string, sequence: number, extentId: number, sinceMs: number): boolean {
    const pass = this.#passes.get(rangeId);
    if (pass === undefined) return false;
    return (pass.lookedAtMs.get(extentId) ?? Number.NEGATIVE_INFINITY) >= sinceMs || (pass.complete && pass.sequence === sequence);
  }

  /** Collects every range in turn, for as long as the process runs. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, logger } = this.#world;
    while (!signal.aborted) {
      await sleep(clock, jittered(random, this.#options.everyMs), signal);
      for (const { range } of this.#holdings.all) {
        if (signal.aborted) return;
        const held = this.#holdings.servingAny(range.rangeId);
        if (!held.ok || !(await this.#due(held.value))) continue;
        const collected = await this.collect(held.value);
        if (!collected.ok)
          logger.info("the garbage of a range was not collected, tried again later", { range: range.rangeId, ...collected.failure });
      }
    }
  }

  async #due({ range, engine }: ServingRange): Promise<boolean> {
    const last = this.#passes.get(range.rangeId);
    if (last === undefined) return true;
    const sinceMs = this.#world.clock.monotonicMs() - last.endedMs;
    if (sinceMs < restRatio * last.tookMs) return false;
    if (!last.complete || last.sequence !== engine.facts.sequence || sinceMs > unchangedMs) return true;
    return this.#anyGone(range, last.owners.there);
  }

  /** Asks which owners are gone. A container is deleted at its row: nothing changes in the ranges of its blobs. */
  async #anyGone({ table }: Range, owners: readonly Incarnation[]): Promise<boolean> {
    for (const owner of owners) {
      const there = await this.#ask(table, owner);
      if (there.ok && !there.value) return true;
    }
    return false;
  }

  /** Makes one pass over one range; a second one when extents were rewritten, that finds nothing refers to them. */
  async collect(held: ServingRange): Promise<Outcome<CollectedCounts>> {
    if (this.#busy) return refused("unavailable", "rangeChanging", "another range is collected now: try again later");
    this.#busy = true;
    try {
      const first = await this.#pass(held, true);
      if (!first.ok || first.value.extentsRewritten === 0) return first;
      const second = await this.#pass(held, false);
      if (!second.ok) return second;
      return ok({
        ...first.value,
        rowsDeleted: first.value.rowsDeleted + second.value.rowsDeleted,
        extentsDropped: first.value.extentsDropped + second.value.extentsDropped,
      });
    } catch (error) {
      if (error instanceof FailureError) return { ok: false, failure: error.failure };
      throw error;
    } finally {
      await held.engine.dropExtents(new Set(), transactTimeoutMs);
      this.#busy = false;
      this.#now = undefined;
    }
  }

  async #pass(held: ServingRange, rewrites: boolean): Promise<Outcome<CollectedCounts>> {
    const { range, engine } = held;
    const { clock, logger } = this.#world;
    const startedMs = clock.monotonicMs();
    const { sequence } = engine.facts;
    const settled = await engine.settleExtents();
    if (!settled.ok) return settled;
    const old = settled.value;
    await engine.leaveExtents(old.map(({ extentId }) => extentId));
    const scan = new CollectorScan({
      table: range.table,
      low: range.low,
      high: rangeEnd(range),
      now: { rules: this.#world.rules, wallMs: this.#world.clock.wallMs() },
      extents: old,
      rewriteBelow: rewrites ? this.#options.rewriteBelow : 0,
      mayBeCopy: (account) => this.#mayBeCopy(account),
    });
    this.#now = { range: range.rangeId, scan, step: "scan" };
    const owners: Owners = { there: [], resting: new Map(), more: false };
    const scanned = await this.#scan(held, scan, owners);
    if (!scanned.ok) return scanned;
    const noted = await recordGone(engine, owners.resting);
    if (!noted.ok) return noted;
    const known = scan.knowsReferences ? old : [];
    const unreferenced = new Set(known.map(({ extentId }) => extentId).filter((extentId) => !scan.extents.has(extentId)));
    const dropped = await engine.dropExtents(unreferenced, transactTimeoutMs);
    if (!dropped.ok) return dropped;
    const purged = await this.#purgeKept(held, scan);
    if (!purged.ok) return purged;
    const mostlyDead = scan.knowsReferences ? this.#mostlyDead(scan) : new Map<number, readonly Uint8Array[]>();
    this.#now.step = "rewrite";
    const rewritten = await rewriteExtents(this.#world, engine, {
      extents: mostlyDead,
      bytesPerSecond: this.#options.rewriteBytesPerSecond,
      wanted: () => this.#holdings.current(held),
    });
    if (!rewritten.ok) return rewritten;
    const full = engine.sealedDataExtents();
    const allOld = old.length === full.length + dropped.value.length;
    const lookedAtMs = new Map(known.map(({ extentId }) => [extentId, startedMs]));
    const before = this.#passes.get(range.rangeId)?.lookedAtMs;
    for (const { extentId } of full) {
      const atMs = before?.get(extentId);
      if (atMs !== undefined && !lookedAtMs.has(extentId)) lookedAtMs.set(extentId, atMs);
    }
    const found = mostlyDead.size + scanned.value + purged.value + owners.resting.size + scan.damaged.count;
    const complete = allOld && found === 0 && !owners.more;
    if (scan.damaged.count > 0) {
      const damaged = { range: range.rangeId, ...scan.damaged.facts, extentsKept: !scan.knowsReferences };
      logger.warn("rows of a range are damaged: what they decide was not collected, all else was", damaged);
    }
    const endedMs = clock.monotonicMs();
    this.#passes.set(range.rangeId, { sequence, complete, owners, endedMs, tookMs: endedMs - startedMs, lookedAtMs });
    const collected: CollectedCounts = {
      rows: scan.rows,
      rowsDeleted: scanned.value + purged.value,
      extents: old.length,
      extentsDropped: dropped.value.length,
      extentsRewritten: mostlyDead.size,
      bytesRewritten: rewritten.value,
    };
    if (collected.rowsDeleted > 0 || collected.extentsDropped > 0 || collected.extentsRewritten > 0) {
      logger.info("range collected", { range: range.rangeId, ...collected, tookMs: Math.round(endedMs - startedMs) });
    }
    return ok(collected);
  }

  /** Returns the extents with the smallest live part. */
  #mostlyDead(scan: CollectorScan): ReadonlyMap<number, readonly Uint8Array[]> {
    const found = [...scan.extents].flatMap(([extentId, { rows, liveBytes }]) =>
      rows === undefined ? [] : [{ extentId, rows, liveBytes }],
    );
    found.sort((a, b) => a.liveBytes - b.liveBytes);
    return new Map(found.slice(0, extentsRewrittenMax).map(({ extentId, rows }) => [extentId, rows]));
  }

  /** Scans everything of the range; gives how many rows were deleted on the way. */
  async #scan(held: ServingRange, scan: CollectorScan, owners: Owners): Promise<Outcome<number>> {
    let deleted = 0;
    for (;;) {
      const piece = await held.engine.read((view) => scan.piece(view), { background: true });
      if (!piece.ok) return piece;
      const { rows, garbage, last } = piece.value;
      if (!this.#holdings.current(held)) return gone(held.range.rangeId);
      const taken = await this.#takeAway(held, garbage, scan);
      if (!taken.ok) return taken;
      deleted += taken.value;
      if (last || scan.inside.size >= ownersMax) {
        const emptied = await this.#emptyGone(held, scan, owners);
        if (!emptied.ok) return emptied;
        deleted += emptied.value;
        scan.inside.clear();
      }
      if (last) return ok(deleted);
      await sleep(this.#world.clock, ((rows + taken.value) * 1_000) / this.#options.rowsPerSecond);
    }
  }

  /** Removes a piece's rows without an owner, and states whose time is over. */
  async #takeAway(held: ServingRange, { rows, blobs }: PieceGarbage, { damaged }: CollectorScan): Promise<Outcome<number>> {
    let deleted = 0;
    for (let at = 0; at < rows.length; ) {
      const blob = partitionStart(rows[at] as Uint8Array) as Uint8Array;
      let end = at + 1;
      while (end < rows.length && end - at < deletedAtOnceMax && belongs(rows[end] as Uint8Array, blob)) end++;
      if (this.#isOfCopy(blob)) {
        at = end;
        continue;
      }
      const writes = rows.slice(at, end).map((key): RowWrite => ({ kind: "delete", key }));
      const done = await this.#change(held, blob, async () => ok(writes));
      if (!done.ok) return done;
      deleted += done.value;
      at = end;
    }
    for (const blob of blobs) {
      if (this.#isOfCopy(blob)) continue;
      const now = { rules: this.#world.rules, wallMs: this.#world.clock.wallMs() };
      const done = await this.#change(held, blob, async (view) => {
        const planned = await runPlan(this.#world.clock, purgeBlob(blob, now), view);
        return planned.ok ? ok(planned.value.writes) : planned;
      });
      if (done.ok) deleted += done.value;
      else if (!damaged.note(done.failure)) return done;
    }
    return ok(deleted);
  }

  /** Makes one commit in the order of this key; gives how many rows it changed. */
  async #change(
    { engine }: ServingRange,
    lockKey: Uint8Array,
    decide: (view: RowView) => Promise<Outcome<readonly RowWrite[]>>,
  ): Promise<Outcome<number>> {
    let changed = 0;
    const done = await engine.transact(
      [lockKey],
      async (view) => {
        const writes = await decide(view);
        if (!writes.ok) return writes;
        changed = writes.value.length;
        return ok({ result: { case: "done" }, writes: writes.value });
      },
      { timeoutMs: transactTimeoutMs, pipelined: false },
    );
    return done.ok ? ok(changed) : done;
  }

  /** Purges deleted containers whose retention is over. */
  async #purgeKept(held: ServingRange, { kept, damaged }: CollectorScan): Promise<Outcome<number>> {
    let deleted = 0;
    for (const { key, owner } of kept) {
      if (this.#mayBeCopy(owner.account)) continue;
      const purged = await this.#purge(held, key, owner);
      if (purged.ok) deleted += purged.value;
      else if (!damaged.note(purged.failure)) return purged;
    }
    return ok(deleted);
  }

  /** Deletes rows inside of incarnations that are gone for long enough. Returns the number of rows. */
  async #emptyGone(held: ServingRange, { inside, damaged }: CollectorScan, owners: Owners): Promise<Outcome<number>> {
    const { range } = held;
    let deleted = 0;
    for (const owner of inside.values()) {
      if (this.#mayBeCopy(owner.account)) continue;
      const there = await this.#ask(range.table, owner);
      if (!there.ok) {
        if (damaged.note(there.failure)) continue;
        return there;
      }
      if (there.value) {
        if (owners.there.length < ownersMax) owners.there.push(owner);
        else owners.more = true;
        continue;
      }
      const nowMs = this.#world.clock.wallMs();
      const id = idOf(owner);
      const known = `${range.table}/${id}`;
      // A clock that was set back: what it said then is not known any more.
      const sinceMs = Math.min(this.#goneSinceMs.get(known) ?? nowMs, held.engine.goneSinceMs()[id] ?? nowMs, nowMs);
      if (nowMs - sinceMs < this.#options.goneMs) {
        this.#noteGone(known, sinceMs);
        owners.resting.set(id, sinceMs);
        continue;
      }
      const emptied = await this.#empty(held, owner);
      if (!emptied.ok) return emptied;
      deleted += emptied.value;
    }
    return ok(deleted);
  }

  #mayBeCopy(account: string): boolean {
    return this.#world.rules.on("geoCopiesNotCollected") && (this.#options.mayBeCopy?.(account) ?? false);
  }

  /** True if the blob belongs to a copy of an account. Rows of a copy are deleted by its primary stamp only, whose clock decides. */
  #isOfCopy(blob: Uint8Array): boolean {
    const owner = ownerOfRow(blob);
    return owner.kind !== "other" && this.#mayBeCopy(owner.account);
  }

  #noteGone(id: string, sinceMs: number): void {
    const [oldest] = this.#goneSinceMs.keys();
    if (this.#goneSinceMs.size >= ownersMax && oldest !== undefined && !this.#goneSinceMs.has(id)) this.#goneSinceMs.delete(oldest);
    this.#goneSinceMs.set(id, sinceMs);
  }

  /** Purges a container, in the order of its row, because a restore is decided there, too. */
  #purge(held: ServingRange, key: Uint8Array, owner: Incarnation): Promise<Outcome<number>> {
    const wallMs = this.#world.clock.wallMs();
    return this.#change(held, parentRows(owner).low, async (view) => {
      const row = await view.get(key);
      if (!row.ok) return row;
      return ok(row.value !== undefined && mayBePurged(row.value, wallMs) ? [{ kind: "delete", key }] : []);
    });
  }

  async #empty(held: ServingRange, owner: Incarnation): Promise<Outcome<number>> {
    const { range } = held;
    const { low, high } = rowsInside(owner);
    let deleted = 0;
    for (;;) {
      let more = false;
      const done = await this.#change(held, low, async (view) => {
        const rows = await view.scan(atLeast(low, range.low), atMost(high, range.high), { rowsMax: deletedAtOnceMax, bytesMax: 1 << 20 });
        if (!rows.ok) return rows;
        more = rows.value.more;
        return ok(rows.value.rows.map(({ key }) => ({ kind: "delete", key }) as const));
      });
      if (!done.ok) return done;
      deleted += done.value;
      if (!this.#holdings.current(held)) return gone(range.rangeId);
      if (!more) return ok(deleted);
      await sleep(this.#world.clock, (deletedAtOnceMax * 1_000) / this.#options.rowsPerSecond);
    }
  }
}

/** Writes what rests into the metadata of the range, if that is new there: the oldest of it, when it is much. */
async function recordGone(engine: RangeEngine, resting: ReadonlyMap<string, number>): Promise<Outcome<void>> {
  const recorded = engine.goneSinceMs();
  const oldest = [...resting].sort(([, a], [, b]) => a - b).slice(0, goneRecordedMax);
  const isNew = oldest.length !== Object.keys(recorded).length || oldest.some(([id, sinceMs]) => recorded[id] !== sinceMs);
  return isNew ? engine.recordGone(Object.fromEntries(oldest)) : ok();
}

const idOf = ({ account, name, incarnation }: Incarnation): string => `${account}/${name}/${incarnation}`;

const belongs = (key: Uint8Array, blob: Uint8Array): boolean =>
  key.length >= blob.length && compareBytes(key.subarray(0, blob.length), blob) === 0;

const atLeast = (key: Uint8Array, low: Uint8Array): Uint8Array => (compareBytes(key, low) > 0 ? key : low);
const atMost = (key: Uint8Array, high: Uint8Array): Uint8Array => (high.length === 0 || compareBytes(key, high) < 0 ? key : high);

const gone = (rangeId: string): Failed => refused("aborted", "leaseLost", `${rangeId} is not served here any more`);
