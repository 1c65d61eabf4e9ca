/**
 * Reports what only this stamp has of one range, after a forced failover deposed it (docs/design/geo-shipping.md "Report of a deposed
 * primary").
 *
 *     commits behind the follower's cursor ──► versions of their PartitionNames at the new primary ──► report rows ──► cursor
 *
 * Invariants:
 * - A commit that the new primary had when it was promoted is not in the report (rule `geoReportLacksShipped`).
 * - The follower's cursor passes a commit when its report rows are durable. A new owner of the range goes on there.
 * - A report row has its place by its commit: written twice, it is there once.
 */
import { compareBytes, FailureError, type Outcome, ok, refused, toHex } from "@stamp/base";
import { isDiverged, type RowVersion } from "@stamp/geo";
import type { World } from "@stamp/ports";
import type { LogFollowers } from "../followers/log-followers.ts";
import type { LoggedCommit } from "../followers/recent-commits.ts";
import type { ScanRange } from "../scan-range.ts";
import { isMarkerKey } from "../shipping/marker.ts";
import type { RowScan } from "../tables.ts";
import type { DecidedWrites, RowWrite, Transaction, TransactOptions } from "../types.ts";
import { decodeReportRow, encodeReportRow, isReportKey, type ReportRow, reportKey } from "./report-row.ts";

/** The range that was deposed. */
export interface ReportedRange {
  readonly followers: LogFollowers;
  transact<T>(
    lockKey: Uint8Array | readonly Uint8Array[],
    decide: (transaction: Transaction) => Promise<DecidedWrites<T>>,
    options: TransactOptions,
  ): Promise<Outcome<T>>;
}

/** The way to the new primary. */
export interface VersionsLink {
  /** Returns the version up to which each PartitionName was shipped there, in the order of the names; undefined: nothing was. */
  versions(
    names: readonly Uint8Array[],
    options: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<Outcome<readonly (RowVersion | undefined)[]>>;
}

export interface ReportOptions {
  /** Name of the follower that shipped the range. */
  readonly follower: string;
  /** Role epoch under which the range was shipped. */
  readonly epoch: number;
  /** Lineage of the range's log. */
  readonly lineage?: number;
  /** Number of the failover. */
  readonly operation: number;
  /** Last commit of the report. */
  readonly upTo: number;
  readonly nameOf: (key: Uint8Array) => Uint8Array | undefined;
  readonly signal: AbortSignal;
}

/** Bounds of the commits for which the new primary is asked at once. */
const askedBytesMax = 512 * 1024;
const askedNamesMax = 1_000;
/** Bound of one transaction, in bytes. A larger row goes alone. */
const writtenBytesMax = 1024 * 1024;
const timeoutMs = 10_000;

interface Lane {
  readonly name: Uint8Array;
  readonly commits: { readonly sequence: number; readonly writes: RowWrite[] }[];
}

/** Resolves when every commit up to `upTo` is either at the new primary or in the report, durably. Returns the number of reported rows. */
export async function reportRange(
  world: World,
  range: ReportedRange,
  link: VersionsLink,
  options: ReportOptions,
): Promise<Outcome<number>> {
  const { follower, upTo, signal } = options;
  const from = range.followers.status(follower)?.acknowledged;
  if (from === undefined) return lost;
  const batch = new Batch(options.nameOf);
  let reported = 0;
  const flush = async (last: number): Promise<Outcome<void>> => {
    const written = await reportBatch(world, range, link, batch.take(), options);
    if (!written.ok) return written;
    reported += written.value;
    range.followers.sent(follower, last);
    range.followers.acknowledged(follower, last);
    return ok();
  };
  try {
    for await (const commit of range.followers.commitsFor(follower, from)) {
      if (commit.sequence > upTo || signal.aborted) break;
      batch.add(commit);
      if (!batch.isFull) continue;
      const flushed = await flush(commit.sequence);
      if (!flushed.ok) return flushed;
    }
  } catch (error) {
    if (error instanceof FailureError) return { ok: false, failure: error.failure };
    throw error;
  }
  if (signal.aborted || range.followers.isOver) return refused("cancelled", "cancelled", "the range is not here any more");
  if (range.followers.status(follower) === undefined) return lost;
  const flushed = await flush(Math.max(from, upTo));
  if (!flushed.ok) return flushed;
  const recorded = await range.followers.record();
  return recorded.ok ? ok(reported) : recorded;
}

const lost = refused("dataLoss", "damaged", "the log behind the copy is not kept any more");

/** Commits for which the new primary is asked at once, by PartitionName. */
class Batch {
  readonly #nameOf: ReportOptions["nameOf"];
  #lanes = new Map<string, Lane>();
  #bytes = 0;

  constructor(nameOf: ReportOptions["nameOf"]) {
    this.#nameOf = nameOf;
  }

  get isFull(): boolean {
    return this.#bytes >= askedBytesMax || this.#lanes.size >= askedNamesMax / 2;
  }

  add({ sequence, writes }: LoggedCommit): void {
    for (const write of writes) {
      const name = isMarkerKey(write.key) ? undefined : this.#nameOf(write.key);
      if (name === undefined) continue;
      const text = toHex(name);
      const lane = this.#lanes.get(text) ?? { name, commits: [] };
      this.#lanes.set(text, lane);
      const last = lane.commits.at(-1);
      if (last?.sequence === sequence) last.writes.push(write);
      else lane.commits.push({ sequence, writes: [write] });
      this.#bytes += sizeOf(write);
    }
  }

  /** Returns the lanes in the order of the names. */
  take(): Lane[] {
    const lanes = [...this.#lanes.values()].sort((a, b) => compareBytes(a.name, b.name));
    this.#lanes = new Map();
    this.#bytes = 0;
    return lanes;
  }
}

const sizeOf = (write: RowWrite): number => write.key.length + (write.kind === "put" ? write.value.length : 0);

async function reportBatch(
  world: World,
  range: ReportedRange,
  link: VersionsLink,
  lanes: readonly Lane[],
  { epoch, lineage, operation, signal }: ReportOptions,
): Promise<Outcome<number>> {
  const rows: { readonly name: Uint8Array; readonly write: RowWrite }[] = [];
  for (let at = 0; at < lanes.length; at += askedNamesMax) {
    const asked = lanes.slice(at, at + askedNamesMax);
    const told = await link.versions(
      asked.map(({ name }) => name),
      { timeoutMs, signal },
    );
    if (!told.ok) return told;
    for (const [i, { name, commits }] of asked.entries()) {
      for (const { sequence, writes } of commits) {
        if (!isDiverged({ epoch, lineage, number: sequence }, told.value[i], world.rules)) continue;
        for (const [index, write] of writes.entries()) {
          const key = reportKey(name, { operation, sequence, index });
          rows.push({ name, write: { kind: "put", key, value: encodeReportRow(name, write) } });
        }
      }
    }
  }
  for (let at = 0; at < rows.length; ) {
    const some = rows.slice(at, at + fitting(rows, at));
    const names = [...new Map(some.map(({ name }) => [toHex(name), name])).values()];
    const writes = some.map(({ write }) => write);
    const written = await range.transact(names, async () => ({ writes, result: undefined }), { timeoutMs });
    if (!written.ok) return written;
    at += some.length;
  }
  return ok(rows.length);
}

/** Returns the number of rows from a place on that one transaction writes. */
function fitting(rows: readonly { readonly write: RowWrite }[], at: number): number {
  let bytes = 0;
  let count = 0;
  for (const { write } of rows.slice(at)) {
    bytes += sizeOf(write);
    if (count > 0 && bytes > writtenBytesMax) break;
    count++;
  }
  return count;
}

export interface ReportPage {
  readonly rows: readonly ReportRow[];
  /** Key at which the next page begins; undefined: there is none. */
  readonly next: Uint8Array | undefined;
}

/** Bounds of one page. Other rows between those of the report are looked at, too. */
const pageRowsMax = 500;
const pageBytesMax = 1024 * 1024;
const lookedRowsMax = 20_000;

export interface ForgottenPage {
  readonly rows: number;
  /** Key at which the next call begins; undefined: there is nothing more. */
  readonly next: Uint8Array | undefined;
}

/** Deletes a page of the report's rows between two keys, in one transaction. Throws FailureError for a damaged row. */
export async function forgetPage(
  range: Pick<ReportedRange, "transact"> & { scan(range: ScanRange): RowScan },
  keys: { readonly low: Uint8Array; readonly high: Uint8Array },
  nameOf: ReportOptions["nameOf"],
): Promise<Outcome<ForgottenPage>> {
  const { rows, next } = await reportPage(range, keys, nameOf);
  if (rows.length === 0) return ok({ rows: 0, next });
  const names = [...new Map(rows.map(({ name }) => [toHex(name), name])).values()];
  const writes = rows.map((row): RowWrite => ({ kind: "delete", key: reportKey(row.name, row) }));
  const deleted = await range.transact(names, async () => ({ writes, result: undefined }), { timeoutMs });
  return deleted.ok ? ok({ rows: rows.length, next }) : deleted;
}

/** Returns a page of the report's rows between two keys. Throws FailureError for a damaged one. */
export async function reportPage(
  range: { scan(range: ScanRange): RowScan },
  { low, high }: { readonly low: Uint8Array; readonly high: Uint8Array },
  nameOf: ReportOptions["nameOf"],
): Promise<ReportPage> {
  const rows: ReportRow[] = [];
  let [bytes, looked] = [0, 0];
  for await (const [key, value] of range.scan({ gte: low, lt: high, background: true, hidden: true })) {
    if (rows.length >= pageRowsMax || bytes >= pageBytesMax || looked >= lookedRowsMax) return { rows, next: key };
    looked++;
    const name = isMarkerKey(key) ? nameOf(key) : undefined;
    if (name === undefined || !isReportKey(key, name)) continue;
    const row = decodeReportRow(key, name, value);
    if (!row.ok) throw new FailureError(row.failure);
    rows.push(row.value);
    bytes += value.length;
  }
  return { rows, next: undefined };
}
