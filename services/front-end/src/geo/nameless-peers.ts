/**
 * Other stamps that call the geo door without saying which stamp they are, by a secret or certificate of a release before. The door takes them below
 * feature level 4 only, so `stamp upgrade finalize` waits until each has proven its name or is silent (docs/guides/geo.md "Upgrade").
 */
import type { Clock } from "@stamp/ports";

/** Time after its last call without a name for which a stamp counts. Stamps call every few seconds, those whose door is refused less often. */
const namelessMs = 300_000;

export class NamelessPeers {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** Time at which each stamp called last without its name, by the name that the account's row has for it. */
  readonly #lastMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Notes that a caller without a name speaks of an account whose other stamp is `peer`. */
  nameless(peer: string): void {
    this.#lastMs.set(peer, this.#clock.monotonicMs());
  }

  /** Takes note that the peer has proven its name. */
  named(peer: string): void {
    this.#lastMs.delete(peer);
  }

  /** Names of the stamps, in order. */
  get names(): string[] {
    const sinceMs = this.#clock.monotonicMs() - namelessMs;
    return [...this.#lastMs].flatMap(([peer, lastMs]) => (lastMs >= sinceMs ? [peer] : [])).sort();
  }
}
