/**
 * The map at one version: finds the range of a key, and says whether the ranges cover every table without a gap. Immutable.
 */
import { assert, compareBytes, type Failed, type Outcome, ok, refused } from "@stamp/base";
import { byTableAndKey, holdsKey, type Range } from "./range.ts";

export class RangeMap {
  /** Rises with every change, also over leaders. */
  readonly version: number;
  /** Ranges in the order of table and low key. */
  readonly ranges: readonly Range[];
  readonly #byTable = new Map<string, readonly Range[]>();
  readonly #byId: ReadonlyMap<string, Range>;

  /** The ranges must be valid: see checkCover. */
  constructor(version: number, ranges: readonly Range[]) {
    this.version = version;
    this.ranges = [...ranges].sort(byTableAndKey);
    for (const [table, ofTable] of Map.groupBy(this.ranges, (range) => range.table)) this.#byTable.set(table, ofTable);
    this.#byId = new Map(this.ranges.map((range) => [range.rangeId, range]));
  }

  byId(rangeId: string): Range | undefined {
    return this.#byId.get(rangeId);
  }

  /** Returns the ranges with some in place of others that have the same keys together. Refused as by checkCover. */
  with(changed: readonly Range[], gone: ReadonlySet<string>): Outcome<readonly Range[]> {
    const ids = new Set(changed.map(({ rangeId }) => rangeId));
    const ranges = [...this.ranges.filter(({ rangeId }) => !ids.has(rangeId) && !gone.has(rangeId)), ...changed];
    const covered = checkCover(ranges);
    return covered.ok ? ok(ranges) : covered;
  }

  /** Returns undefined while the table has no range. */
  find(table: string, key: Uint8Array): Range | undefined {
    const ranges = this.#byTable.get(table);
    if (!ranges) return undefined;
    let from = 0;
    let to = ranges.length;
    while (to - from > 1) {
      const middle = (from + to) >> 1;
      if (compareBytes((ranges[middle] as Range).low, key) <= 0) from = middle;
      else to = middle;
    }
    const range = ranges[from] as Range;
    assert(holdsKey(range, key), "the ranges of a table cover every key");
    return range;
  }

  /** Returns the ranges of a table that have keys from `low` on, before `high`, in key order. */
  within(table: string, low: Uint8Array, high: Uint8Array): readonly Range[] {
    const found: Range[] = [];
    let range = this.find(table, low);
    for (; range !== undefined && compareBytes(range.low, high) < 0; range = this.after(range)) found.push(range);
    return found;
  }

  /** Returns the range that begins where this one ends; undefined for the last range of a table. */
  after(range: Range): Range | undefined {
    return range.high.length === 0 ? undefined : this.find(range.table, range.high);
  }
}

/** Refuses with `damaged` if a table's ranges overlap, leave a gap, or share an id. */
export function checkCover(ranges: readonly Range[]): Outcome<void> {
  const ids = new Set<string>();
  for (const range of ranges) {
    if (ids.has(range.rangeId)) return broken(`two ranges are called ${range.rangeId}`);
    ids.add(range.rangeId);
  }
  for (const [table, unsorted] of Map.groupBy(ranges, (range) => range.table)) {
    const ofTable = unsorted.sort(byTableAndKey);
    if (ofTable[0]?.low.length !== 0) return broken(`table ${table} does not start at the first key`);
    for (let i = 0; i < ofTable.length; i++) {
      const range = ofTable[i] as Range;
      const next = ofTable[i + 1];
      if (!next) {
        if (range.high.length !== 0) return broken(`table ${table} does not reach the last key`);
      } else if (range.high.length === 0 || compareBytes(range.high, next.low) !== 0) {
        return broken(`table ${table}: ${range.rangeId} does not end where ${next.rangeId} starts`);
      }
    }
  }
  return ok();
}

const broken = (what: string): Failed => refused("dataLoss", "damaged", `partition map: ${what}`);
