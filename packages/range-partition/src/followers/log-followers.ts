/**
 * Followers of a range's commit log: readers that get every commit behind their cursor, in order, while the range serves
 * (docs/design/geo-shipping.md "Shipping"). Each has a durable cursor in the metadata stream; the log is kept from the earliest
 * recorded cursor on, also over moves, splits and merges.
 *
 *     commits ──► recent commits in memory ──┐
 *        └──────► commit log in the stream ──┴──► commitsFor(name, after)
 *
 * Invariants:
 * - A follower is given only commits that are durable.
 * - The durable cursor is what the follower has acknowledged (rule `geoCursorAcknowledged`).
 * - A new owner begins at the durable cursor (rule `geoHeirContinues`). If the log does not reach back to it, the
 *   follower is gone, and its absence tells whoever wanted it that the rows have to be scanned.
 */
import { FailureError, fromHex, type Outcome, ok, type Rules, refused, toHex } from "@stamp/base";
import { RangeCursor } from "@stamp/geo";
import {
  type CommitRecord,
  decodeCommit,
  type FollowerCursors,
  holdsKey,
  type KeyBounds,
  type LogPlace,
  type PartitionState,
  type StoredFollower,
} from "@stamp/lsm";
import { sleep, type World } from "@stamp/ports";
import type { OwnedStream } from "@stamp/stream-client";
import type { RowWrite } from "../types.ts";
import { type LoggedCommit, RecentCommits } from "./recent-commits.ts";

const acknowledgedPollMs = 20;

/** Facts and calls of a range that its followers need. */
export interface FollowedRange {
  readonly rangeId: string;
  readonly own: KeyBounds;
  /** Bound of the commits kept in memory, in bytes. */
  readonly recentBytesMax: number;
}

/** State and log that the range was loaded with. */
export interface LoadedLog {
  readonly state: PartitionState;
  readonly streams: { readonly commitLog: OwnedStream };
  readonly replayed: { readonly lastSequence: number; readonly lastTicket: number };
}

/** A group of transactions that is durable. */
export interface DurableGroup {
  readonly firstSequence: number;
  readonly transactions: readonly (readonly RowWrite[])[];
  readonly lastTicket: number;
  /** Place behind the group in the log; undefined if it is in no log. */
  readonly end: LogPlace | undefined;
}

/** A place in the log: every commit behind `sequence` lies at or behind it. */
interface Mark {
  readonly sequence: number;
  readonly place: LogPlace;
}

interface Follower {
  readonly keys: KeyBounds;
  readonly cursor: RangeCursor;
  note: string;
  from: LogPlace | undefined;
}

export interface FollowerStatus {
  /** Sequence of the last commit that the follower has acknowledged. */
  readonly acknowledged: number;
  readonly note: string;
  /** Commits that the follower has not acknowledged. */
  readonly pending: number;
}

export class LogFollowers {
  readonly #world: World;
  readonly #rules: Rules;
  readonly #range: FollowedRange;
  readonly #log: OwnedStream;
  /** Writes the cursors into the metadata stream. */
  readonly #record: () => Promise<Outcome<void>>;
  readonly #followers = new Map<string, Follower>();
  readonly #recent: RecentCommits;
  /** Marks in the log, oldest first. */
  #marks: Mark[] = [];
  /** Rows that parents left: the commit behind `checkpointedSequence` of the record that the range was loaded from. */
  readonly #rest: LoggedCommit | undefined;
  #end: number;
  #lastTicket: number;
  #logEnd: LogPlace | undefined;
  readonly #waiting = new Set<() => void>();
  #over = false;

  constructor(world: World, range: FollowedRange, { state, streams, replayed }: LoadedLog, record: () => Promise<Outcome<void>>) {
    this.#world = world;
    this.#rules = world.rules;
    this.#range = range;
    this.#log = streams.commitLog;
    this.#record = record;
    this.#recent = new RecentCommits(range.recentBytesMax);
    this.#end = replayed.lastSequence;
    this.#lastTicket = replayed.lastTicket;
    const { logStart, checkpointedSequence, rest = [], lastTicket } = state;
    if (logStart !== undefined && logStart.extentId === state.logStartExtentId && this.#log.knows(logStart.extentId)) {
      this.#marks.push({ sequence: checkpointedSequence, place: logStart });
    }
    if (rest.length > 0) this.#rest = { sequence: checkpointedSequence + 1, lastTicket, writes: rest };
    for (const [name, stored] of Object.entries(state.followers?.cursors ?? {})) this.#resume(name, stored);
  }

  #resume(name: string, { sequence, from, low, high, note }: StoredFollower): void {
    const { rangeId } = this.#range;
    const [first, end] = [fromHex(low), fromHex(high)];
    const isReached = from === undefined || this.#log.knows(from.extentId);
    if (first === undefined || end === undefined || sequence > this.#end || !isReached) {
      this.#world.logger.warn("a follower of a commit log begins anew: the log does not reach back to its cursor", {
        rangeId,
        follower: name,
        sequence,
      });
      return;
    }
    const cursor = new RangeCursor({ durable: sequence, trimmed: 0, end: this.#end }, this.#rules);
    this.#followers.set(name, { keys: { low: first, high: end }, cursor, note, from });
  }

  /**
   * Begins a follower at the last commit, or changes its facts. The cursor is durable when the promise resolves: from
   * then on the log is kept for it.
   */
  async begin(name: string, keys: KeyBounds, note: string): Promise<Outcome<void>> {
    const known = this.#followers.get(name);
    if (known === undefined) {
      const cursor = new RangeCursor({ durable: this.#end, trimmed: 0, end: this.#end }, this.#rules);
      this.#followers.set(name, { keys, cursor, note, from: this.#marks.at(-1)?.place });
    } else {
      known.note = note;
    }
    return this.#record();
  }

  /** Ends a follower: the log is not kept for it any more. */
  async end(name: string): Promise<Outcome<void>> {
    this.#followers.delete(name);
    this.#wake();
    if (this.#followers.size === 0) this.#recent.clear();
    return this.#record();
  }

  get names(): readonly string[] {
    return [...this.#followers.keys()];
  }

  /** Notes of the followers, by name. */
  get notes(): ReadonlyMap<string, string> {
    return new Map([...this.#followers].map(([name, { note }]) => [name, note]));
  }

  /** Sequence of the last commit. */
  get lastSequence(): number {
    return this.#end;
  }

  /** Every ticket that a committed row was written with is at or below this one. */
  get lastTicket(): number {
    return this.#lastTicket;
  }

  /** Returns undefined if there is no such follower: its rows have to be scanned. */
  status(name: string): FollowerStatus | undefined {
    const follower = this.#followers.get(name);
    return follower && { acknowledged: follower.cursor.from, note: follower.note, pending: follower.cursor.pending };
  }

  /** Notes that commits up to this sequence were sent to the follower's destination. */
  sent(name: string, sequence: number): void {
    this.#followers.get(name)?.cursor.sent(sequence);
  }

  /** Notes that the follower durably has everything up to this sequence. False: that was never sent. */
  acknowledged(name: string, sequence: number): boolean {
    const cursor = this.#followers.get(name)?.cursor;
    const lackedRest = cursor !== undefined && cursor.from < (this.#rest?.sequence ?? 0);
    const isSent = cursor?.acknowledged(sequence) ?? false;
    // The record may not have named a follower that lacked the rest: it can now.
    if (lackedRest && cursor.from >= (this.#rest?.sequence ?? 0)) void this.#record();
    return isSent;
  }

  /** Makes the cursors durable, so that the log before them can be cut. */
  record(): Promise<Outcome<void>> {
    return this.#record();
  }

  /** Returns the size of the log that is kept for the follower only, in bytes, without the extent that is written to. */
  backlogBytes(name: string): number {
    const from = this.#followers.get(name)?.from;
    const { extents } = this.#log;
    const at = from === undefined ? 0 : extents.findIndex(({ extentId }) => extentId === from.extentId);
    return extents.slice(Math.max(0, at)).reduce((sum, { sealedLengthBytes = 0 }) => sum + sealedLengthBytes, 0);
  }

  /**
   * Cursors for the next record of the range. If the record has no rest any more, a follower that lacks the rest is not
   * named: a new owner could not give it these rows. This owner still has them.
   */
  cursors(hasRest: boolean): FollowerCursors {
    const first = hasRest ? 0 : (this.#rest?.sequence ?? 0);
    const named = [...this.#followers].filter(([, { cursor }]) => cursor.from >= first);
    return Object.fromEntries(named.map(([name, follower]) => [name, this.#stored(follower)]));
  }

  #stored(follower: Follower): StoredFollower {
    const { cursor, keys, note } = follower;
    const sequence = cursor.from;
    follower.from = this.#marks.findLast((mark) => mark.sequence <= sequence)?.place ?? follower.from;
    const place = follower.from && { from: follower.from };
    return { sequence, ...place, low: toHex(keys.low), high: toHex(keys.high), note };
  }

  /** Notes a record with these cursors as durable. */
  recorded(cursors: FollowerCursors): void {
    for (const [name, { sequence }] of Object.entries(cursors)) this.#followers.get(name)?.cursor.recorded(sequence);
    const earliest = Math.min(this.#end, ...Object.values(cursors).map(({ sequence }) => sequence));
    const last = this.#marks.findLastIndex((mark) => mark.sequence <= earliest);
    if (last > 0) this.#marks = this.#marks.slice(last);
  }

  /** Notes that every commit behind `sequence` will lie at or behind `place`. */
  mark(sequence: number, place: LogPlace): void {
    if (place.extentId > 0) this.#marks.push({ sequence, place });
  }

  /** Notes that the range has committed a group. */
  committed({ firstSequence, transactions, lastTicket, end }: DurableGroup): void {
    for (const [i, writes] of transactions.entries()) {
      if (this.#followers.size > 0) this.#recent.add({ sequence: firstSequence + i, lastTicket, writes });
    }
    this.#end = firstSequence + transactions.length - 1;
    this.#lastTicket = lastTicket;
    this.#logEnd = end ?? this.#logEnd;
    for (const { cursor } of this.#followers.values()) cursor.committed(this.#end);
    this.#wake();
  }

  /** Resolves when there is a commit behind this sequence, when the range is over, or when the signal says so. */
  async whenBehind(sequence: number, signal: AbortSignal): Promise<void> {
    if (this.#end > sequence || this.#over || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const onAbort = (): void => {
        this.#waiting.delete(wake);
        resolve();
      };
      const wake = (): void => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  /**
   * Resolves when every follower has acknowledged the commits up to a sequence. Refuses if one has not in time: it would begin anew in the
   * range that this one is merged into, whose log does not have them.
   */
  async untilAcknowledged(sequence: number, timeoutMs: number): Promise<Outcome<void>> {
    const { clock } = this.#world;
    const untilMs = clock.monotonicMs() + timeoutMs;
    for (;;) {
      const behind = [...this.#followers].find(([, { cursor }]) => cursor.from < sequence);
      if (behind === undefined || this.#over) return ok();
      if (clock.monotonicMs() >= untilMs) {
        const [name, { cursor }] = behind;
        const { rangeId } = this.#range;
        const message = `the second stamp of account ${name} lacks ${sequence - cursor.from} commits of ${rangeId}, which is merged when it has them`;
        return refused("unavailable", "notReady", message);
      }
      await sleep(clock, acknowledgedPollMs);
    }
  }

  /** True if the range gives nothing more: it was lost or closed. */
  get isOver(): boolean {
    return this.#over;
  }

  /** Stops: the range gives nothing more. */
  stop(): void {
    this.#over = true;
    this.#wake();
  }

  #wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /**
   * Yields every commit behind `after` up to the last one now, in order and without a gap. Throws FailureError if the log can't be read, or has
   * lost one.
   */
  async *commitsFor(name: string, after: number): AsyncGenerator<LoggedCommit, void, undefined> {
    let next = after + 1;
    while (next <= this.#end && !this.#over) {
      const recent = this.#recent.from(next);
      for await (const commit of recent ?? this.#fromLog(name, next)) {
        yield commit;
        next = commit.sequence + 1;
        // The log is left for the memory as soon as the memory has what comes next.
        if (recent === undefined && this.#recent.from(next) !== undefined) break;
      }
    }
  }

  /** Yields commits from this sequence on, read from the log. */
  async *#fromLog(name: string, first: number): AsyncGenerator<LoggedCommit, void, undefined> {
    const end = this.#end;
    let next = first;
    const from = this.#marks.findLast(({ sequence }) => sequence < first)?.place ?? this.#followers.get(name)?.from;
    if (next === this.#rest?.sequence) {
      yield this.#rest;
      next++;
    }
    if (next > end) return;
    for await (const { payload } of this.#log.readBetween(from, this.#logEnd)) {
      const decoded = decodeCommit(payload, this.#world.digest.crc32c);
      if (!decoded.ok) throw new FailureError(decoded.failure);
      for (const commit of this.#ofRecord(decoded.value, next)) {
        yield commit;
        next++;
      }
    }
    if (next <= end) throw this.#gap(next, end);
  }

  *#ofRecord({ firstSequence, lastTicket, transactions }: CommitRecord, next: number): Generator<LoggedCommit> {
    if (firstSequence > next) throw this.#gap(next, firstSequence);
    for (const [i, all] of transactions.entries()) {
      const sequence = firstSequence + i;
      const writes = all.filter(({ key }) => holdsKey(this.#range.own, key));
      if (sequence >= next) yield { sequence, lastTicket, writes };
    }
  }

  #gap(next: number, found: number): FailureError {
    const message = `the commit log of ${this.#range.rangeId} has no commit ${next} for a follower, but ${found}`;
    return new FailureError(refused("dataLoss", "damaged", message).failure);
  }
}
