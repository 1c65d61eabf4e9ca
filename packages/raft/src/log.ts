/**
 * The replicated log since the last entries that were given up, in memory.
 *
 *     base          snapshot.index      commit      durable     saved      last
 *      |-----kept for----|----------------|------------|----------|----------|
 *       slow followers                                  being       not yet given
 *                                                       written     to the caller
 *
 * The caller writes entries in the order in which it got them and says when a write is durable. A write that was overtaken by a truncation
 * makes nothing durable at or behind the cut.
 *
 * Invariants:
 * - Entries are contiguous: entry i stands at i - base.index - 1. Terms never fall along the log.
 * - base.index <= snapshot.index <= commit; durable <= saved <= last.
 * - `configurations` has that of the snapshot and every `members` entry behind it.
 */
import { assert, present } from "@stamp/base";
import type { VoterGroups } from "./quorum.ts";
import type { Entry, HardState, MemberId, Members, SnapshotMeta } from "./types.ts";
import { entryBytes } from "./types.ts";

/** Place in a log: index and the term of the entry there. */
export interface Position {
  readonly index: number;
  readonly term: number;
}

interface Configuration {
  readonly index: number;
  readonly members: Members;
}

/** Returns the voters of the configurations that decide after a start with this folder. */
export const decidingVoters = ({ hardState, snapshot, entries }: StoredLog): VoterGroups =>
  new RaftLog(snapshot, entries).votersAt(hardState.commit);

interface StoredLog {
  readonly hardState: HardState;
  readonly snapshot: SnapshotMeta;
  readonly entries: readonly Entry[];
}

export class RaftLog {
  #base: Position;
  #snapshot: SnapshotMeta;
  #entries: Entry[] = [];
  #configurations: Configuration[];
  #saved: number;
  #durable: number;
  /** Writes that the caller has in hand: number of the Ready, last index that it makes durable. */
  #writes: { readonly number: number; upTo: number }[] = [];

  constructor(snapshot: SnapshotMeta, entries: readonly Entry[]) {
    this.#snapshot = snapshot;
    this.#base = snapshot;
    this.#configurations = [{ index: snapshot.index, members: snapshot.members }];
    for (const entry of entries) if (entry.index > snapshot.index) this.append(entry);
    this.#saved = this.last.index;
    this.#durable = this.last.index;
  }

  get last(): Position {
    return this.#entries.at(-1) ?? this.#base;
  }

  get snapshot(): SnapshotMeta {
    return this.#snapshot;
  }

  /** Entries at or below are not here any more. */
  get base(): Position {
    return this.#base;
  }

  /** Last index that is on this member's disk. */
  get durable(): number {
    return this.#durable;
  }

  get length(): number {
    return this.#entries.length;
  }

  /** Newest configuration in the log, committed or not. */
  get members(): Members {
    return present(this.#configurations.at(-1), "a configuration").members;
  }

  /** Index of the entry that brought the newest configuration. */
  get membersIndex(): number {
    return present(this.#configurations.at(-1), "a configuration").index;
  }

  /** Configurations whose quorums decide: the newest, and the one before it while the newest is not committed. */
  configurationsAt(commit: number): readonly Members[] {
    const newest = present(this.#configurations.at(-1), "a configuration");
    const before = this.#configurations.at(-2);
    return newest.index > commit && before !== undefined ? [before.members, newest.members] : [newest.members];
  }

  votersAt(commit: number): VoterGroups {
    return this.configurationsAt(commit).map(({ voters }) => voters);
  }

  /** Returns the term of the entry; undefined: the log does not hold it. */
  termAt(index: number): number | undefined {
    return index === this.#base.index ? this.#base.term : this.#entries[index - this.#base.index - 1]?.term;
  }

  entry(index: number): Entry | undefined {
    return this.#entries[index - this.#base.index - 1];
  }

  /** Returns entries from an index on, at least one if there is one, up to both bounds. */
  slice(from: number, entriesMax: number, bytesMax: number): readonly Entry[] {
    const found: Entry[] = [];
    let bytes = 0;
    for (let entry = this.entry(from); entry !== undefined && found.length < entriesMax; entry = this.entry(entry.index + 1)) {
      bytes += entryBytes(entry);
      if (found.length > 0 && bytes > bytesMax) break;
      found.push(entry);
    }
    return found;
  }

  append(entry: Entry): void {
    assert(entry.index === this.last.index + 1, "entries are contiguous");
    assert(entry.term >= this.last.term, "terms never fall along the log");
    this.#entries.push(entry);
    if (entry.body.kind === "members") this.#configurations.push({ index: entry.index, members: entry.body.members });
  }

  /**
   * Takes a leader's entries over behind `prev`, which must match: skips what is here, cuts the log off at the first entry of another term, and
   * appends the rest. An older message that is shorter cuts nothing off.
   */
  merge(entries: readonly Entry[], commit: number): void {
    for (const entry of entries) {
      const here = this.termAt(entry.index);
      if (entry.index <= this.#base.index || here === entry.term) continue;
      if (here !== undefined) {
        assert(entry.index > commit, "a committed entry is never cut off");
        this.#cut(entry.index);
      }
      this.append(entry);
    }
  }

  /** Returns the highest index at or below `index` whose term is at most `term`: the two logs can't agree above it. */
  agreement(index: number, term: number): Position {
    let at = Math.min(index, this.last.index);
    while (at > this.#base.index && present(this.termAt(at), "an entry of the log") > term) at -= 1;
    at = Math.max(at, this.#base.index);
    return { index: at, term: this.termAt(at) ?? 0 };
  }

  /** Returns the entries that the caller has not got yet. They are durable once it says so of this number. */
  unsaved(number: number): readonly Entry[] {
    const entries = this.#entries.slice(this.#saved - this.#base.index);
    this.#saved = this.last.index;
    const before = this.#writes.at(-1)?.upTo ?? 0;
    if (this.#saved > Math.max(before, this.#durable)) this.#writes.push({ number, upTo: this.#saved });
    return entries;
  }

  get hasUnsaved(): boolean {
    return this.#saved < this.last.index;
  }

  /** Notes that the caller's writes up to this number are durable. */
  persisted(number: number): void {
    const done = this.#writes.filter((write) => write.number <= number);
    this.#writes = this.#writes.filter((write) => write.number > number);
    this.#durable = Math.max(this.#durable, ...done.map(({ upTo }) => upTo));
  }

  /** Replaces the whole log by a snapshot that was received. It is durable with the next write. */
  restore(snapshot: SnapshotMeta): void {
    this.#entries = [];
    this.#base = snapshot;
    this.#snapshot = snapshot;
    this.#configurations = [{ index: snapshot.index, members: snapshot.members }];
    for (const write of this.#writes) write.upTo = 0;
    this.#saved = snapshot.index;
    this.#durable = 0;
  }

  /** Describes a snapshot of the state after `index`, and gives up the entries below it but for the newest: `keepEntries`, of `keepBytes`. */
  compact(index: number, keepEntries: number, keepBytes: number): SnapshotMeta {
    assert(index >= this.#snapshot.index && index <= this.#durable, "a snapshot is of durable entries, and never older");
    const sessions: Record<MemberId, number> = { ...this.#snapshot.sessions };
    let { members } = this.#snapshot;
    for (let at = this.#snapshot.index + 1; at <= index; at++) {
      const { body } = present(this.entry(at), "an entry behind the last snapshot");
      if (body.kind === "readmit") sessions[body.member] = body.session;
      if (body.kind === "members") members = body.members;
    }
    this.#snapshot = { index, term: present(this.termAt(index), "the term of the snapshot"), members, sessions };
    this.#configurations = [{ index, members }, ...this.#configurations.filter((each) => each.index > index)];
    let base = index;
    for (let bytes = 0; base > this.#base.index && index - base < keepEntries; base--) {
      bytes += entryBytes(present(this.entry(base), "an entry behind the base"));
      if (bytes > keepBytes) break;
    }
    const term = present(this.termAt(base), "the term of the base");
    this.#entries.splice(0, base - this.#base.index);
    this.#base = { index: base, term };
    return this.#snapshot;
  }

  #cut(from: number): void {
    assert(from > this.#snapshot.index, "a snapshot is never cut off");
    this.#entries.length = from - this.#base.index - 1;
    this.#configurations = this.#configurations.filter(({ index }) => index < from);
    this.#saved = Math.min(this.#saved, from - 1);
    this.#durable = Math.min(this.#durable, from - 1);
    for (const write of this.#writes) write.upTo = Math.min(write.upTo, from - 1);
  }
}
