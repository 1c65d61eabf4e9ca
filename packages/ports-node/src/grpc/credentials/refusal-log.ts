/** Log of connections and calls that did not prove that they belong to the stamp: one line in a while, however many there are. */
import type { Clock, Logger } from "@stamp/ports";

const everyMs = 5_000;

export class RefusalLog {
  readonly #clock: Clock;
  readonly #logger: Logger;
  #nextMs = 0;
  #unlogged = 0;

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock;
    this.#logger = logger;
  }

  note(peer: string, why: string): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs < this.#nextMs) {
      this.#unlogged++;
      return;
    }
    this.#logger.warn("refused an internal connection or call", { peer, why, othersSinceLastLine: this.#unlogged });
    this.#nextMs = nowMs + everyMs;
    this.#unlogged = 0;
  }
}
