/**
 * Intervals of one length share one timer: at rest a process wakes once for all of them, and not once for each. All processes of a machine wake at the
 * same multiples of the length (rounds.ts). Keeps no process alive.
 */
import type { Timer } from "@stamp/ports";
import { untilMultipleMs } from "./rounds.ts";
import { TimerQueue } from "./timer-queue.ts";

interface Shared {
  timer: Timer;
  readonly runs: Set<() => void>;
}

const timers = new TimerQueue();
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
    shared.timer.cancel();
    byLength.delete(everyMs);
  };
}

function begin(everyMs: number): Shared {
  const runs = new Set<() => void>();
  let dueMs = performance.now() + untilMultipleMs(everyMs);
  const turn = (): void => {
    dueMs += everyMs;
    // The process or the machine stood still.
    if (dueMs <= performance.now()) dueMs = performance.now() + untilMultipleMs(everyMs);
    shared.timer = timers.add(dueMs, turn);
    for (const run of [...runs]) if (runs.has(run)) run();
  };
  const shared: Shared = { timer: timers.add(dueMs, turn), runs };
  byLength.set(everyMs, shared);
  return shared;
}
