/** Where the time of a split or merge went, in milliseconds. */
export interface ReshapeTimes {
  /** Time of the preparation, in which writes go on, in milliseconds. */
  readonly prepareMs: number;
  /** Writes of rows waited for the sum of the next five. */
  readonly heldMs: number;
  /** Time until nothing was being decided, in milliseconds. */
  readonly drainMs: number;
  /** For a merge: time of the last records, with rows in memory and in flight, in milliseconds. */
  readonly writeMs: number;
  /** The change of the streams at the stream manager. */
  readonly handOverMs: number;
  /** Time of the load of the children in memory, in milliseconds. */
  readonly loadMs: number;
  /** Time until the children had a place for commits, in milliseconds. */
  readonly beginMs: number;
  /** Time that blob data waited, in milliseconds: also for what was in flight before rows were held up. */
  readonly dataHeldMs: number;
}
