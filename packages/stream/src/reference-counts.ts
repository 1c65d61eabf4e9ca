/**
 * Number of lists that hold each extent, in pages of small integers: a split or merge of a range counts every extent of its lists at once, and a
 * Map takes some ten times as long for each. A page goes when the last of its extents is in no list.
 */
import type { ExtentId } from "@stamp/base";

const pageIds = 1_024;

interface Page {
  readonly counts: Uint32Array;
  /** Number of extents of the page that are in some list. */
  held: number;
}

export class ReferenceCounts {
  readonly #pages = new Map<number, Page>();
  /** The page that was asked for last: neighbours in a list have neighbouring ids. */
  #number = -1;
  #page: Page | undefined;

  /** Number of pages, for tests. */
  get pages(): number {
    return this.#pages.size;
  }

  of(id: ExtentId): number {
    return this.#pageOf(id)?.counts[id % pageIds] ?? 0;
  }

  /** Returns the number of lists after the change. */
  change(id: ExtentId, step: 1 | -1): number {
    const page = this.#pageOf(id) ?? this.#newPage(id);
    const at = id % pageIds;
    const before = page.counts[at] as number;
    // Taken from a list that it was not counted in: as a Map of counts above 0 would have it.
    const count = Math.max(0, before + step);
    page.counts[at] = count;
    if (before === 0 && count > 0) page.held += 1;
    if (before > 0 && count === 0) page.held -= 1;
    if (page.held === 0) this.#letGo(id);
    return count;
  }

  #pageOf(id: ExtentId): Page | undefined {
    const number = Math.floor(id / pageIds);
    if (number !== this.#number) {
      this.#number = number;
      this.#page = this.#pages.get(number);
    }
    return this.#page;
  }

  #newPage(id: ExtentId): Page {
    const page: Page = { counts: new Uint32Array(pageIds), held: 0 };
    this.#number = Math.floor(id / pageIds);
    this.#page = page;
    this.#pages.set(this.#number, page);
    return page;
  }

  #letGo(id: ExtentId): void {
    this.#pages.delete(Math.floor(id / pageIds));
    this.#page = undefined;
    this.#number = -1;
  }
}
