/**
 * Reads, and renewals of leases, that a leader answers without an entry (dissertation, section 6.4). Each is confirmed by a round of heartbeats that
 * was sent after the read came: when a quorum has answered it in the leader's term, no later leader had been elected when the read came.
 *
 *     read comes ──▶ index = commit ──▶ next round sent ──▶ a quorum answers it ──▶ ReadState
 *
 * Invariants:
 * - A read is never confirmed by a round that was sent before it came.
 * - Before the leader has committed an entry of its own term it does not know what is committed: reads wait for that.
 */
import type { ReadState } from "../ready.ts";

interface PendingRead {
  readonly context: number;
  /** Round of heartbeats that confirms the read; undefined: not begun yet. */
  round: number | undefined;
  index: number;
}

export class PendingReads {
  readonly #max: number;
  #pending: PendingRead[] = [];
  /** Last round that was sent. */
  round = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get isFull(): boolean {
    return this.#pending.length >= this.#max;
  }

  get count(): number {
    return this.#pending.length;
  }

  add(context: number): void {
    this.#pending.push({ context, round: undefined, index: 0 });
  }

  /** Begins a round for the reads that wait for one; undefined if none does. */
  begin(commit: number): number | undefined {
    const waiting = this.#pending.filter(({ round }) => round === undefined);
    if (waiting.length === 0) return undefined;
    this.round += 1;
    for (const read of waiting) {
      read.round = this.round;
      read.index = commit;
    }
    return this.round;
  }

  /** Returns the reads that a quorum has confirmed by answering this round. */
  confirmed(round: number): ReadState[] {
    const done = this.#pending.filter((read) => read.round !== undefined && read.round <= round);
    if (done.length > 0) this.#pending = this.#pending.filter((read) => read.round === undefined || read.round > round);
    return done.map(({ context, index }) => ({ context, index }));
  }

  /** Gives up all reads, and returns their contexts. */
  drain(): number[] {
    const contexts = this.#pending.map(({ context }) => context);
    this.#pending = [];
    return contexts;
  }
}
