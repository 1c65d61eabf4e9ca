/**
 * Reports of the primaries of this stamp's copies: Last Sync Time, and whether a copy is complete. Kept in
 * memory by the leading partition manager; a new leader hears it again within seconds.
 *
 * Invariant: reports may come late or twice. The Last Sync Time of a copy does not fall, and nothing is kept of an earlier
 * copy of the account.
 */
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

  get(account: string): CopyFacts | undefined {
    return this.#copies.get(account);
  }

  told(account: string, facts: CopyFacts): void {
    const held = this.#copies.get(account);
    const isSame = held?.epoch === facts.epoch && held.paired === facts.paired;
    const times = [isSame ? held.lastSyncMs : undefined, facts.lastSyncMs].filter((time) => time !== undefined);
    this.#copies.delete(account);
    this.#copies.set(account, { ...facts, lastSyncMs: times.length === 0 ? undefined : Math.max(...times) });
    const oldest = this.#copies.keys().next().value;
    if (this.#copies.size > copiesMax && oldest !== undefined) this.#copies.delete(oldest);
  }
}
