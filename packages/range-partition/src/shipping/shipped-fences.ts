/**
 * Fences against what another stamp ships: a copy that is promoted takes nothing more of its primary before
 * (docs/design/geo.md "Promotion"). A front-end may have read the account's role before, and still let a shipment in.
 *
 * Invariants:
 * - A fence holds in memory before it is recorded, and is recorded before it counts: later owners, and children of splits and
 *   merges, have it.
 * - When a fence counts, every transaction that was decided before it is over (rule `geoPromotionFences`).
 * - A fence or tenure that was not recorded is refused in memory, and counts for nothing else: `recordedTenure` leaves it out.
 *
 * Beside the fences stands the tenure of each account (@stamp/geo account-role.ts), kept in the same way: rows that were shipped to
 * an earlier copy of the account are refused, and a removal of the account ends where a later copy has begun.
 */
import { type Failed, type Failure, type Outcome, refused, toHex } from "@stamp/base";
import { tenureOfCopy } from "@stamp/geo";

/**
 * Fences of a range: by the hexadecimal bytes with which the fenced keys begin, the highest role epoch of which nothing is taken; by "tenure:" and
 * the same bytes, the tenure.
 */
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
  /** Part of the fences that is durable. */
  #recorded: FencedEpochs;

  constructor(range: FencedRange) {
    this.#range = range;
    this.#fences = range.stored;
    this.#recorded = range.stored;
  }

  /** Takes nothing more that was shipped under a role epoch up to this one, of keys that begin so. Resolves when that counts. */
  raise(prefix: Uint8Array, epoch: number): Promise<Outcome<void>> {
    return this.#raise(toHex(prefix), epoch);
  }

  /** Raises the tenure of keys that begin so. Resolves when it counts: no removal of an earlier tenure is under way. */
  raiseTenure(prefix: Uint8Array, tenure: number): Promise<Outcome<void>> {
    return this.#raise(tenureKey(prefix), tenure);
  }

  /** Tenure of keys that begin so, which later owners have, too; 0: none is durable. */
  recordedTenure(prefix: Uint8Array): number {
    return this.#recorded[tenureKey(prefix)] ?? 0;
  }

  /** Tenure of keys that begin so, durable or not; 0: none was told. */
  tenure(prefix: Uint8Array): number {
    return this.#fences[tenureKey(prefix)] ?? 0;
  }

  async #raise(key: string, number: number): Promise<Outcome<void>> {
    this.#fences = { ...this.#fences, [key]: Math.max(number, this.#fences[key] ?? 0) };
    await this.#range.untilOver();
    const ended = this.#range.ended();
    if (ended !== undefined) return { ok: false, failure: ended };
    const fences = this.#fences;
    const recorded = await this.#range.record(fences);
    if (recorded.ok) this.#recorded = highestOf(this.#recorded, fences);
    return recorded;
  }

  /** Refuses what was shipped of a key to a copy that operation `paired` began, if a later tenure began since; `paired` 0: not known. */
  refusesCopy(key: Uint8Array, paired: number): Failed | undefined {
    if (paired === 0) return undefined;
    const text = toHex(key);
    const later = Object.entries(this.#fences).find(
      ([name, tenure]) =>
        name.startsWith(tenurePrefix) && tenure > tenureOfCopy(paired) && text.startsWith(name.slice(tenurePrefix.length)),
    );
    if (later === undefined) return undefined;
    const message = `shipped to the copy that operation ${paired} began, which was removed from this stamp since`;
    return refused("failedPrecondition", "staleRoleEpoch", message);
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

/** Records may end in another order than they began. */
function highestOf(a: FencedEpochs, b: FencedEpochs): FencedEpochs {
  const highest = { ...a };
  for (const [key, number] of Object.entries(b)) highest[key] = Math.max(number, a[key] ?? 0);
  return highest;
}

const tenurePrefix = "tenure:";
const tenureKey = (prefix: Uint8Array): string => tenurePrefix + toHex(prefix);
