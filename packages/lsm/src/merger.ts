/**
 * Merges several sorted sources of entries into one order. The caller fetches: it sets the head of every source, takes `next()`, and sets
 * the heads of the sources that moved. Pure; how many sources are asked and when is the caller's.
 */
import { assert, compareBytes } from "@stamp/base";
import { compareEntries, type Entry } from "./entry.ts";

/** `undefined`: the source has ended. */
type Head = Entry | undefined;

export class Merger {
  readonly #heads: Head[];
  readonly #set: boolean[];
  readonly #reverse: boolean;

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

  /** For reads, whose sources give one visible version a key: the newest of the next key, and the sources to move on. */
  nextKey(): { readonly entry: Entry; readonly advance: readonly number[] } | undefined {
    assert(
      this.#set.every((set) => set),
      "every source has its head",
    );
    let best: Entry | undefined;
    for (const head of this.#heads) {
      if (head === undefined) continue;
      if (best === undefined || this.#order(head, best) < 0) best = head;
    }
    if (best === undefined) return undefined;
    const advance: number[] = [];
    for (const [source, head] of this.#heads.entries()) {
      if (head !== undefined && compareBytes(head.key, best.key) === 0) {
        if (head.sequence > best.sequence) best = head;
        advance.push(source);
        this.#set[source] = false;
      }
    }
    return { entry: best, advance };
  }

  /** For merging checkpoints: every version, one after another, newest first within a key. */
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
