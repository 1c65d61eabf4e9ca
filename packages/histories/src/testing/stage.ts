/** A stage for tests: virtual time; the first to wake goes on. */
import type { HistoryStage } from "../stage.ts";

/** Longer than any chain of promises between two sleeps. */
const turnsMax = 40;

async function settled(): Promise<void> {
  for (let i = 0; i < turnsMax; i++) await Promise.resolve();
}

export function virtualStage(): HistoryStage & { run<T>(work: Promise<T>): Promise<T> } {
  let now = 0;
  const sleepers: { readonly at: number; readonly wake: () => void }[] = [];
  return {
    nowMs: () => now,
    sleep: (ms) => new Promise((wake) => void sleepers.push({ at: now + ms, wake })),
    count: () => {},
    run: async (work) => {
      let ended = false;
      const over = work.finally(() => {
        ended = true;
      });
      over.catch(() => {});
      while (!ended) {
        await settled();
        sleepers.sort((a, b) => a.at - b.at);
        const next = sleepers.shift();
        if (!next) continue;
        now = next.at;
        next.wake();
      }
      return over;
    },
  };
}
