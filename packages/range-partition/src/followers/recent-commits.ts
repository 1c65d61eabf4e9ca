/** The newest commits of a range in memory, oldest first, up to a bound in bytes: followers that keep up read no log. */
import { present } from "@stamp/base";
import type { RowWrite } from "../types.ts";

/** One transaction of a range's commit log. */
export interface LoggedCommit {
  readonly sequence: number;
  /** No transaction up to this one has used a higher ticket. */
  readonly lastTicket: number;
  /** Writes to keys of the range; a parent's commit may have none. Owned by the partition: never change them. */
  readonly writes: readonly RowWrite[];
}

interface Kept {
  readonly commit: LoggedCommit;
  readonly bytes: number;
}

/** Number of dropped commits at the beginning, if they are also half of all, at which the array is shortened. */
const goneMax = 1_000;

const sizeOf = (writes: readonly RowWrite[]): number =>
  writes.reduce((sum, write) => sum + write.key.length + (write.kind === "put" ? write.value.length : 0), 0);

export class RecentCommits {
  readonly #bytesMax: number;
  #commits: Kept[] = [];
  /** Number of commits at the beginning of the array that are gone. */
  #gone = 0;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Commits are added in order, without a gap. */
  add(commit: LoggedCommit): void {
    const bytes = sizeOf(commit.writes);
    this.#commits.push({ commit, bytes });
    this.#bytes += bytes;
    while (this.#bytes > this.#bytesMax && this.#gone < this.#commits.length) this.#drop();
    if (this.#gone <= goneMax || 2 * this.#gone <= this.#commits.length) return;
    this.#commits = this.#commits.slice(this.#gone);
    this.#gone = 0;
  }

  /** Lets the oldest commit go at once: its rows may be large. */
  #drop(): void {
    const { commit, bytes } = present(this.#commits[this.#gone], "a commit in memory");
    this.#commits[this.#gone++] = { commit: { ...commit, writes: [] }, bytes: 0 };
    this.#bytes -= bytes;
  }

  clear(): void {
    this.#commits = [];
    this.#gone = 0;
    this.#bytes = 0;
  }

  /** Returns the commits from this sequence on; undefined if the first of them is not in memory any more. */
  from(sequence: number): readonly LoggedCommit[] | undefined {
    const first = this.#commits[this.#gone]?.commit.sequence;
    if (first === undefined || sequence < first || sequence >= first + this.#commits.length - this.#gone) return undefined;
    return this.#commits.slice(this.#gone + sequence - first).map(({ commit }) => commit);
  }
}
