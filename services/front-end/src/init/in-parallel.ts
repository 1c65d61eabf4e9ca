/** Does `work` for each item, this many at once. Throws the first error when all begun work has ended; begins none behind it. */
export async function inParallel<T>(items: Iterable<T>, atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const rest = items[Symbol.iterator]();
  const failures: unknown[] = [];
  const one = async (): Promise<void> => {
    for (let next = rest.next(); !next.done && failures.length === 0; next = rest.next()) {
      try {
        await work(next.value);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  if (failures.length > 0) throw failures[0];
}
