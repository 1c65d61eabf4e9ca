/** Where the time of transactions and reads goes, of all partitions of a process together. */
import { Histogram } from "@stamp/base";
import type { Clock } from "@stamp/ports";

export class StorageTimes {
  /** Of a transaction: until it had its rows, until it was decided, until what it wrote was durable and applied. */
  readonly phases: Readonly<Record<"turn" | "decide" | "commit", Histogram>>;
  /** Of one group to the commit log. */
  readonly append: Histogram;
  readonly checkpoints: Readonly<Record<"flush" | "merge", Histogram>>;
  /** Of what was in no cache. */
  readonly blockRead: Histogram;

  constructor(clock: Clock) {
    const made = (): Histogram => new Histogram(clock);
    this.phases = { turn: made(), decide: made(), commit: made() };
    this.append = made();
    this.checkpoints = { flush: made(), merge: made() };
    this.blockRead = made();
  }
}
