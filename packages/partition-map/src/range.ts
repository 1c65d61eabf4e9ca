/** A range partition as the map knows it: which keys of a table, which streams, and who serves it under which epochs. */
import { compareBytes, emptyBytes } from "@stamp/base";
import { hasBlobData, type ObjectTable } from "@stamp/objects";

export interface RangeStreams {
  readonly metadata: string;
  readonly commitLog: string;
  readonly rowData: string;
  /** Name of the blob data stream; empty for tables without blob data. */
  readonly blobData: string;
}

/** A range that is to come: its streams are named after its id, and created with its owner epoch. */
export interface ChildRange {
  readonly rangeId: string;
  readonly ownerEpoch: number;
}

export type Reshape =
  | { readonly kind: "split"; readonly at: Uint8Array; readonly children: readonly [ChildRange, ChildRange] }
  /** Merge: both parents' rows hold this record; `parents` in the order of keys. */
  | { readonly kind: "merge"; readonly parents: readonly [string, string]; readonly children: readonly [ChildRange] };

/** A range that a split or merge replaced, with what the streams of its descendant begin with. */
export interface Origin {
  readonly rangeId: string;
  /** `all`: metadata, log, rows and blob data. `state`: all but the log. `data`: rows and blob data. */
  readonly left: "all" | "state" | "data";
}

export interface Range {
  readonly rangeId: string;
  readonly table: ObjectTable;
  /** First key of the range, inclusive; empty: from the start. */
  readonly low: Uint8Array;
  /** End of the range, exclusive; empty: to the end. */
  readonly high: Uint8Array;
  /** Raised by split, merge and move. */
  readonly rangeVersion: number;
  /** Owner epoch of the range's streams, larger than every earlier one; 0: never assigned. */
  readonly ownerEpoch: number;
  readonly streams: RangeStreams;
  /** Name of the server; empty while nobody serves the range. */
  readonly server: string;
  readonly serverAddress: string;
  /** Epoch of the server's lease at the assignment. */
  readonly leaseEpoch: number;
  /** True if the server said that it serves the range under this owner epoch. */
  readonly loaded: boolean;
  /** True if its streams are there: it was served once, or left to it by others. Streams that are gone then are not made again, empty. */
  readonly hasStreams: boolean;
  /** Recorded split or merge of the range that is not over. */
  readonly reshape?: Reshape;
  /**
   * Ranges that it came from, oldest first, the last `originsMax`; absent: none. Their streams are gone, unless the metadata were restored from a
   * copy that is older than the split or merge: then its own streams have to be made of theirs.
   */
  readonly origins?: readonly Origin[];
}

export const originsMax = 24;

export const holdsKey = (range: Pick<Range, "low" | "high">, key: Uint8Array): boolean =>
  compareBytes(range.low, key) <= 0 && (range.high.length === 0 || compareBytes(key, range.high) < 0);

export const byTableAndKey = (a: Range, b: Range): number =>
  a.table === b.table ? compareBytes(a.low, b.low) : a.table < b.table ? -1 : 1;

/** True if a row can lie in both ranges. */
export const overlap = (a: Pick<Range, "table" | "low" | "high">, b: Pick<Range, "table" | "low" | "high">): boolean =>
  a.table === b.table &&
  (a.high.length === 0 || compareBytes(b.low, a.high) < 0) &&
  (b.high.length === 0 || compareBytes(a.low, b.high) < 0);

/** Returns the first range of a table: all keys, not assigned yet. */
export function firstRangeOf(table: ObjectTable): Range {
  const rangeId = `${table.toLowerCase()}-1`;
  return {
    rangeId,
    table,
    low: emptyBytes,
    high: emptyBytes,
    rangeVersion: 1,
    ownerEpoch: 0,
    streams: streamsOf(rangeId, table),
    server: "",
    serverAddress: "",
    leaseEpoch: 0,
    loaded: false,
    hasStreams: false,
  };
}

/** Returns the names of a range's streams, made of its id, which is never used again. */
export function streamsOf(rangeId: string, table: ObjectTable): RangeStreams {
  const below = `/ps/${rangeId}`;
  return {
    metadata: `${below}/metadata`,
    commitLog: `${below}/commit-log`,
    rowData: `${below}/row-data`,
    blobData: hasBlobData(table) ? `${below}/blob-data` : "",
  };
}

/** Key behind every key: they begin with the tag of a component. */
const afterAllKeys = Uint8Array.of(0xff);

/** Returns where a walk over a range ends, exclusive. */
export const rangeEnd = ({ high }: Pick<Range, "high">): Uint8Array => (high.length === 0 ? afterAllKeys : high);
