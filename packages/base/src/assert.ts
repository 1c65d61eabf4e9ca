/**
 * Assertions are for our own bugs: always on, one condition each, and they end the process. Never used on what a peer, a disk or a
 * user sent: those are failures that are returned.
 */
export class AssertionError extends Error {
  override readonly name = "AssertionError";
}

export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** Throws: for the default branch of an exhaustive switch. */
export function unreachable(value: never): never {
  throw new AssertionError(`unreachable: ${JSON.stringify(value)}`);
}

/** Returns the value, which must be there: an index or a map entry that our own code put there. */
export function present<T>(value: T | undefined | null, what: string): T {
  if (value === undefined || value === null) throw new AssertionError(`missing: ${what}`);
  return value;
}
