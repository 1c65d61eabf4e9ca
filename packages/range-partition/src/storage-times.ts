/** Where the time of transactions and reads goes, of all partitions of a process together. */
import { Histogram } from "@stamp/base";
import type { Clock } from "@stamp/ports";

export class StorageTimes {
  /** Times of a transaction: until it had its rows, until it was decided, until its writes were durable and applied. */
  readonly phases: Readonly<Record<"turn" | "decide" | "commit", Histogram>>;
  /** Time of one group's append to the commit log. */
  readonly append: Histogram;
  readonly checkpoints: Readonly<Record<"flush" | "merge", Histogram>>;
  /** Time to read blocks that were in no cache. */
  readonly blockRead: Histogram;

  constructor(clock: Clock) {
    const made = (): Histogram => new Histogram(clock);
    this.phases = { turn: made(), decide: made(), commit: made() };
    this.append = made();
    this.checkpoints = { flush: made(), merge: made() };
    this.blockRead = made();
  }
}
