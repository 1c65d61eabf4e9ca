/** Real time as a stage for recording clients. */
import { BrokenPromise, type HistoryStage, type ObjectClients } from "@stamp/histories";

export function stageInto(counts: Record<string, number>): HistoryStage {
  return {
    nowMs: () => performance.now(),
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    count: (what, by = 1) => {
      counts[what] = (counts[what] ?? 0) + by;
    },
  };
}

/** Runs a check. Broken promises are added to the others; any other error is a bug. */
export async function judgedInto(broken: string[], work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!(error instanceof BrokenPromise)) throw error;
    broken.push(error.message);
  });
}

/** Returns the breaches in what they saw. A history that could not be decided is no proof, so it counts as a breach. */
export function judgeHistory({ history }: ObjectClients): readonly string[] {
  const wrong = history.check();
  return [...(wrong === undefined ? [] : [wrong]), ...history.undecided.map((undecided) => `NOT DECIDED ${undecided}`)];
}
