/**
 * Tells, while a drill runs, how long no write was acknowledged and what the stamp waits for meanwhile; then how long the writes were held
 * up that are acknowledged again. Each line is said when it becomes true, so that the lines of a drill are in order of time.
 */
import type { WriteTime } from "./checking-client.ts";
import type { Timeline } from "./watch.ts";

/** No line is said of a shorter silence. */
const silentAfterMs = 1_000;
/** Time between two lines of one silence. */
const sayAgainMs = 2_000;
/** Factor over the longest printed hold-up from which on another one is printed. */
const longerBy = 1.2;
const lookEveryMs = 50;

export interface SilenceOptions {
  readonly timeline: Timeline;
  /** Every acknowledged write, in order of acknowledgement; grows. */
  readonly times: readonly WriteTime[];
  /** Returns what the stamp waits for now, in words; empty if it is not known to wait for anything. */
  readonly waitsFor: () => string;
  /** Returns the current time of the clock of `times`, in milliseconds. */
  readonly nowMs: () => number;
}

export class SilenceWatch {
  readonly #options: SilenceOptions;
  #seen: number;
  #lastMs: number;
  /** Time at which the next line of a silence is due. */
  #dueMs: number;
  /** Longest hold-up that was said, or that needs no line, in ms. */
  #saidMs: number;
  #silent = false;
  #timer: NodeJS.Timeout | undefined;

  /** `normalMs`: length of a hold-up up to which no line is printed. */
  constructor(options: SilenceOptions, normalMs: number) {
    this.#options = options;
    this.#seen = options.times.length;
    this.#lastMs = options.nowMs();
    this.#dueMs = this.#lastMs + silentAfterMs;
    this.#saidMs = normalMs;
  }

  begin(): void {
    this.#timer = setInterval(() => this.look(), lookEveryMs);
  }

  end(): void {
    clearInterval(this.#timer);
    this.look();
  }

  look(): void {
    const { times, timeline, nowMs } = this.#options;
    const fresh = times.slice(this.#seen);
    this.#seen = times.length;
    if (fresh.length > 0) {
      const firstMs = fresh[0]?.endMs ?? nowMs();
      if (this.#silent) timeline.note(`a write is acknowledged again, after ${seconds(firstMs - this.#lastMs)} without one`);
      this.#silent = false;
      this.#lastMs = fresh.at(-1)?.endMs ?? nowMs();
      this.#dueMs = this.#lastMs + silentAfterMs;
      const longestMs = Math.max(...fresh.map(({ startMs, endMs }) => endMs - startMs));
      if (longestMs > this.#saidMs * longerBy) {
        this.#saidMs = longestMs;
        timeline.note(`a write that was held up ${Math.round(longestMs)} ms is acknowledged: the longest until now`);
      }
    } else if (nowMs() >= this.#dueMs) {
      this.#silent = true;
      this.#dueMs = nowMs() + sayAgainMs;
      const waits = this.#options.waitsFor();
      timeline.note(`no write was acknowledged for ${seconds(nowMs() - this.#lastMs)}${waits === "" ? "" : `; ${waits}`}`);
    }
  }
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
