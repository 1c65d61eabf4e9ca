/** Work on many things at a time, in bounds. */

/**
 * Calls `work` for up to `atOnce` of the things at a time and yields the results in their order. A failure is thrown at its place. `isLast`: behind
 * such a thing no other is asked for until its result was used.
 */
export async function* inOrder<T, R>(
  things: AsyncIterable<T> | Iterable<T>,
  atOnce: number,
  work: (thing: T) => Promise<R>,
  isLast: (thing: T) => boolean = () => false,
): AsyncGenerator<R, void, undefined> {
  const working: Promise<R>[] = [];
  try {
    for await (const thing of things) {
      const begun = work(thing);
      // Its failure is thrown when its turn comes; until then it is not unhandled.
      begun.catch(() => {});
      working.push(begun);
      const left = isLast(thing) ? 0 : atOnce - 1;
      while (working.length > left) yield await (working.shift() as Promise<R>);
    }
    while (working.length > 0) yield await (working.shift() as Promise<R>);
  } finally {
    await Promise.allSettled(working);
  }
}
