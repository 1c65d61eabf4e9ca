/** Where the time of a split or merge went, in milliseconds. */
export interface ReshapeTimes {
  /** While writes went on. */
  readonly prepareMs: number;
  /** Writes of rows waited for the sum of the next five. */
  readonly heldMs: number;
  /** Time until nothing was being decided, in milliseconds. */
  readonly drainMs: number;
  /** For a merge: time of the last records, with rows in memory and in flight, in milliseconds. */
  readonly writeMs: number;
  /** The change of the streams at the stream manager. */
  readonly handOverMs: number;
  /** The children in memory. */
  readonly loadMs: number;
  /** Time until they had a place to write commits to, in milliseconds. */
  readonly beginMs: number;
  /** Blob data waited for so long: also for what was in flight before rows were held up. */
  readonly dataHeldMs: number;
}
