/**
 * Cursor of a range's log at one destination: every commit up to it was acknowledged by the other stamp
 * (docs/design/geo-shipping.md "Shipping"). Kept by the owner of the range, in memory; a durable copy is in the range's metadata
 * stream.
 *
 * Invariants (docs/design/model/geo-shipping.pml):
 * - The cursor, in memory and durable, is what was acknowledged, not what was sent (rule `geoCursorAcknowledged`).
 * - A new owner begins at the durable cursor of its predecessor, in that one's log (rule `geoHeirContinues`).
 * - The log is trimmed up to the cursor in memory at most. Beyond the bound of the backlog the range is seeded again
 *   instead.
 */
import type { Rules } from "@stamp/base";
import { assert } from "@stamp/base";

/** Log of a range, as a new owner finds it. */
export interface RangeLog {
  /**
   * Durable cursor that the last owner left; of a child, its parent's; after a merge, the log of each parent has its
   * own.
   */
  readonly durable: number;
  /** Position of the last commit that was trimmed; 0: none. */
  readonly trimmed: number;
  /** Position of the last commit. */
  readonly end: number;
}

export class RangeCursor {
  readonly #rules: Rules;
  #acknowledged: number;
  #sent: number;
  #recorded: number;
  #end: number;

  constructor({ durable, trimmed, end }: RangeLog, rules: Rules) {
    assert(durable <= end && trimmed <= end, "a cursor is in its log");
    this.#rules = rules;
    this.#recorded = durable;
    // The trimmed part was acknowledged before.
    this.#acknowledged = rules.on("geoHeirContinues") ? Math.max(durable, trimmed) : end;
    this.#sent = this.#acknowledged;
    this.#end = end;
  }

  /** Returns where a new connection begins: it sends what is behind this position, in order. */
  get from(): number {
    return this.#acknowledged;
  }

  /** Position of the last commit of the log. */
  get end(): number {
    return this.#end;
  }

  /** Commits that are not acknowledged yet. */
  get pending(): number {
    return this.#end - this.#acknowledged;
  }

  /** Notes that the range committed up to `position`. */
  committed(position: number): void {
    assert(position >= this.#end, "commits are in order");
    this.#end = position;
  }

  /** Notes that commits up to `position` were given to a connection. */
  sent(position: number): void {
    assert(position <= this.#end, "only commits are sent");
    this.#sent = Math.max(this.#sent, position);
    if (!this.#rules.on("geoCursorAcknowledged")) this.#acknowledged = Math.max(this.#acknowledged, position);
  }

  /** Returns false if the receiver acknowledges what was never sent: the connection is broken, and nothing changes. */
  acknowledged(position: number): boolean {
    if (position > this.#sent) return false;
    this.#acknowledged = Math.max(this.#acknowledged, position);
    return true;
  }

  /** Position to be recorded as the durable cursor; undefined if the recorded one is as far. */
  get toRecord(): number | undefined {
    return this.#acknowledged > this.#recorded ? this.#acknowledged : undefined;
  }

  recorded(position: number): void {
    this.#recorded = Math.max(this.#recorded, position);
  }

  /** Position up to which the log may be trimmed: what was acknowledged is durable at the receiver. */
  get trimUpTo(): number {
    return this.#acknowledged;
  }
}

/**
 * True if a range has kept too much of its log for the other stamp: it lets the backlog go and is seeded again, so that
 * the primary never stops for its secondary. `backlogBytes`: size of the log behind the cursor.
 */
export const outgrown = (backlogBytes: number, backlogBytesMax: number): boolean => backlogBytes > backlogBytesMax;
