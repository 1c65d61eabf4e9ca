/** Paging over numbers that are given in about the order in which they come: who asks for a page pays for that page, not for all of them. */

/** Out of order by so little: put where it belongs. */
const nearMax = 64;
/** Number of removed ids that are stepped over before they are dropped. */
const goneMin = 1_024;

export class OrderedIds<Id extends number> {
  readonly #isThere: (id: Id) => boolean;
  /** Ids, ascending unless `#sorted` is false; may hold some that are gone. */
  #ids: Id[] = [];
  #sorted = true;
  #gone = 0;

  /** `isThere`: true if the id was added and not removed; asked when a page is made. */
  constructor(isThere: (id: Id) => boolean) {
    this.#isThere = isThere;
  }

  /** Adds an id that is not there yet. */
  add(id: Id): void {
    const ids = this.#ids;
    let at = ids.length;
    const end = Math.max(0, at - nearMax);
    while (at > end && (ids[at - 1] as Id) >= id) at -= 1;
    if (at > end || at === 0 || !this.#sorted) {
      // It was there before, and has come again before it was let go.
      if (ids[at] === id) this.#gone -= 1;
      else ids.splice(this.#sorted ? at : ids.length, 0, id);
      return;
    }
    ids.push(id);
    this.#sorted = false;
  }

  /** Notes that an id is not there any more. */
  removed(): void {
    this.#gone += 1;
    if (this.#gone < goneMin || this.#gone * 2 < this.#ids.length) return;
    this.#ids = this.#ids.filter(this.#isThere);
    this.#gone = 0;
  }

  /** Returns the first `limit` above `id` that are there, ascending. */
  after(id: number, limit: number): Id[] {
    this.#sort();
    const ids = this.#ids;
    let low = 0;
    for (let high = ids.length; low < high; ) {
      const middle = (low + high) >>> 1;
      if ((ids[middle] as Id) > id) high = middle;
      else low = middle + 1;
    }
    const page: Id[] = [];
    for (let at = low; at < ids.length && page.length < limit; at++) {
      const each = ids[at] as Id;
      if (this.#isThere(each)) page.push(each);
    }
    return page;
  }

  #sort(): void {
    if (this.#sorted) return;
    this.#ids = [...new Set(this.#ids.filter(this.#isThere))].sort((a, b) => a - b);
    this.#sorted = true;
    this.#gone = 0;
  }
}
