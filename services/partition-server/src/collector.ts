/**
 * Gives back what nobody can reach any more, in the background: rows inside deleted containers, tables and queues, and extents of blob data
 * to which no row refers.
 *
 * Order (model/container.pml): the incarnation is noted first, from a row that is inside it, and whether it is still there is asked after:
 * an incarnation that is not there then never comes back. What is live in blob data is known from the
 * references that a whole scan finds, never by counting deletes; the scan sees every reference, because none may be made to these extents
 * from before it on (RangePartition.leaveExtents).
 */
import { compareBytes, emptyBytes, type Failed, FailureError, type Outcome, ok, refused } from "@stamp/base";
import {
  extentsOfRow,
  type Incarnation,
  mayBePurged,
  type ObjectTable,
  ownerOfRow,
  parentRows,
  partitionStart,
  rowsInside,
  successor,
} from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import { jittered, sleep, type World } from "@stamp/ports";
import type { Holdings, Serving } from "./holdings.ts";

export interface Collected {
  readonly rows: number;
  readonly rowsDeleted: number;
  readonly extents: number;
  readonly extentsDropped: number;
}

/** Which incarnations are there, wherever their rows are. */
export type AskIncarnations = (table: ObjectTable, of: Pick<Incarnation, "account" | "name">) => Promise<Outcome<readonly number[]>>;

export interface CollectorOptions {
  readonly everyMs: number;
  /** Extents are looked at when they were sealed for so long: whoever put bytes there has made a row of them or never will. */
  readonly extentAgeMs: number;
  readonly rowsPerSecond: number;
}

/** Of one commit. */
const deletedAtOnceMax = 500;
/** Noted in one pass; the others are found by a later one. */
const incarnationsMax = 10_000;
const rowsBetweenPauses = 1_000;
const transactTimeoutMs = 30_000;

export class Collector {
  readonly #world: World;
  readonly #holdings: Holdings;
  readonly #ask: AskIncarnations;
  readonly #options: CollectorOptions;
  /** By extent: since when it is known to be sealed. Of ranges that are served here. */
  readonly #sealedSinceMs = new Map<number, number>();
  /** By range: the sequence at which it was collected last. */
  readonly #collectedAt = new Map<string, number>();
  #busy = false;

  constructor(world: World, holdings: Holdings, ask: AskIncarnations, options: CollectorOptions) {
    this.#world = world;
    this.#holdings = holdings;
    this.#ask = ask;
    this.#options = options;
  }

  /** Every range in turn, for as long as the process runs. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, logger } = this.#world;
    while (!signal.aborted) {
      await sleep(clock, jittered(random, this.#options.everyMs), signal);
      for (const { range } of this.#holdings.all) {
        if (signal.aborted) return;
        const held = this.#holdings.servingAny(range.rangeId);
        if (!held.ok || this.#collectedAt.get(range.rangeId) === held.value.engine.facts.sequence) continue;
        const collected = await this.collect(held.value);
        if (!collected.ok) logger.info("range not collected, later", { range: range.rangeId, ...collected.failure });
      }
    }
  }

  /** One pass over one range. */
  async collect(held: Serving): Promise<Outcome<Collected>> {
    if (this.#busy) return refused("unavailable", "rangeChanging", "another range is collected now: try again later");
    this.#busy = true;
    try {
      return await this.#collect(held);
    } catch (error) {
      if (error instanceof FailureError) return { ok: false, failure: error.failure };
      throw error;
    } finally {
      await held.engine.dropExtents(new Set(), transactTimeoutMs);
      this.#busy = false;
    }
  }

  async #collect(held: Serving): Promise<Outcome<Collected>> {
    const { range, engine } = held;
    const startedMs = this.#world.clock.monotonicMs();
    const { sequence } = engine.facts;
    const old = this.#oldExtents(held);
    await engine.leaveExtents(old);
    const seen = await this.#scan(held);
    if (!seen.ok) return seen;
    const unreferenced = new Set(old.filter((extentId) => !seen.value.extents.has(extentId)));
    const dropped = await engine.dropExtents(unreferenced, transactTimeoutMs);
    if (!dropped.ok) return dropped;
    for (const extentId of dropped.value) this.#sealedSinceMs.delete(extentId);
    const deleted = await this.#deleteUnreachable(held, seen.value);
    if (!deleted.ok) return deleted;
    this.#collectedAt.set(range.rangeId, sequence);
    const collected = { rows: seen.value.rows, rowsDeleted: deleted.value, extents: old.length, extentsDropped: dropped.value.length };
    if (collected.rowsDeleted > 0 || collected.extentsDropped > 0) {
      const tookMs = Math.round(this.#world.clock.monotonicMs() - startedMs);
      this.#world.logger.info("range collected", { range: range.rangeId, ...collected, tookMs });
    }
    return ok(collected);
  }

  #oldExtents({ engine }: Serving): readonly number[] {
    const nowMs = this.#world.clock.monotonicMs();
    const sealed = engine.sealedDataExtents();
    for (const extentId of sealed) if (!this.#sealedSinceMs.has(extentId)) this.#sealedSinceMs.set(extentId, nowMs);
    return sealed.filter((extentId) => nowMs - (this.#sealedSinceMs.get(extentId) as number) >= this.#options.extentAgeMs);
  }

  /** Everything of the range at one moment. */
  async #scan(held: Serving): Promise<Outcome<Seen>> {
    const { range, engine } = held;
    const seen: Seen = { rows: 0, extents: new Set(), inside: new Map(), kept: [] };
    let from = range.low;
    for (;;) {
      // Piece by piece, so that the scan keeps nothing of the range in memory for long; a reference moves from row to row in one commit
      // only inside one PartitionName, and a piece never ends inside one.
      const piece = await engine.read(async (view) => {
        let rows = 0;
        let last = emptyBytes;
        let next: Uint8Array | undefined;
        const walked = await view.walk(from, endOf(range), ({ key, value }) => {
          if (rows >= rowsBetweenPauses && !samePartition(last, key)) {
            next = Uint8Array.from(key);
            return undefined;
          }
          last = key;
          rows++;
          this.#note(seen, key, value);
          return successor(key);
        });
        return walked.ok ? ok({ rows, next }) : walked;
      });
      if (!piece.ok) return piece;
      seen.rows += piece.value.rows;
      if (!this.#holdings.current(held)) return gone(range.rangeId);
      if (piece.value.next === undefined) return ok(seen);
      from = piece.value.next;
      await sleep(this.#world.clock, (piece.value.rows * 1_000) / this.#options.rowsPerSecond);
    }
  }

  #note(seen: Seen, key: Uint8Array, value: Uint8Array): void {
    const extents = extentsOfRow(value);
    if (!extents.ok) throw new FailureError(extents.failure);
    for (const extentId of extents.value) seen.extents.add(extentId);
    const owner = ownerOfRow(key);
    if (owner.kind === "inside") {
      const id = `${owner.account}/${owner.name}/${owner.incarnation}`;
      if (!seen.inside.has(id) && seen.inside.size < incarnationsMax) seen.inside.set(id, owner);
    } else if (owner.kind === "kept" && mayBePurged(value, this.#world.clock.wallMs())) {
      seen.kept.push({ key: Uint8Array.from(key), owner });
    }
  }

  async #deleteUnreachable(held: Serving, seen: Seen): Promise<Outcome<number>> {
    let deleted = 0;
    for (const { key, owner } of seen.kept) {
      const purged = await this.#purge(held, key, owner);
      if (!purged.ok) return purged;
      deleted += purged.value;
    }
    for (const owner of seen.inside.values()) {
      const there = await this.#ask(held.range.table, owner);
      if (!there.ok) return there;
      if (there.value.includes(owner.incarnation)) continue;
      const emptied = await this.#empty(held, owner);
      if (!emptied.ok) return emptied;
      deleted += emptied.value;
    }
    return ok(deleted);
  }

  /** In the order of the container's row: restoring it is decided there too. */
  async #purge({ engine }: Serving, key: Uint8Array, owner: Incarnation): Promise<Outcome<number>> {
    const wallMs = this.#world.clock.wallMs();
    let purged = 0;
    const done = await engine.transact(
      [parentRows(owner).low],
      async (view) => {
        const row = await view.get(key);
        if (!row.ok) return row;
        purged = row.value !== undefined && mayBePurged(row.value, wallMs) ? 1 : 0;
        return ok({ result: { case: "done" }, writes: purged === 0 ? [] : [{ kind: "delete", key }] });
      },
      { timeoutMs: transactTimeoutMs, pipelined: false },
    );
    return done.ok ? ok(purged) : done;
  }

  async #empty(held: Serving, owner: Incarnation): Promise<Outcome<number>> {
    const { engine, range } = held;
    const { low, high } = rowsInside(owner);
    let deleted = 0;
    for (;;) {
      let more = false;
      const done = await engine.transact(
        [low],
        async (view) => {
          const rows = await view.scan(atLeast(low, range.low), atMost(high, range.high), { rowsMax: deletedAtOnceMax, bytesMax: 1 << 20 });
          if (!rows.ok) return rows;
          more = rows.value.more;
          deleted += rows.value.rows.length;
          return ok({ result: { case: "done" }, writes: rows.value.rows.map(({ key }) => ({ kind: "delete", key }) as const) });
        },
        { timeoutMs: transactTimeoutMs, pipelined: false },
      );
      if (!done.ok) return done;
      if (!this.#holdings.current(held)) return gone(range.rangeId);
      if (!more) return ok(deleted);
      await sleep(this.#world.clock, (deletedAtOnceMax * 1_000) / this.#options.rowsPerSecond);
    }
  }
}

interface Seen {
  rows: number;
  /** To which some row refers. */
  readonly extents: Set<number>;
  readonly inside: Map<string, Incarnation>;
  readonly kept: { readonly key: Uint8Array; readonly owner: Incarnation }[];
}

function samePartition(a: Uint8Array, b: Uint8Array): boolean {
  const [left, right] = [partitionStart(a), partitionStart(b)];
  return left !== undefined && right !== undefined && compareBytes(left, right) === 0;
}

/** Behind every key: they begin with the tag of a component. */
const afterAllKeys = Uint8Array.of(0xff);
const endOf = ({ high }: Range): Uint8Array => (high.length === 0 ? afterAllKeys : high);

const atLeast = (key: Uint8Array, low: Uint8Array): Uint8Array => (compareBytes(key, low) > 0 ? key : low);
const atMost = (key: Uint8Array, high: Uint8Array): Uint8Array => (high.length === 0 || compareBytes(key, high) < 0 ? key : high);

const gone = (rangeId: string): Failed => refused("aborted", "leaseLost", `${rangeId} is not served here any more`);
