/**
 * Which neighbouring checkpoints to merge: size-tiered. Checkpoints of about one size are merged when there are enough of them, so that a
 * byte is rewritten about once a tier; and never more than `checkpointsMax` are left for a read to meet.
 */
export interface PlannedCheckpoint {
  readonly id: number;
  readonly bytes: number;
}

export interface MergeLimits {
  /** Checkpoints a read may meet. */
  readonly checkpointsMax: number;
  /** Neighbours within this ratio of each other are one tier, merged when there are so many of them. */
  readonly tierWidth: number;
}

export const mergeDefaults: MergeLimits = { checkpointsMax: 8, tierWidth: 4 };

/** Ids of neighbours to merge into one, or undefined. `checkpoints` newest first. */
export function mergePlan(checkpoints: readonly PlannedCheckpoint[], limits: MergeLimits = mergeDefaults): readonly number[] | undefined {
  // The newest run of one tier: no member larger than the tier width times all newer ones together.
  let sum = 0;
  let count = 0;
  for (const { bytes } of checkpoints) {
    if (count > 0 && bytes > sum * limits.tierWidth) break;
    sum += bytes;
    count++;
  }
  if (count >= limits.tierWidth) return checkpoints.slice(0, count).map(({ id }) => id);
  if (checkpoints.length <= limits.checkpointsMax) return undefined;
  // Too many all the same: the cheapest two neighbours.
  let best = 0;
  let bestBytes = Number.POSITIVE_INFINITY;
  for (let i = 0; i + 1 < checkpoints.length; i++) {
    const bytes = (checkpoints[i]?.bytes ?? 0) + (checkpoints[i + 1]?.bytes ?? 0);
    if (bytes < bestBytes) {
      best = i;
      bestBytes = bytes;
    }
  }
  return checkpoints.slice(best, best + 2).map(({ id }) => id);
}
