/**
 * Fences against what another stamp ships: a copy that is promoted takes nothing more of its primary before
 * (docs/design/geo.md "Promotion"). A front-end may have read the account's role before, and still let a shipment in.
 *
 * Invariants:
 * - A fence holds in memory before it is recorded, and is recorded before it counts: later owners, and children of splits and
 *   merges, have it.
 * - When a fence counts, every transaction that was decided before it is over (rule `geoPromotionFences`).
 */
import { type Failed, type Failure, type Outcome, refused, toHex } from "@stamp/base";

/** Fences of a range: by the hexadecimal bytes with which the fenced keys begin, the highest role epoch of which nothing is taken. */
export type FencedEpochs = Readonly<Record<string, number>>;

interface FencedRange {
  readonly stored: FencedEpochs;
  readonly record: (fences: FencedEpochs) => Promise<Outcome<void>>;
  /** Resolves when every transaction that began before is over. */
  readonly untilOver: () => Promise<void>;
  /** Why nothing is recorded any more; undefined: it is. */
  readonly ended: () => Failure | undefined;
}

export class ShippedFences {
  readonly #range: FencedRange;
  #fences: FencedEpochs;

  constructor(range: FencedRange) {
    this.#range = range;
    this.#fences = range.stored;
  }

  /** Takes nothing more that was shipped under a role epoch up to this one, of keys that begin so. Resolves when that counts. */
  async raise(prefix: Uint8Array, epoch: number): Promise<Outcome<void>> {
    const key = toHex(prefix);
    this.#fences = { ...this.#fences, [key]: Math.max(epoch, this.#fences[key] ?? 0) };
    await this.#range.untilOver();
    const ended = this.#range.ended();
    return ended === undefined ? this.#range.record(this.#fences) : { ok: false, failure: ended };
  }

  /** Refuses what was shipped of a key under a fenced role epoch. */
  refuses(key: Uint8Array, epoch: number): Failed | undefined {
    const text = toHex(key);
    const fence = Object.entries(this.#fences).find(([prefix, upTo]) => epoch <= upTo && text.startsWith(prefix));
    if (fence === undefined) return undefined;
    const message = `shipped under role epoch ${epoch}, behind the promotion of this stamp's copy, which ended role epoch ${fence[1]}`;
    return refused("failedPrecondition", "staleRoleEpoch", message);
  }
}
