/**
 * Nonces of tokens for one call that were used and could be used again. Only holders of the secret get here, so the bound is one on
 * calls, not on attackers: with `usedMax` calls within the life of a token the next is refused, and none is forgotten early.
 */
const usedMax = 65_536;

export class UsedTokens {
  /** End of each used token by nonce, in the order of use. */
  readonly #used = new Map<string, number>();
  /** Revoked ids of tokens for tools, each with the end of its last token. */
  readonly #revoked = new Map<string, number>();

  /** Marks a nonce as used; false if it was used before or can't be remembered. */
  take(nonce: string, nowMs: number, untilMs: number): boolean {
    if (this.#used.has(nonce)) return false;
    if (this.#used.size >= usedMax) this.#forget(nowMs);
    if (this.#used.size >= usedMax) return false;
    this.#used.set(nonce, untilMs);
    return true;
  }

  /** Revokes tokens for tools. They stay revoked until `untilMs` without being named again. */
  revoke(ids: ReadonlySet<string>, nowMs: number, untilMs: number): void {
    for (const [id, until] of this.#revoked) if (until <= nowMs) this.#revoked.delete(id);
    for (const id of ids) this.#revoked.set(id, untilMs);
  }

  isRevoked(id: string): boolean {
    return this.#revoked.has(id);
  }

  #forget(nowMs: number): void {
    for (const [nonce, untilMs] of this.#used) if (untilMs <= nowMs) this.#used.delete(nonce);
  }
}
