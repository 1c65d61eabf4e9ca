/**
 * State of a range after a restore of the metadata store. The newest record of the metadata stream may name checkpoints in extents that the restored
 * store does not know, because the range began them after the copy of the store: then an earlier record counts, and more of the log is
 * replayed (rule `knownCheckpointsCount`).
 *
 * Invariants:
 * - Numbers that only rise (records, checkpoints, tickets, fences, lineages, formats) stay those of the newest record.
 * - The earlier record says which checkpoints there are and where the log begins behind them.
 */
import type { PartitionState } from "@stamp/lsm";

/** Returns true if the index of every checkpoint is in a known extent. Blocks were written before their index, to the same extent or an earlier one. */
export const isWhole = ({ checkpoints }: PartitionState, knows: (extentId: number) => boolean): boolean =>
  checkpoints.every(({ indexPlaces }) => indexPlaces.every(({ extentId }) => knows(extentId)));

/** Returns the newest record with the checkpoints of the last one whose extents are known; undefined: there is none. */
export function rolledBack(
  newest: PartitionState,
  records: readonly PartitionState[],
  knows: (extentId: number) => boolean,
): PartitionState | undefined {
  let last: PartitionState | undefined;
  for (const record of records) {
    if (record.rangeId !== newest.rangeId || record.heirs !== undefined || !isWhole(record, knows)) continue;
    if (last === undefined || record.recordNumber > last.recordNumber) last = record;
  }
  if (last === undefined) return undefined;
  const { checkpoints, checkpointedSequence, logStartExtentId, logStart, rest } = last;
  return { ...newest, checkpoints, checkpointedSequence, logStartExtentId, logStart, rest };
}
