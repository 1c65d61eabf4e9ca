/** State of a leader (figure 2: volatile state on leaders). A new leader begins with a new one. */

import type { MemberId } from "../types.ts";
import { Progress } from "./progress.ts";
import { PendingReads } from "./reads.ts";

/** Sessions of one member that a leader remembers to have readmitted. */
const sessionsMax = 16;

export class LeaderState {
  readonly progress: Map<MemberId, Progress> = new Map();
  readonly reads: PendingReads;
  /** Index of the empty entry that began the term: from its commit on the leader knows what is committed. */
  readonly firstIndex: number;
  heartbeatElapsed = 0;
  /** Size of the entries of this term that are not committed, in bytes. */
  uncommittedBytes = 0;
  /** Member that leadership is handed to, and the ticks since; undefined: none. */
  transfer: { readonly to: MemberId; ticks: number; told: boolean } | undefined;
  readonly #readmitted = new Map<MemberId, number[]>();

  constructor(firstIndex: number, pendingReadsMax: number) {
    this.firstIndex = firstIndex;
    this.reads = new PendingReads(pendingReadsMax);
  }

  /** Adds new followers, and drops those that left. */
  follow(ids: ReadonlySet<MemberId>, lastIndex: number): void {
    for (const id of this.progress.keys()) if (!ids.has(id)) this.progress.delete(id);
    for (const id of ids) if (!this.progress.has(id)) this.progress.set(id, new Progress(lastIndex));
  }

  /** Returns true once for each start of a member. */
  readmits(member: MemberId, session: number): boolean {
    const sessions = this.#readmitted.get(member) ?? [];
    if (sessions.includes(session)) return false;
    this.#readmitted.set(member, [...sessions, session].slice(-sessionsMax));
    return true;
  }
}
