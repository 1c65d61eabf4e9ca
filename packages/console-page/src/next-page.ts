/** Pages of a list that have something in them. */
import type { Page } from "./model.ts";

/**
 * Returns the next page that has items, or the last one. A service that looks through many rows for a filter answers with empty pages in
 * between: whoever takes the first of them for the whole says that nothing is there. `isWanted`: false ends the search.
 */
export async function nextPage<T>(load: (after: string) => Promise<Page<T>>, after: string, isWanted: () => boolean): Promise<Page<T>> {
  for (let from = after; ; ) {
    const page = await load(from);
    if (page.items.length > 0 || page.next === null || !isWanted()) return page;
    from = page.next;
  }
}
