/**
 * One look at all rows of a range, piece by piece, so that nothing of the range is kept in memory for long and reads of others go on.
 *
 * A piece shows one moment and never ends inside a PartitionName, but for page rows, where it may end between two chunks: a reference moves
 * from row to row in one commit only inside one PartitionName, and between page rows only inside one chunk. So no reference is overlooked.
 * Tables without blob data are not read: a pass goes from one incarnation to the next.
 *
 * The reports of deposed primaries are hidden rows at the begin of their PartitionName (docs/design/geo.md). A report row is committed before
 * the rows that it tells of are replaced. A piece that goes on inside a PartitionName reads its report rows again: a reference that a row
 * loses between two pieces is seen in the report.
 *
 * A row that can't be read ends no scan: it would be met again by every later one, and nothing of all other accounts would be collected. What it
 * may name is left alone: its blob, its container, or all extents if its references are not known.
 */
import { compareBytes, emptyBytes, FailureError, type Outcome, ok, type Rules } from "@stamp/base";
import {
  BlobGarbage,
  belongingOf,
  type Incarnation,
  type Moment,
  mayBePurged,
  type ObjectTable,
  ownerOfRow,
  partitionStart,
  placesOfRow,
  type RowEntry,
  type RowOwner,
  rowsInside,
  successor,
  type VisitRow,
} from "@stamp/objects";
import { type DataExtent, isMarkerKey } from "@stamp/range-partition";
import type { RowView } from "../operations/engine.ts";
import { DamagedRows } from "./damaged-rows.ts";
import { reportedRow } from "./reported-places.ts";

export interface ExtentUse {
  /** Referred to by rows; bytes that several rows name count several times. */
  liveBytes: number;
  /** Keys of the rows that refer to the extent; undefined: too many, or too much of it lives for a rewrite. */
  rows: Uint8Array[] | undefined;
}

/** Rows and extents of a piece that can be given back. */
export interface PieceGarbage {
  /** Keys of rows that belong to nothing. */
  readonly rows: readonly Uint8Array[];
  /** Keys at which the rows of blobs begin of which something may go. */
  readonly blobs: readonly Uint8Array[];
}

/** Noted in one pass; the others are found by a later one. */
const keptMax = 10_000;
const rowsNotedMax = 50_000;
const rowsOfPiece = 1_000;
const firstPageRowKind = 6;
const stagingKind = 2;

type Inside = Extract<RowOwner, { readonly kind: "inside" }>;

export class CollectorScan {
  rows = 0;
  /** All extents that some row refers to. */
  readonly extents = new Map<number, ExtentUse>();
  /** Incarnations that rows lie inside of; the reader of the pieces clears the map now and then. */
  readonly inside = new Map<string, Incarnation>();
  readonly kept: { readonly key: Uint8Array; readonly owner: Incarnation }[] = [];
  /** False: a row can't be read that may refer to any extent. Then none is given back or rewritten. */
  knowsReferences = true;
  readonly damaged = new DamagedRows();
  readonly #table: ObjectTable;
  readonly #high: Uint8Array;
  readonly #wallMs: number;
  readonly #rules: Rules;
  readonly #garbage: BlobGarbage;
  readonly #mayBeCopy: (account: string) => boolean;
  /** Keyed by extent: bytes of references beyond which it is not rewritten. Only of extents that may be. */
  readonly #rewriteBelow: ReadonlyMap<number, number>;
  #noted = 0;
  /** Key at which the next piece begins; inside of a blob, that of a row. */
  #from: Uint8Array;
  #resume: Uint8Array | undefined;

  constructor(options: {
    readonly table: ObjectTable;
    readonly low: Uint8Array;
    readonly high: Uint8Array;
    readonly now: Moment;
    readonly extents: readonly DataExtent[];
    /** Share of live bytes below which an extent is rewritten. */
    readonly rewriteBelow: number;
    /** True for an account that may be a copy: its primary decides what is purged. */
    readonly mayBeCopy: (account: string) => boolean;
  }) {
    this.#table = options.table;
    this.#from = options.low;
    this.#high = options.high;
    this.#wallMs = options.now.wallMs;
    this.#rules = options.now.rules;
    this.#garbage = new BlobGarbage(options.now);
    this.#mayBeCopy = options.mayBeCopy;
    this.#rewriteBelow = new Map(options.extents.map(({ extentId, lengthBytes }) => [extentId, lengthBytes * options.rewriteBelow]));
  }

  /** Scans one more piece; gives how many rows it had, what is garbage in it, and whether it was the last one. */
  async piece(view: RowView): Promise<Outcome<{ readonly rows: number; readonly garbage: PieceGarbage; readonly last: boolean }>> {
    const resume = this.#resume;
    const before = this.rows;
    let last: Uint8Array = emptyBytes;
    let next: Uint8Array | undefined;
    this.#resume = undefined;
    const visit: VisitRow = (row) => {
      const isHidden = isMarkerKey(row.key);
      if (resume !== undefined && compareBytes(row.key, resume) < 0) return isHidden ? this.#hidden(row) : this.#again(row, resume);
      if (this.rows - before >= rowsOfPiece && this.#mayEndBetween(last, row.key)) {
        next = Uint8Array.from(row.key);
        return undefined;
      }
      last = row.key;
      this.rows++;
      return isHidden ? this.#hidden(row) : this.#note(row);
    };
    const hidden = this.#table === "Blob" && this.#rules.on("geoReportedBytesCount");
    const walked = await view.walk(this.#from, this.#high, visit, { hidden });
    if (!walked.ok) return walked;
    if (next !== undefined) {
      const blob = partitionStart(next);
      const inside = blob !== undefined && samePartition(last, next);
      this.#from = inside ? blob : next;
      this.#resume = inside ? next : undefined;
    }
    const { rows, purge } = this.#garbage.take();
    return ok({ rows: this.rows - before, garbage: { rows, blobs: purge }, last: next === undefined });
  }

  /** Counts the bytes that a report row names (rule `geoReportedBytesCount`); other hidden rows name none. */
  #hidden(row: RowEntry): Uint8Array {
    const read = this.damaged.read(row.key, () => reportedRow(row));
    if (read === undefined) this.knowsReferences = false;
    else if (read.value?.write.kind === "put") this.#references({ key: row.key, value: read.value.write.value });
    return successor(row.key);
  }

  /** Reads rows before the one at which the piece goes on, to know the states there. */
  #again(row: RowEntry, resume: Uint8Array): Uint8Array {
    const owner = ownerOfRow(row.key);
    const prefix = partitionStart(row.key);
    if (owner.kind !== "inside" || prefix === undefined || Number(owner.objectName[0]) > stagingKind) return resume;
    this.#see(prefix, owner, row);
    return successor(row.key);
  }

  #mayEndBetween(last: Uint8Array, next: Uint8Array): boolean {
    if (!samePartition(last, next)) return true;
    const [a, b] = [ownerOfRow(last), ownerOfRow(next)];
    if (a.kind !== "inside" || b.kind !== "inside" || a.objectName[0] !== firstPageRowKind) return false;
    return a.objectName[1] !== b.objectName[1] || a.objectName[2] !== b.objectName[2];
  }

  /** Gives where to look next. */
  #note(row: RowEntry): Uint8Array {
    const owner = ownerOfRow(row.key);
    if (owner.kind === "inside") {
      const id = `${owner.account}/${owner.name}/${owner.incarnation}`;
      if (!this.inside.has(id)) this.inside.set(id, owner);
      if (this.#table !== "Blob") return rowsInside(owner).high;
    }
    // Rows of containers refer to no bytes.
    if (owner.kind === "inside" || belongingOf(row.key)?.inside !== false) this.#references(row);
    if (owner.kind === "inside") {
      const prefix = partitionStart(row.key);
      if (prefix !== undefined) this.#see(prefix, owner, row);
    } else if (owner.kind === "kept" && this.kept.length < keptMax && !this.#mayBeCopy(owner.account)) {
      // Kept rows of copies stay: they would take the places of others.
      const over = this.damaged.read(row.key, () => mayBePurged(row.value, this.#wallMs));
      if (over?.value === true) this.kept.push({ key: Uint8Array.from(row.key), owner });
    }
    return successor(row.key);
  }

  #see(prefix: Uint8Array, { objectName }: Inside, row: RowEntry): void {
    const seen = this.damaged.read(row.key, () => this.#garbage.see(prefix, objectName, row));
    if (seen === undefined) this.#garbage.leave();
  }

  #references({ key, value }: RowEntry): void {
    const places = this.damaged.read(key, () => {
      const found = placesOfRow(value);
      if (!found.ok) throw new FailureError(found.failure);
      return found.value;
    });
    if (places === undefined) this.knowsReferences = false;
    for (const { extentId, lengthBytes } of places?.value ?? []) {
      const most = this.#rewriteBelow.get(extentId);
      const use = this.extents.get(extentId) ?? { liveBytes: 0, rows: most === undefined ? undefined : [] };
      this.extents.set(extentId, use);
      use.liveBytes += lengthBytes;
      if (use.rows === undefined || most === undefined) continue;
      if (use.liveBytes >= most || this.#noted >= rowsNotedMax) {
        this.#noted -= use.rows.length;
        use.rows = undefined;
      } else if (use.rows.at(-1) === undefined || compareBytes(use.rows.at(-1) as Uint8Array, key) !== 0) {
        use.rows.push(Uint8Array.from(key));
        this.#noted++;
      }
    }
  }
}

function samePartition(a: Uint8Array, b: Uint8Array): boolean {
  const [left, right] = [partitionStart(a), partitionStart(b)];
  return left !== undefined && right !== undefined && compareBytes(left, right) === 0;
}
