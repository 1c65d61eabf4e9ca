/**
 * History of an account at two stamps, and its judge. Every write of a PartitionName names the state that it was made from, and is refused if
 * another one is there. So the states of a PartitionName are a tree, and what a stamp has done is a path in it.
 *
 * Judged at the end, when both stamps have the same states (the final path leads to them):
 * - An acknowledged write is on the final path, unless a forced failover lost it: its stamp acknowledged it, it was called before that stamp
 *   answered `demote`, and its Timestamp is after the Last Sync Time that was told.
 * - Every state that a secondary showed is on the final path: the secondary is a prefix of its primary at every moment. A stamp that
 *   has shown a state shows no earlier one afterwards.
 * - A secondary shows every acknowledged write whose Timestamp is at or before a Last Sync Time that was told before the question. A write may
 *   have its Timestamp long after it was called: while no server serves its range.
 * - A stamp shows, under the account's own name, what it has acknowledged.
 * - A stamp acknowledges nothing that was called a term of the caches after it knew that it is no primary, while it is none.
 * - The report of a primary that was deposed by force has every acknowledged write that the failover lost, as it was, and none that the new
 *   primary has. A merge joins commits, and may repeat those that the new primary has (docs/design/geo-shipping.md): then the report has the rows.
 */
import { present } from "@stamp/base";
import { BrokenPromise } from "@stamp/virtual-time";
import type { StampName } from "./location.ts";

/** Row of a PartitionName: the write that made it. */
export type Rows = ReadonlyMap<string, number>;

interface State {
  readonly id: number;
  readonly name: string;
  readonly parent: number;
  readonly depth: number;
  readonly rows: Rows;
  readonly calledMs: number;
  /** Stamp that acknowledged it; undefined: none did. */
  stamp?: StampName;
  /** Timestamp that the acknowledgement told, in milliseconds since 1970. */
  writtenMs?: number;
  /** Time at which the acknowledgement arrived. */
  answeredMs?: number;
}

interface Shown {
  readonly name: string;
  readonly id: number;
  readonly stamp: StampName;
  readonly secondary: boolean;
  readonly calledMs: number;
  /** Largest Last Sync Time that was told before the question. */
  readonly syncedMs: number;
  /** Deepest state that the stamp had acknowledged before the question. */
  readonly own: number;
}

/** A forced failover that was asked for. */
export interface Forced {
  readonly source: StampName;
  readonly target: StampName;
  /** Time at which another stamp was seen to be primary last. */
  readonly sinceMs: number;
  /** Time at which the old primary was seen to have answered `demote`; Infinity: it was not. */
  endMs: number;
  /** Number of the operation; undefined: it may never have begun. */
  operation?: number;
  /** Report of the old primary, complete; undefined: none was read, or it was given up. */
  report?: readonly ReportedCommit[];
  /** True if ranges of the old primary were merged before. */
  merged?: boolean;
}

/** One commit of a name in the report of a deposed primary. */
export interface ReportedCommit {
  readonly name: string;
  /** Number of the failover. */
  readonly operation: number;
  /** Write that each row is of; undefined: the commit deleted it. A blob's rows are not told. */
  readonly rows: ReadonlyMap<string, number | undefined>;
}

/** A stamp was no primary of the account, and knew it. */
export interface Rest {
  readonly stamp: StampName;
  readonly role: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Front-ends act on the role of an account with a second stamp for 1 s after they read it; their clocks may be slow. */
const cachedMs = 1_100;

/** Numbers of what was judged. */
type Judged = Readonly<Record<string, number>>;

/** State of a PartitionName without rows. */
export const empty = 0;

export class GeoHistory {
  readonly forced: Forced[] = [];
  readonly #states: State[] = [];
  readonly #shown: Shown[] = [];
  readonly #rests: Rest[] = [];
  readonly #told: { readonly stamp: StampName; readonly atMs: number; readonly lastSyncMs: number }[] = [];
  readonly #own = new Map<string, number>();
  #syncedMs = 0;

  /** Notes that a write is called. Returns its number, which is that of the state after it. */
  called(name: string, parent: number, rowsOf: (id: number) => Rows, calledMs: number): number {
    const id = this.#states.length + 1;
    const depth = this.#depth(parent) + 1;
    this.#states.push({ id, name, parent, depth, rows: rowsOf(id), calledMs });
    return id;
  }

  acknowledged(id: number, stamp: StampName, writtenMs: number, answeredMs: number): void {
    const state = this.#state(id);
    state.stamp = stamp;
    state.writtenMs = writtenMs;
    state.answeredMs = answeredMs;
    const own = ownKey(stamp, state.name);
    if (this.#depth(this.#own.get(own) ?? empty) < state.depth) this.#own.set(own, id);
  }

  rowsOf(id: number): Rows {
    return id === empty ? new Map() : this.#state(id).rows;
  }

  /** Returns the number of the last write that `stamp` acknowledged. */
  ownOf(stamp: StampName, name: string): number {
    return this.#own.get(ownKey(stamp, name)) ?? empty;
  }

  get syncedMs(): number {
    return this.#syncedMs;
  }

  told(stamp: StampName, atMs: number, lastSyncMs: number): void {
    this.#told.push({ stamp, atMs, lastSyncMs });
    this.#syncedMs = Math.max(this.#syncedMs, lastSyncMs);
  }

  rested(rest: Rest): void {
    this.#rests.push(rest);
  }

  /** A stamp showed all rows of a PartitionName. Throws if they are no state of it. Returns the state's number. */
  shown(question: Omit<Shown, "id">, rows: Rows): number {
    const { name, stamp, secondary } = question;
    const id = rows.get(lastRow) ?? empty;
    const state = id === empty ? undefined : this.#states[id - 1];
    const where = `${secondary ? "the copy at " : ""}stamp ${stamp} shows of ${name}`;
    if (id !== empty && state?.name !== name) throw new BrokenPromise(`${where} write ${id}, which is none of it`);
    const expected = this.rowsOf(id);
    const same = expected.size === rows.size && [...expected].every(([row, write]) => rows.get(row) === write);
    if (!same) throw new BrokenPromise(`${where} ${rowsText(rows)}; write ${id} left ${rowsText(expected)}`);
    this.#shown.push({ ...question, id });
    return id;
  }

  /** `finals`: the state of each PartitionName, the same at both stamps. */
  judge(finals: ReadonlyMap<string, number>): Judged {
    const path = new Set<number>([empty]);
    for (const id of finals.values()) for (let at = id; at !== empty; at = this.#state(at).parent) path.add(at);
    const acknowledged = this.#states.filter(({ stamp }) => stamp !== undefined);
    const lost = acknowledged.filter(({ id }) => !path.has(id));
    for (const state of acknowledged) this.#judgeAccepted(state);
    for (const { report = [], merged = false } of this.forced) for (const commit of report) this.#judgeReported(commit, path, merged);
    for (const state of lost) this.#judgeLost(state);
    const deepest = new Map<string, number>();
    for (const shown of this.#shown) this.#judgeShown(shown, path, deepest);
    const reports = this.forced.flatMap(({ report }) => (report === undefined ? [] : [report]));
    return {
      acknowledged: acknowledged.length,
      lost: lost.length,
      "lost and reported": lost.filter((state) => this.#failoverOf(state)?.report !== undefined).length,
      reports: reports.length,
      "reported commits": reports.flat().length,
      shown: this.#shown.length,
      "times without a primary's role": this.#rests.length,
    };
  }

  #judgeAccepted({ id, name, stamp, calledMs, answeredMs = 0 }: State): void {
    const rest = this.#rests.find((one) => one.stamp === stamp && calledMs > one.fromMs + cachedMs && answeredMs < one.toMs);
    if (rest === undefined) return;
    const { role, fromMs, toMs } = rest;
    const when = `${at(calledMs)} to ${at(answeredMs)}`;
    throw new BrokenPromise(
      `write ${id} of ${name} was acknowledged by stamp ${stamp}, ${when}, which was ${role} and knew it, ${at(fromMs)} to ${at(toMs)}`,
    );
  }

  /** Returns the forced failover that may have lost a write. */
  #failoverOf({ stamp, calledMs }: State): Forced | undefined {
    return this.forced.find(({ source, sinceMs, endMs }) => source === stamp && calledMs >= sinceMs && calledMs < endMs);
  }

  /** A commit of a report is a write as it was, and the new primary lacks it. The rows of a blob are not told. */
  #judgeReported({ name, operation, rows }: ReportedCommit, path: ReadonlySet<number>, merged: boolean): void {
    if (rows.size === 0 || merged) return;
    const id = rows.get(lastRow);
    const where = `the report of failover ${operation} has of ${name}`;
    const state = id === undefined ? undefined : this.#states[id - 1];
    if (state?.name !== name) throw new BrokenPromise(`${where} ${reportedText(rows)}, which no write left`);
    const before = this.rowsOf(state.parent);
    const changed = [...new Set([...before.keys(), ...state.rows.keys()])].filter((row) => before.get(row) !== state.rows.get(row));
    if (changed.length !== rows.size || changed.some((row) => rows.get(row) !== state.rows.get(row)))
      throw new BrokenPromise(`${where} ${reportedText(rows)}, and write ${id} changed ${changed.join(", ")}`);
    if (path.has(state.id)) throw new BrokenPromise(`${where} write ${id}, which the new primary has`);
  }

  #isReported({ id, name }: State, report: readonly ReportedCommit[], merged: boolean): boolean {
    return report.some((commit) => {
      if (commit.name !== name) return false;
      const last = commit.rows.get(lastRow);
      if (commit.rows.size === 0 || last === id) return true;
      // A merge may have left the rows of a later write only.
      return merged && last !== undefined && this.#isBehind(last, id);
    });
  }

  #isBehind(later: number, earlier: number): boolean {
    for (let at = later; at !== empty; at = this.#state(at).parent) if (at === earlier) return true;
    return false;
  }

  #judgeLost(state: State): void {
    const { id, name, stamp, calledMs, writtenMs = 0 } = state;
    const failover = this.#failoverOf(state);
    const what = `write ${id} of ${name}, called at ${at(calledMs)} and acknowledged by stamp ${stamp}`;
    if (failover === undefined) {
      const known = this.forced.map(({ source, sinceMs, endMs }) => `${source} ${at(sinceMs)} to ${at(endMs)}`).join("; ");
      throw new BrokenPromise(`${what}, is lost, and no forced failover lost it (forced: ${known || "none"})`);
    }
    // The deposed stamp may be a copy already, and tell how far it is in what the new primary writes.
    const ofTarget = this.#told.filter(({ stamp: copy, atMs }) => copy === failover.target && atMs <= failover.endMs);
    const told = ofTarget.map(({ lastSyncMs }) => lastSyncMs);
    const syncedMs = Math.max(0, ...told);
    if (writtenMs <= syncedMs)
      throw new BrokenPromise(`${what}, is lost: written ${syncedMs - writtenMs} ms before the Last Sync Time that was told`);
    const { report, operation, merged = false } = failover;
    if (report !== undefined && !this.#isReported(state, report, merged))
      throw new BrokenPromise(`${what}, is lost and not in the report of failover ${operation}`);
  }

  #judgeShown(
    { name, id, stamp, secondary, calledMs, syncedMs, own }: Shown,
    path: ReadonlySet<number>,
    deepest: Map<string, number>,
  ): void {
    const where = `at ${at(calledMs)} ${secondary ? "the copy at " : ""}stamp ${stamp} showed write ${id} of ${name}`;
    const depth = this.#depth(id);
    if (!secondary) {
      if (path.has(id) && path.has(own) && depth < this.#depth(own))
        throw new BrokenPromise(`${where}, behind write ${own} that it had acknowledged`);
      const isForced = this.forced.some(({ source, endMs }) => source === stamp && calledMs < endMs);
      if (!path.has(id) && !isForced) throw new BrokenPromise(`${where}, which is lost`);
      return;
    }
    if (!path.has(id)) throw new BrokenPromise(`${where}, which is no state of its primary`);
    const key = ownKey(stamp, name);
    const before = deepest.get(key) ?? empty;
    if (depth < this.#depth(before)) throw new BrokenPromise(`${where} after write ${before}`);
    deepest.set(key, id);
    const missing = this.#states.find(({ id: each, name: own, writtenMs = Number.POSITIVE_INFINITY }) => {
      return own === name && writtenMs <= syncedMs && path.has(each) && this.#depth(each) > depth;
    });
    if (missing !== undefined) {
      throw new BrokenPromise(
        `${where}, without write ${missing.id}, written ${syncedMs - (missing.writtenMs ?? 0)} ms before the Last Sync Time that was told`,
      );
    }
  }

  #state(id: number): State {
    return present(this.#states[id - 1], "a state");
  }

  #depth(id: number): number {
    return id === empty ? 0 : this.#state(id).depth;
  }
}

/** RowKey of the row that every write of a PartitionName replaces. */
export const lastRow = "last";

const ownKey = (stamp: StampName, name: string): string => `${stamp} ${name}`;
const at = (ms: number): string => `${(ms / 1000).toFixed(3)} s`;
const rowsText = (rows: Rows): string => [...rows].map(([row, write]) => `${row} of write ${write}`).join(", ") || "nothing";
const reportedText = (rows: ReportedCommit["rows"]): string =>
  [...rows].map(([row, write]) => `${row} ${write === undefined ? "deleted" : `of write ${write}`}`).join(", ");
