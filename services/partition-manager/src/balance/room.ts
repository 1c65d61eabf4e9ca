/**
 * Whether the streams have room for what is begun by itself: a move seals the last extents of a range, and a server that
 * loads it needs new ones. While none can be made, a range that is moved is served by nobody; so nothing is begun before there is room.
 * What was begun goes on, and what a person asks for is tried.
 */
import type { Outcome } from "@stamp/base";
import { pause, type World } from "@stamp/ports";

const askTimeoutMs = 1_000;

export class ExtentRoom {
  readonly #world: World;
  readonly #ask: (timeoutMs: number) => Promise<Outcome<readonly string[]>>;
  #lacks: readonly string[] = ["the stream manager has not said yet whether there is room"];

  /** `ask`: returns why no extent can be made now; empty: one can. */
  constructor(world: World, ask: (timeoutMs: number) => Promise<Outcome<readonly string[]>>) {
    this.#world = world;
    this.#ask = ask;
  }

  /** Returns why nothing is to be begun by itself, for people; empty: nothing stands against it. */
  get lacks(): readonly string[] {
    return this.#lacks;
  }

  /** Watches until the signal. */
  async watch(everyMs: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#heard(await this.#ask(askTimeoutMs));
      await pause(this.#world.clock, everyMs, signal);
    }
  }

  #heard(answer: Outcome<readonly string[]>): void {
    const { logger } = this.#world;
    const lacked = this.#lacks.length > 0;
    this.#lacks = answer.ok ? answer.value : [`the stream manager does not say whether there is room: ${answer.failure.message}`];
    const why = this.#lacks.join("; ");
    if (!lacked && why !== "") logger.warn("rebalance: nothing is begun by itself", { why });
    if (lacked && why === "") logger.info("rebalance: there is room");
  }
}
