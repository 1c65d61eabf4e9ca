/**
 * How far the receiver of one connection may acknowledge: positions of the sender's log, in order. Invariant: an
 * acknowledged position is synced (rule `geoAcknowledgedIsSynced`, ACKSYNC of docs/design/model/geo-shipping.pml).
 */
import type { Rules } from "@stamp/base";
import { assert } from "@stamp/base";

export class Acknowledgements {
  readonly #rules: Rules;
  #applied: number;
  #synced: number;

  /** `from`: position at which the connection began. Everything up to there was acknowledged before. */
  constructor(from: number, rules: Rules) {
    this.#rules = rules;
    this.#applied = from;
    this.#synced = from;
  }

  /** Notes that everything up to `position` was applied, in memory at least. */
  applied(position: number): void {
    assert(position >= this.#applied, "positions are applied in order");
    this.#applied = position;
  }

  /** Position that a sync which begins now makes durable. */
  get syncing(): number {
    return this.#applied;
  }

  /** Notes that a sync that began at `position` has ended. */
  synced(position: number): void {
    assert(position <= this.#applied, "only what was applied is synced");
    this.#synced = Math.max(this.#synced, position);
  }

  /** Highest position that may be acknowledged. */
  get acknowledgeable(): number {
    return this.#rules.on("geoAcknowledgedIsSynced") ? this.#synced : this.#applied;
  }
}
