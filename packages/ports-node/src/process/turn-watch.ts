/**
 * The longest turn of the event loop of this process, in processor time of its thread. Other programs on the machine make the wall time of a
 * turn longer, but not its processor time.
 *
 * A turn is what the thread does between two check phases of the loop: callbacks of immediates and timers, then those of sockets and files,
 * each with the promises it settles. Waiting for events takes no processor time.
 *
 * Invariants:
 *   - The watch begins when it is asked for the first time, and ends when nobody has asked for `watchForMs`: a process that nobody measures
 *     pays nothing. While it runs it costs about 2 µs a turn.
 *   - The watch never wakes an idle loop, and never keeps a process alive (its immediate has no reference).
 *   - A turn that runs while `take` is called counts up to that moment, and only its rest counts for the next caller.
 */

/** Time without a question after which the watch ends, in milliseconds. */
export const watchForMs = 60_000;

export interface LongestTurn {
  /** True if the watch was on; false: it begins with this question, and the other fields say nothing. */
  readonly watching: boolean;
  /** Processor time of the longest turn since the previous question, in milliseconds. */
  readonly longestCpuMs: number;
  /** Number of turns since the previous question. */
  readonly turns: number;
}

export class TurnWatch {
  #immediate: NodeJS.Immediate | undefined;
  #lastMicros = 0;
  #longestMicros = 0;
  #turns = 0;
  #untilMs = 0;

  /** Returns the longest turn since the previous call, and begins anew. */
  take(): LongestTurn {
    const watching = this.#immediate !== undefined;
    this.#endTurn();
    const taken = { watching, longestCpuMs: watching ? this.#longestMicros / 1_000 : 0, turns: watching ? this.#turns : 0 };
    this.#longestMicros = 0;
    this.#turns = 0;
    this.#untilMs = performance.now() + watchForMs;
    if (!watching) this.#next();
    return taken;
  }

  /** Ends the watch. The next question begins it again. */
  stop(): void {
    clearImmediate(this.#immediate);
    this.#immediate = undefined;
  }

  #next(): void {
    this.#immediate = setImmediate(() => {
      this.#endTurn();
      if (performance.now() < this.#untilMs) this.#next();
      else this.stop();
    });
    this.#immediate.unref();
  }

  #endTurn(): void {
    const { user, system } = process.threadCpuUsage();
    const nowMicros = user + system;
    this.#longestMicros = Math.max(this.#longestMicros, nowMicros - this.#lastMicros);
    this.#lastMicros = nowMicros;
    this.#turns += 1;
  }
}
