/** Lines of several logs in the order of their times. Lines of one log stay in the order in which they were written. */
import type { LogEntry } from "./log-entry.ts";

/** Something that gives entries in batches; an empty batch: nothing more now. */
interface Batches {
  read(): readonly LogEntry[];
}

/** Gives what is there now. Holds one batch of each source, however much there is. */
export function* inOrder(sources: readonly Batches[]): Generator<LogEntry> {
  const heads = sources.map((source) => ({ source, batch: source.read(), at: 0 }));
  for (;;) {
    let first: (typeof heads)[number] | undefined;
    let firstMs = Number.POSITIVE_INFINITY;
    for (const head of heads) {
      if (head.at === head.batch.length && head.at > 0) {
        head.batch = head.source.read();
        head.at = 0;
      }
      const atMs = head.batch[head.at]?.atMs;
      if (atMs === undefined || atMs >= firstMs) continue;
      first = head;
      firstMs = atMs;
    }
    if (first === undefined) return;
    yield first.batch[first.at] as LogEntry;
    first.at++;
  }
}

/** Returns the last `count` values. */
export function lastOf<T>(values: Iterable<T>, count: number): T[] {
  const ring: T[] = [];
  let at = 0;
  for (const value of values) {
    if (ring.length < count) ring.push(value);
    else ring[at % count] = value;
    at++;
  }
  const start = at > count ? at % count : 0;
  return [...ring.slice(start), ...ring.slice(0, start)];
}
