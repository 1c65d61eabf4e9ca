/**
 * Intervals of one length share one timer: at rest a process wakes once for all of them, and not once for each. Keeps no process alive.
 */
interface Shared {
  readonly timer: NodeJS.Timeout;
  readonly runs: Set<() => void>;
}

const byLength = new Map<number, Shared>();

/** Calls `run` for the first time within `everyMs`, and every `everyMs` from then on. Returns what ends that. */
export function sharedInterval(everyMs: number, run: () => void): () => void {
  const shared = byLength.get(everyMs) ?? begin(everyMs);
  // A function per call, because the same one may be given twice.
  const own = (): void => run();
  shared.runs.add(own);
  return () => {
    shared.runs.delete(own);
    if (shared.runs.size > 0 || byLength.get(everyMs) !== shared) return;
    clearInterval(shared.timer);
    byLength.delete(everyMs);
  };
}

function begin(everyMs: number): Shared {
  const runs = new Set<() => void>();
  const timer = setInterval(() => {
    for (const run of [...runs]) if (runs.has(run)) run();
  }, everyMs);
  timer.unref();
  const shared = { timer, runs };
  byLength.set(everyMs, shared);
  return shared;
}
