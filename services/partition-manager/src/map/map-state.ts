/**
 * The Partition Map of one term: what is durable in its table, and the copy that is served. A change is durable before anybody sees it;
 * who waits for a change (GetMap) is woken by it. The version is the sequence of the commit that made the change, so it rises over terms.
 */
import { compareBytes, type Failed, type Outcome, ok, refused, unknownOutcome, WorkInTurn } from "@stamp/base";
import { checkCover, decodeMapRow, encodeMapRow, mapKey, type Range, RangeMap } from "@stamp/partition-map";
import { atMost, type World } from "@stamp/ports";
import type { OwnTable, TableRow } from "./map-table.ts";

const waitersMax = 10_000;
/** Versions whose changes are kept: a front-end asks again within milliseconds of each. */
const changesMax = 256;
/** Longest wait for a touch, in milliseconds: a lease of the stream manager may have to end, and be taken again. */
const touchTimeoutMs = 30_000;

export interface MapChanges {
  readonly changed: readonly Range[];
  /** Ids of ranges that are not there any more. */
  readonly gone: readonly string[];
}

/** Ranges that are put in place of others which have the same keys together: of `gone`, and of those with the same ids. */
export interface MapChange {
  readonly gone?: readonly Range[];
  readonly changed: readonly Range[];
}

export class MapState {
  readonly #world: Pick<World, "clock" | "rules">;
  readonly #table: OwnTable;
  readonly #waiting = new Set<() => void>();
  /** Ids of ranges that changed or went, by the version since when; each begins where the last one ended. */
  readonly #changes: { readonly from: number; readonly ids: ReadonlySet<string> }[] = [];
  #map: RangeMap;
  /**
   * Failure of a write. The content of the table is not known any more, and the term is over: waiting changes are not
   * written.
   */
  #failed: Failed | undefined;
  readonly #writing = new WorkInTurn();

  private constructor(world: Pick<World, "clock" | "rules">, table: OwnTable, map: RangeMap) {
    this.#world = world;
    this.#table = table;
    this.#map = map;
  }

  static async open(world: Pick<World, "clock" | "rules">, table: OwnTable): Promise<Outcome<MapState>> {
    const rows = await table.readAll();
    if (!rows.ok) return rows;
    const ranges: Range[] = [];
    for (const row of rows.value) {
      const range = decodeMapRow(row.key, row.value);
      if (!range.ok) return range;
      ranges.push(range.value);
    }
    const covered = checkCover(ranges);
    if (!covered.ok) return covered;
    return ok(new MapState(world, table, new RangeMap(table.sequence, ranges)));
  }

  get current(): RangeMap {
    return this.#map;
  }

  /** Lineage of the stamp's metadata store; 0: it was never restored. */
  get lineage(): number {
    return this.#table.lineage ?? 0;
  }

  range(rangeId: string): Range | undefined {
    return this.#map.byId(rangeId);
  }

  /**
   * One change at a time, in the order asked. `plan` is asked when its turn has come, of the map as all before it left it: made from an
   * older one, a change would take another back (rule mapChangedInTurn). Its refusal is the answer, and nothing is written.
   */
  change(plan: (map: RangeMap) => Outcome<MapChange>): Promise<Outcome<void>> {
    const early = this.#world.rules.on("mapChangedInTurn") ? undefined : plan(this.#map);
    return this.#writing.run(() => this.#failed ?? this.#change(early ?? plan(this.#map)));
  }

  async #change(planned: Outcome<MapChange>): Promise<Outcome<void>> {
    if (!planned.ok) return planned;
    const { gone = [], changed } = planned.value;
    if (gone.length === 0 && changed.length === 0) return ok();
    const ids = new Set([...gone, ...changed].map((range) => range.rangeId));
    const next = this.#map.with(changed, new Set(gone.map(({ rangeId }) => rangeId)));
    if (!next.ok) return next;
    const rows = changed.map((range): TableRow => ({ key: mapKey(range), value: encodeMapRow(range) }));
    // A range that begins where one of the changed ones begins has its row there.
    const unused = gone.map(mapKey).filter((key) => !rows.some((row) => compareBytes(row.key, key) === 0));
    const write = this.#table.write([...unused.map((key) => ({ key })), ...rows]);
    const written = await write.catch((error: unknown) => unknownOutcome("internal", "bug", `the map's table: ${String(error)}`));
    if (!written.ok) {
      this.#failed = written;
      return written;
    }
    this.#changes.push({ from: this.#map.version, ids });
    if (this.#changes.length > changesMax) this.#changes.shift();
    this.#map = new RangeMap(written.value, next.value);
    this.wakeAll();
    return ok();
  }

  /**
   * Writes a row as it is. If the newest extent of the table's log has a replica on a node that has died, the log goes on to its next extent
   * now. Otherwise the next change would wait for that: 0.8 s until the append fails, and 0.3 s for the seal. If the touch fails, the content of
   * the table is known all the same.
   */
  touch(): void {
    void this.#writing.run(async () => {
      const [range] = this.#map.ranges;
      if (this.#failed || range === undefined) return;
      await this.#table.write([{ key: mapKey(range), value: encodeMapRow(range) }], touchTimeoutMs);
    });
  }

  /**
   * Returns the changes from `version` to the current map; undefined if they are not known (any more), or are as much
   * as the whole map.
   */
  changesSince(version: number): MapChanges | undefined {
    if (version === this.#map.version) return { changed: [], gone: [] };
    const first = this.#changes.findLastIndex(({ from }) => from === version);
    if (first < 0) return undefined;
    const ids = new Set<string>();
    for (const change of this.#changes.slice(first)) for (const id of change.ids) ids.add(id);
    if (ids.size >= this.#map.ranges.length) return undefined;
    return {
      changed: this.#map.ranges.filter(({ rangeId }) => ids.has(rangeId)),
      gone: [...ids].filter((rangeId) => this.#map.byId(rangeId) === undefined),
    };
  }

  /** Returns the map when its version differs from the known one, or after `waitMs`. */
  async newerThan(version: number, waitMs: number): Promise<Outcome<RangeMap>> {
    if (this.#map.version !== version || waitMs <= 0) return ok(this.#map);
    if (this.#waiting.size >= waitersMax)
      return refused("resourceExhausted", "overloaded", `${waitersMax} callers wait for a change of the map`);
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        timer.cancel();
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = atMost(this.#world.clock, waitMs, wake);
      this.#waiting.add(wake);
    });
    return ok(this.#map);
  }

  wakeAll(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}
