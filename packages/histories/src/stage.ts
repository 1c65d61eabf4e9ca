/** Where clients play: virtual time or a real machine. */

/** A judgement: the service broke what it promises. */
export class BrokenPromise extends Error {
  override readonly name = "BrokenPromise";
}

export interface HistoryStage {
  /** Reads the one monotonic clock of all clients, in milliseconds. */
  readonly nowMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
  /** `what` happened once more: "put ok", "take unknown". */
  readonly count: (what: string, by?: number) => void;
}

/** Repeats an attempt until it is done. Throws BrokenPromise if it is not within `withinMs`. */
export async function until(
  stage: HistoryStage,
  what: string,
  { withinMs, pauseMs }: { readonly withinMs: number; readonly pauseMs: number },
  attempt: () => Promise<boolean>,
): Promise<void> {
  const endMs = stage.nowMs() + withinMs;
  while (!(await attempt())) {
    if (stage.nowMs() > endMs) throw new BrokenPromise(`not within ${withinMs} ms after the last fault: ${what}`);
    await stage.sleep(pauseMs);
  }
}
