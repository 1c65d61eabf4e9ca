/**
 * How a range partition leaves: prepared while it is served as before, until writes have to wait.
 *
 *     prepare ─ lighten ─ recordHandoff ─ holdData ─ leave ──► split: the log is cut, and goes on as that of the children (docs/decisions/0340)
 *                  └── holdRows ─ holdData ─ leave ──► merge: a last record has what is in memory and in flight
 *     resume: it does not leave after all; until holdData.
 */
import { assert, type Failure, type Outcome, ok, refused } from "@stamp/base";
import type { World } from "@stamp/ports";
import type { BlobData } from "../blob-data/blob-data.ts";
import { keptFromExtentId, type Maintenance } from "../checkpoint/maintenance.ts";
import type { Upkeep } from "../checkpoint/upkeep.ts";
import type { GroupCommit } from "../commit/group-commit.ts";
import type { Transactions } from "../commit/transactions.ts";
import type { PartitionStreams } from "../load/load.ts";
import type { MemoryTables } from "../memory-tables.ts";
import { type HandoffRecord, type LeaveOptions, type LeftPartition, leaveTogether } from "./leave.ts";

/** The partition that leaves. */
export interface LeavingPartition {
  readonly rangeId: string;
  readonly world: World;
  readonly streams: PartitionStreams;
  readonly maintenance: Maintenance;
  readonly commit: GroupCommit;
  readonly transactions: Transactions;
  readonly data: BlobData;
  /** Returns the failure with which the range has ended; undefined: it has not. */
  readonly ended: () => Failure | undefined;
  readonly tables: MemoryTables;
  readonly upkeep: () => Upkeep;
}

/** Bytes in memory at which `lighten` ends. */
const leftOverBytes: number = 256 * 1024;
/** Times that `lighten` writes out what is in memory, at most. */
const lightenRoundsMax = 6;
/** Part of the last round's bytes that may come again meanwhile; if more does, `lighten` ends. */
const muchLess = 3 / 4;
/** Time for bytes that are on their way to the blob data stream when it takes no more. Rows are written meanwhile. */
const dataIdleTimeoutMs = 2_000;
/** Time to close the streams. An append that is not in by then is unknown, and its stream is opened once more. */
const leftStreamsTimeoutMs = 500;

export class Departure {
  readonly #leaver: LeavingPartition;
  #preparing = false;
  /** Number of attempts to leave that were taken back. */
  #resumed = 0;
  #record: Promise<Outcome<HandoffRecord>> | undefined;
  /** True if followers of the log will find what they lack in the last record: it stays in memory until then. */
  #holdsRows = false;
  #left: Failure | undefined;

  constructor(leaver: LeavingPartition) {
    this.#leaver = leaver;
  }

  /** Returns why the partition takes no more writes: it becomes other ranges. */
  get left(): Failure | undefined {
    return this.#left;
  }

  /** Returns why nothing in memory may be written out: a record names, or will have, what is in memory and in the log. */
  get recorded(): Failure | undefined {
    return this.#left ?? (this.#record !== undefined || this.#holdsRows ? this.#becomes("others") : undefined);
  }

  /** Size of the rows in memory and in flight, in bytes. */
  get heldBytes(): number {
    const { tables, commit } = this.#leaver;
    return tables.active.bytes + commit.undurableBytes;
  }

  /**
   * Merges end, what is in memory goes out, and what is left when it leaves has extents to go to. `written`: somebody writes to it, so that
   * there will be rows to write out though there may be none now.
   */
  async prepare(written: boolean): Promise<Outcome<void>> {
    const { maintenance, streams, upkeep } = this.#leaver;
    this.#preparing = true;
    upkeep().cancelRest();
    maintenance.stop();
    const begun = Promise.all([streams.metadata, ...(written ? [streams.rowData] : [])].map((stream) => stream.begin()));
    const out = await upkeep().checkpoint();
    if (!out.ok) return out;
    await begun;
    // The children want them all.
    await Promise.all(maintenance.checkpoints.map((one) => one.warm()));
    return ok();
  }

  /** Follows `prepare`: writes out what came into memory meanwhile. */
  async lighten(): Promise<Outcome<void>> {
    const { tables, upkeep } = this.#leaver;
    for (let round = 0; round < lightenRoundsMax && tables.active.bytes > leftOverBytes; round++) {
      const beforeBytes = tables.active.bytes;
      const out = await upkeep().checkpoint();
      if (!out.ok) return out;
      if (tables.active.bytes > muchLess * beforeBytes) break;
    }
    return ok();
  }

  /**
   * Follows `lighten` if the range is split: writes the record that its children are loaded from. Nothing in memory is written out from then
   * on, until the range leaves or resumes.
   */
  async recordHandoff(children: readonly string[]): Promise<Outcome<HandoffRecord>> {
    const { maintenance, upkeep, ended, rangeId } = this.#leaver;
    const resumed = this.#resumed;
    await upkeep().untilWritten();
    const failure = ended();
    if (failure !== undefined) return { ok: false, failure };
    // Another handoff may have begun meanwhile.
    if (!this.#preparing || resumed !== this.#resumed) return refused("unavailable", "notBegun", `${rangeId} does not leave any more`);
    this.#record = maintenance.recordHandoff(children);
    return this.#record;
  }

  /**
   * Follows `lighten` if the range is merged and its log has followers: nothing in memory is written out from then on, until the range leaves
   * or resumes. Resolves when the last checkpoint before that is written.
   */
  holdRows(): Promise<void> {
    this.#holdsRows = true;
    return this.#leaver.upkeep().untilWritten();
  }

  /** Takes the departure back: merges go on. Only before `holdData`. */
  resume(): void {
    this.#preparing = false;
    this.#resumed++;
    this.#record = undefined;
    this.#holdsRows = false;
    this.#leaver.upkeep().resumeMerges();
  }

  /** Takes no more blob data from shortly before rows have to wait, and waits for bytes on their way. */
  async holdData(): Promise<void> {
    const { data, streams } = this.#leaver;
    await Promise.all([data.hold(this.#becomes("others"), dataIdleTimeoutMs), streams.rowData.quiet({ timeoutMs: dataIdleTimeoutMs })]);
  }

  /**
   * One, or two neighbours: they take no more writes, and the first one leaves in its metadata stream the state from which the ranges of
   * `children` are loaded; reads go on. For good: the caller closes them afterwards, and loads them again if the handoff fails.
   */
  static leave(departures: readonly Departure[], children: readonly string[]): Promise<Outcome<LeftPartition>> {
    const [first, second, ...others] = departures;
    assert(first !== undefined && others.length === 0, "one or two leave");
    if (second === undefined) return first.#leaveLog(children);
    return leaveTogether(
      first.#leaver.world.rules,
      children,
      (how) => first.#leaveRecord(how),
      (how) => second.#leaveRecord(how),
    );
  }

  /**
   * Writes wait from when the log is cut until the children are served: what of them is acknowledged is in the log before that, all else is done
   * anew.
   */
  async #leaveLog(children: readonly string[]): Promise<Outcome<LeftPartition>> {
    const { rangeId, world, streams, maintenance, commit, tables, ended } = this.#leaver;
    this.#preparing = true;
    maintenance.stop();
    const recorded = await (this.#record ?? this.recordHandoff(children));
    if (!recorded.ok) return recorded;
    await this.#closeStreams();
    await streams.commitLog.steady({ timeoutMs: leftStreamsTimeoutMs });
    const failure = ended();
    if (failure !== undefined) return { ok: false, failure };
    const heldSinceMs = world.clock.monotonicMs();
    this.#left = this.#becomes(children.join(" and "));
    const cut = commit.cut(this.#left);
    if (cut === undefined) return refused("unavailable", "partitionLoading", `the log of ${rangeId} goes to another extent`);
    await cut.applied;
    const isKnown = streams.commitLog.knows(recorded.value.state.logStartExtentId);
    const log = {
      table: tables.active,
      lastSequence: tables.lastSequence,
      logBytes: tables.activeLogBytes,
      lastTicket: commit.lastTicket,
      fromExtentId: isKnown ? keptFromExtentId(streams.commitLog, recorded.value.state) : 0,
    };
    const times = { heldSinceMs, drainMs: 0, writeMs: world.clock.monotonicMs() - heldSinceMs };
    return ok({ ...recorded.value, ...times, log, became: cut.sealed });
  }

  /**
   * The last record carries commits that are decided and not durable yet. They are answered when either that record or
   * the log has them (rule drainBeforeLeaving). Refuses if a checkpoint would have to take rows that followers lack: they would be ended.
   */
  async #leaveRecord(how: LeaveOptions): Promise<Outcome<LeftPartition>> {
    const { rangeId, world, maintenance, commit, transactions, tables, upkeep, ended } = this.#leaver;
    this.#left = this.#becomes(how.children.join(" and "));
    const { rules, clock } = world;
    const heldSinceMs = clock.monotonicMs();
    const drains = rules.on("drainBeforeLeaving");
    if (drains) {
      await transactions.untilDecided();
      if (commit.undurableBytes > how.restBytesMax) await commit.whenIdle();
    }
    await upkeep().untilWritten();
    const failure = ended();
    if (failure !== undefined) return { ok: false, failure };
    if (this.#holdsRows && this.heldBytes > how.restBytesMax) {
      const message = `${this.heldBytes} bytes of rows, which followers of its log lack, do not fit into the last record of ${rangeId}`;
      return refused("unavailable", "partitionLoading", message);
    }
    const drainedMs = clock.monotonicMs();
    const undurable = drains ? commit.leave() : { writes: [], bytes: 0, lastSequence: tables.lastSequence, recorded: () => {} };
    const left = await maintenance.leave(upkeep().freeze(), undurable, how);
    if (!left.ok) {
      undurable.recorded(left);
      return left;
    }
    // After the change of the streams has gone out: answers to many would be ahead of it.
    clock.after(0, () => undurable.recorded(ok()));
    await this.#closeStreams();
    const times = { heldSinceMs, drainMs: drainedMs - heldSinceMs, writeMs: clock.monotonicMs() - drainedMs };
    return ok({ ...left.value, ...times, became: () => {} });
  }

  /** Closes all streams but the log. A merge under way, or bytes on their way in, would open another extent after the change. */
  async #closeStreams(): Promise<void> {
    const { metadata, rowData, blobData } = this.#leaver.streams;
    await Promise.all([metadata, rowData, blobData].map((stream) => stream?.close({ timeoutMs: leftStreamsTimeoutMs })));
  }

  #becomes(what: string): Failure {
    return { code: "unavailable", reason: "partitionLoading", message: `${this.#leaver.rangeId} becomes ${what}`, applied: "no" };
  }
}
