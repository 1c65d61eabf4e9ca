/**
 * Reports of the primaries of this stamp's copies: Last Sync Time, and whether a copy is complete. Kept in
 * memory by the leading partition manager; a new leader hears it again within seconds.
 *
 * Invariants:
 * - Reports may come late or twice. The Last Sync Time of a copy does not fall, unless the clock is set back, and nothing is kept of an earlier
 *   copy of the account.
 * - No Last Sync Time is kept, or told, that is ahead of this stamp's clock: neither a clock of the primary that is ahead nor a wrong report lets a
 *   copy look newer than now.
 * - No report is kept from before a log of the primary began a new lineage, or from before this stamp's metadata store was put back (rule
 *   `logsHaveLineages`): the copy may lack what it had.
 * - A lineage that a primary told by mistake hides its later reports for a minute only.
 */
import { notAhead } from "@stamp/geo";

export interface CopyFacts {
  readonly epoch: number;
  readonly paired: number;
  readonly complete: boolean;
  /** Milliseconds since 1970; undefined: not known. */
  readonly lastSyncMs: number | undefined;
  /** Highest lineage of the primary's logs; undefined or 0: they lost nothing. */
  readonly lineage?: number;
}

/** Facts about a copy, as its primary reports them. */
export interface ToldCopy extends CopyFacts {
  /** Lowest lineage of this stamp under which rows of the copy were seeded; undefined: an older primary does not say. */
  readonly copyLineage?: number | undefined;
}

interface Kept extends CopyFacts {
  /** Lineage of this stamp under which the facts were told. */
  readonly stampLineage: number;
  /** Wall-clock time of the facts, in milliseconds since 1970. */
  readonly toldMs: number;
}

interface Now {
  readonly stampLineage: number;
  readonly nowMs: number;
}

const copiesMax = 10_000;
/** Time within which a report may arrive late, in milliseconds: far above the time for which its sender waits. */
const lateMs = 60_000;

export class CopiesHere {
  readonly #copies = new Map<string, Kept>();

  /** Returns facts about a copy. `now`: lineage of this stamp, and wall clock in milliseconds since 1970. */
  get(account: string, now: Now): CopyFacts | undefined {
    return this.#held(account, now);
  }

  #held(account: string, { stampLineage, nowMs }: Now): Kept | undefined {
    const held = this.#copies.get(account);
    return held?.stampLineage === stampLineage ? { ...held, lastSyncMs: notAhead(held.lastSyncMs, nowMs) } : undefined;
  }

  /** Takes facts that the primary told; `now` is as in `get`. */
  told(account: string, facts: CopyFacts, now: Now): void {
    const { stampLineage, nowMs } = now;
    const { lineage = 0 } = facts;
    const held = this.#held(account, now);
    const before = held?.epoch === facts.epoch && held.paired === facts.paired ? held : undefined;
    // A late report, from before the log began a new lineage.
    const isLate = before !== undefined && Math.abs(nowMs - before.toldMs) < lateMs;
    if (isLate && lineage < (before.lineage ?? 0)) return;
    const isSame = before !== undefined && lineage === (before.lineage ?? 0);
    const kept = isSame ? before.lastSyncMs : undefined;
    const times = [kept, facts.lastSyncMs].map((time) => notAhead(time, nowMs)).filter((time) => time !== undefined);
    this.#copies.delete(account);
    this.#copies.set(account, { ...facts, stampLineage, toldMs: nowMs, lastSyncMs: times.length === 0 ? undefined : Math.max(...times) });
    const oldest = this.#copies.keys().next().value;
    if (this.#copies.size > copiesMax && oldest !== undefined) this.#copies.delete(oldest);
  }
}
