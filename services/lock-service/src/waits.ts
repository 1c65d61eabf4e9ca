/**
 * Questions that the lock service holds until there is news: a standby waits for the end of a lease, a copy of the metadata for the next write.
 * Without it each of them asks several times a second, also when nothing happens.
 *
 * Invariants:
 *   - A wait decides nothing. When it ends, for whatever reason, the question is judged as if it had just come, in a turn of the committer.
 *   - No change is missed: whoever waits names the number of changes that were told before the question was judged.
 *   - At most `waitsMax` questions are held. Others are answered at once, as by a lock service that holds none.
 */
import type { CallContext, Clock } from "@stamp/ports";

/** Questions that are held at the same time. A stamp has a few for each manager and front-end. */
const waitsMax = 1_000;
/** Longest wait, in milliseconds, whatever the caller asks for. */
const waitMaxMs = 10_000;
/** Waits from this length on may end up to a second earlier, in milliseconds: who asks takes half a wait for a wait. */
const roundsFromMs = 2_000;
/** Time before a call's deadline at which the answer leaves, in milliseconds. */
const answerMs = 100;

interface Waiting {
  readonly concerns: (name: string) => boolean;
  readonly wake: () => void;
}

export class WaitingQuestions {
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiting>();
  #changes = 0;
  #isOver = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Number of changes that were told. */
  get changes(): number {
    return this.#changes;
  }

  /** Returns the monotonic end of the wait of a question that comes now. Long waits end in a round, so that answers leave together. */
  endMs(waitMs: number, { deadlineMs }: Pick<CallContext, "deadlineMs">): number {
    const mostMs = Math.min(waitMs, waitMaxMs);
    const untilMs = mostMs < roundsFromMs ? mostMs : (this.#clock.untilRoundMs?.(mostMs) ?? mostMs);
    return Math.min(this.#clock.monotonicMs() + untilMs, deadlineMs - answerMs);
  }

  /**
   * Resolves at a change of a name that concerns the caller, at `untilMs`, or when the call is over. At once if there were changes since
   * `changes` had the value `since`. Gives `refused`, without a wait, if too many questions wait, or after `end`.
   */
  next(
    concerns: (name: string) => boolean,
    untilMs: number,
    since: number,
    { signal }: Pick<CallContext, "signal">,
  ): Promise<"waited" | "refused"> {
    const leftMs = untilMs - this.#clock.monotonicMs();
    if (this.#isOver || this.#waiting.size >= waitsMax) return Promise.resolve("refused");
    if (leftMs <= 0 || signal.aborted || this.#changes !== since) return Promise.resolve("waited");
    return new Promise((resolve) => {
      const wake = (): void => {
        timer.cancel();
        signal.removeEventListener("abort", wake);
        this.#waiting.delete(waiting);
        resolve("waited");
      };
      const waiting: Waiting = { concerns, wake };
      const timer = this.#clock.after(leftMs, wake);
      signal.addEventListener("abort", wake, { once: true });
      this.#waiting.add(waiting);
    });
  }

  told(name: string): void {
    this.#changes += 1;
    for (const { concerns, wake } of [...this.#waiting]) if (concerns(name)) wake();
  }

  /** Ends every wait: the service stops, or another lock service has its turn. Nobody waits here any more. */
  end(): void {
    this.#isOver = true;
    for (const { wake } of [...this.#waiting]) wake();
  }
}
