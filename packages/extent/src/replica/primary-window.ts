/**
 * The primary's appends in flight on one extent. Offsets are given in order; replicas report which records they hold durably; appends
 * are acknowledged in offset order, each when every replica of the extent holds it. The first failure ends it: that append and all
 * after it fail, and nothing is taken any more, so that a later one never lands behind a hole (stream-layer.md, Append).
 */
import { assert, type Rules } from "@stamp/base";

export interface InFlight<T> {
  readonly offsetBytes: number;
  readonly endBytes: number;
  readonly item: T;
}

export interface WindowEffects<T> {
  /** Appends acknowledged, in offset order. */
  readonly acknowledged: readonly InFlight<T>[];
  readonly failed: readonly InFlight<T>[];
}

interface Entry<T> extends InFlight<T> {
  /** Bits of the replicas that hold the entry durably. */
  holders: number;
}

const nothing: WindowEffects<never> = { acknowledged: [], failed: [] };

export class PrimaryWindow<T> {
  readonly #rules: Rules;
  readonly #replicas: number;
  #entries: Entry<T>[] = [];
  #committedBytes: number;
  #stopped = false;

  /** `replicas` counts the primary, which is replica 0. */
  constructor(rules: Rules, replicas: number, startBytes: number) {
    assert(replicas >= 1 && replicas <= 16, "replica count");
    this.#rules = rules;
    this.#replicas = replicas;
    this.#committedBytes = startBytes;
  }

  get committedBytes(): number {
    return this.#committedBytes;
  }
  get inFlight(): number {
    return this.#entries.length;
  }
  get stopped(): boolean {
    return this.#stopped;
  }

  add(offsetBytes: number, lengthBytes: number, item: T): void {
    assert(!this.#stopped, "append after a failed one");
    this.#entries.push({ offsetBytes, endBytes: offsetBytes + lengthBytes, item, holders: 0 });
  }

  /** Notes that this replica holds the record that ends here. */
  durable(replica: number, endBytes: number): WindowEffects<T> {
    const entry = this.#entries.find((candidate) => candidate.endBytes === endBytes);
    if (entry === undefined) return nothing;
    entry.holders |= 1 << replica;
    return this.#acknowledge([]);
  }

  /** Returns the replicas that have not reported the record that ends here as durable, by number; none if it is not in flight. */
  missing(endBytes: number): number[] {
    const entry = this.#entries.find((candidate) => candidate.endBytes === endBytes);
    if (entry === undefined) return [];
    return Array.from({ length: this.#replicas }, (_, i) => i).filter((i) => (entry.holders & (1 << i)) === 0);
  }

  /** Notes that the record that ends here can't be known to be everywhere. */
  fail(endBytes: number): WindowEffects<T> {
    const at = this.#entries.findIndex((candidate) => candidate.endBytes === endBytes);
    if (at < 0) return nothing;
    if (this.#rules.on("primaryStopsAtFailure")) {
      this.#stopped = true;
      return this.#acknowledge(this.#entries.splice(at));
    }
    return this.#acknowledge(this.#entries.splice(at, 1));
  }

  /** Fails everything in flight, and takes nothing more. */
  stop(): WindowEffects<T> {
    this.#stopped = true;
    return { acknowledged: [], failed: this.#entries.splice(0) };
  }

  #enough(entry: Entry<T>): boolean {
    const all = 2 ** this.#replicas - 1;
    if (this.#rules.on("ackNeedsAllReplicas")) return entry.holders === all;
    // Rule off: the primary and one other will do.
    return (entry.holders & 1) !== 0 && (entry.holders & ~1 & all) !== 0;
  }

  #acknowledge(failed: InFlight<T>[]): WindowEffects<T> {
    let count = 0;
    for (const entry of this.#entries) {
      if (!this.#enough(entry)) break;
      this.#committedBytes = entry.endBytes;
      count += 1;
    }
    return { acknowledged: count === 0 ? [] : this.#entries.splice(0, count), failed };
  }
}
