/**
 * Reports of the primaries of this stamp's copies: Last Sync Time, and whether a copy is complete. Kept in
 * memory by the leading partition manager; a new leader hears it again within seconds.
 *
 * Invariants:
 * - Reports may come late or twice. The Last Sync Time of a copy does not fall, unless the clock is set back, and nothing is kept of an earlier
 *   copy of the account.
 * - No Last Sync Time is kept, or told, that is ahead of this stamp's clock: neither a clock of the primary that is ahead nor a wrong report lets a
 *   copy look newer than now.
 */
import { notAhead } from "@stamp/geo";

export interface CopyFacts {
  readonly epoch: number;
  readonly paired: number;
  readonly complete: boolean;
  /** Milliseconds since 1970; undefined: not known. */
  readonly lastSyncMs: number | undefined;
}

const copiesMax = 10_000;

export class CopiesHere {
  readonly #copies = new Map<string, CopyFacts>();

  /** `nowMs`: wall clock, in milliseconds since 1970. */
  get(account: string, nowMs: number): CopyFacts | undefined {
    const held = this.#copies.get(account);
    return held && { ...held, lastSyncMs: notAhead(held.lastSyncMs, nowMs) };
  }

  /** `nowMs`: as in `get`. */
  told(account: string, facts: CopyFacts, nowMs: number): void {
    const held = this.#copies.get(account);
    const isSame = held?.epoch === facts.epoch && held.paired === facts.paired;
    const before = isSame ? held.lastSyncMs : undefined;
    const times = [before, facts.lastSyncMs].map((time) => notAhead(time, nowMs)).filter((time) => time !== undefined);
    this.#copies.delete(account);
    this.#copies.set(account, { ...facts, lastSyncMs: times.length === 0 ? undefined : Math.max(...times) });
    const oldest = this.#copies.keys().next().value;
    if (this.#copies.size > copiesMax && oldest !== undefined) this.#copies.delete(oldest);
  }
}
