/**
 * Merges several sorted sources of entries into one order. The caller fetches: it sets the head of every source, takes `next()`, and sets
 * the heads of the sources that moved. Pure; how many sources are asked and when is the caller's.
 */
import { assert, compareBytes } from "@stamp/base";
import { compareEntries, type Entry } from "./entry.ts";

/** Next entry of a source; undefined: the source has ended. */
type Head = Entry | undefined;

export class Merger {
  readonly #heads: Head[];
  readonly #set: boolean[];
  readonly #reverse: boolean;
  /** Sources that had the key that `nextKey` gave last. */
  readonly advanced: number[] = [];

  /** Earlier sources win a tie (same key and sequence). */
  constructor(sources: number, options: { readonly reverse?: boolean } = {}) {
    this.#heads = new Array<Head>(sources).fill(undefined);
    this.#set = new Array<boolean>(sources).fill(false);
    this.#reverse = options.reverse ?? false;
  }

  set(source: number, head: Head): void {
    this.#heads[source] = head;
    this.#set[source] = true;
  }

  /** Returns the newest version of the next key, for reads, whose sources give one visible version a key. `advanced` has the sources to move on. */
  nextKey(): Entry | undefined {
    const heads = this.#heads;
    const { advanced } = this;
    advanced.length = 0;
    let best: Entry | undefined;
    for (let source = 0; source < heads.length; source++) {
      assert(this.#set[source] === true, "every source has its head");
      const head = heads[source];
      if (head === undefined) continue;
      const order = best === undefined ? -1 : this.#order(head, best);
      if (order > 0) continue;
      if (order < 0) advanced.length = 0;
      if (order < 0 || head.sequence > (best as Entry).sequence) best = head;
      advanced.push(source);
    }
    for (const source of advanced) this.#set[source] = false;
    return best;
  }

  /** Returns the next version for a merge of checkpoints: keys ascending, versions of a key newest first. */
  nextVersion(): { readonly entry: Entry; readonly advance: number } | undefined {
    let best = -1;
    for (const [source, head] of this.#heads.entries()) {
      if (head === undefined) continue;
      if (best < 0 || compareEntries(head, this.#heads[best] as Entry) < 0) best = source;
    }
    if (best < 0) return undefined;
    return { entry: this.#heads[best] as Entry, advance: best };
  }

  #order(a: Entry, b: Entry): number {
    const keys = compareBytes(a.key, b.key);
    return this.#reverse ? -keys : keys;
  }
}
