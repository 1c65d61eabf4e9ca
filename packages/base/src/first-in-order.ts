/** Paging over what is kept in no order: a page is found in one walk, without sorting everything. */

/**
 * Returns the first `count` items in the order of `compare`. Holds at most twice as many; reads each item once.
 */
export function firstInOrder<T>(items: Iterable<T>, count: number, compare: (a: T, b: T) => number): T[] {
  const found: T[] = [];
  /** The last of the first `count` found so far, once there are as many: later ones are of no interest. */
  let last: T | undefined;
  for (const item of items) {
    if (last !== undefined && compare(item, last) >= 0) continue;
    found.push(item);
    if (found.length < 2 * count) continue;
    found.sort(compare).length = count;
    last = found[count - 1];
  }
  found.sort(compare);
  return found.slice(0, count);
}
