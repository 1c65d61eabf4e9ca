/**
 * State of a range after a restore of the metadata store. The newest record of the metadata stream may name checkpoints in extents that the restored
 * store does not know, because the range began them after the copy of the store: then an earlier record counts, and more of the log is
 * replayed (rule `knownCheckpointsCount`). If there is none, the checkpoints that can't be read are given up, and the others stay. A commit log that lacks
 * commits is replayed over the gap (rule `restoredLogsMayLack`): one lost extent keeps no range away. What is lost is kept in every later record.
 *
 * Invariants:
 * - Numbers that only rise (records, checkpoints, tickets, fences, lineages, formats) stay those of the newest record.
 * - The earlier record says which checkpoints there are and where the log begins behind them.
 */
import type { Failure } from "@stamp/base";
import { joinedLosses, type PartitionState, type StoredCheckpoint } from "@stamp/lsm";

/** Returns true if all of a checkpoint is in extents that the store knows. Rejects if that can't be read now. */
export type IsReadable = (stored: StoredCheckpoint) => Promise<boolean>;

export async function isWhole({ checkpoints }: PartitionState, isReadable: IsReadable): Promise<boolean> {
  for (const stored of checkpoints) if (!(await isReadable(stored))) return false;
  return true;
}

/** Returns the newest record with the checkpoints of the last one that is whole; undefined: there is none. */
export async function rolledBack(
  newest: PartitionState,
  records: readonly PartitionState[],
  isReadable: IsReadable,
): Promise<PartitionState | undefined> {
  for (const record of records.toSorted((a, b) => b.recordNumber - a.recordNumber)) {
    if (record.rangeId !== newest.rangeId || record.heirs !== undefined || !(await isWhole(record, isReadable))) continue;
    const { checkpoints, checkpointedSequence, logStartExtentId, logStart, rest } = record;
    return { ...newest, checkpoints, checkpointedSequence, logStartExtentId, logStart, rest };
  }
  return undefined;
}

/** Returns the newest record without the checkpoints that are not readable: the last resort. */
export async function withoutUnknown(newest: PartitionState, isReadable: IsReadable): Promise<PartitionState> {
  const checkpoints: StoredCheckpoint[] = [];
  for (const stored of newest.checkpoints) if (await isReadable(stored)) checkpoints.push(stored);
  const losses = { commits: [], checkpoints: newest.checkpoints.length - checkpoints.length };
  return { ...newest, checkpoints, losses: joinedLosses(newest.losses, losses) };
}

/** Notes extents of a stream that no node has any more, while the stream is read over them. */
export class GoneExtents {
  #sinceLastBlock: Failure | undefined;

  readonly passOver = (_extentId: number, failure: Failure): void => {
    this.#sinceLastBlock ??= failure;
  };

  /** Notes that a block was read: what is gone lies before it. */
  blockRead(): void {
    this.#sinceLastBlock = undefined;
  }

  /** Failure of an extent behind the last block that was read; undefined: none is gone there. */
  get atEnd(): Failure | undefined {
    return this.#sinceLastBlock;
  }
}

/** Decides which gaps of a commit log are replayed over, and remembers them. */
export class LogGaps {
  readonly #known: PartitionState["losses"];
  readonly #isRestored: boolean;
  readonly #found: [number, number][] = [];

  /** `isRestored`: the metadata store was restored since the state was recorded, so that the log may lack any commits. */
  constructor({ losses }: PartitionState, isRestored: boolean) {
    this.#known = losses;
    this.#isRestored = isRestored;
  }

  /** True if the log may go on behind a gap of these sequences. */
  passes(first: number, last: number): boolean {
    if (this.#known?.commits.some(([from, to]) => from <= first && last <= to)) return true;
    if (this.#isRestored) this.#found.push([first, last]);
    return this.#isRestored;
  }

  get found(): readonly (readonly [number, number])[] {
    return this.#found;
  }

  /** Losses that the range has from now on; undefined: none. */
  get losses(): PartitionState["losses"] {
    return this.#found.length === 0 ? this.#known : joinedLosses(this.#known, { commits: this.#found, checkpoints: 0 });
  }
}
