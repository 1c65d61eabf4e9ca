/** Walks over a set that changes again and again, a bounded number of items at a time. Items that come meanwhile are at the end. */
export class Rounds<T> {
  readonly #items: () => Iterable<T>;
  readonly #itemsMax: number;
  /** Iterator at the place where the last part ended. */
  #walk: Iterator<T> | undefined;

  /** `items`: the set, asked for at the beginning of each round. `itemsMax`: number of items in one part. */
  constructor(items: () => Iterable<T>, itemsMax: number) {
    this.#items = items;
    this.#itemsMax = itemsMax;
  }

  /** Yields the next part of the round. It ends where the round ends. */
  *next(): Generator<T> {
    this.#walk ??= this.#items()[Symbol.iterator]();
    for (let looked = 0; looked < this.#itemsMax; looked++) {
      const item = this.#walk.next();
      if (item.done === true) {
        this.#walk = undefined;
        return;
      }
      yield item.value;
    }
  }
}
