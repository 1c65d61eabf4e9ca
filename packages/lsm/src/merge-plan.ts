/**
 * Chooses neighbouring checkpoints to merge: size-tiered. Four or more neighbours of about one size become one, so that
 * a byte is rewritten about once a tier; and a read never meets more than `checkpointsMax`.
 */
export interface PlannedCheckpoint {
  readonly id: number;
  readonly bytes: number;
}

export interface MergeLimits {
  /** Checkpoints a read may meet. */
  readonly checkpointsMax: number;
  /** Number of neighbours of one tier that are merged together. */
  readonly tierWidth: number;
}

export const mergeDefaults: MergeLimits = { checkpointsMax: 8, tierWidth: 4 };

/** Ids of neighbours to merge into one, or undefined. `checkpoints` newest first. */
export function mergePlan(checkpoints: readonly PlannedCheckpoint[], limits: MergeLimits = mergeDefaults): readonly number[] | undefined {
  for (let from = 0; from + limits.tierWidth <= checkpoints.length; from++) {
    const run = tierFrom(checkpoints, from);
    if (run.length >= limits.tierWidth) return run.map(({ id }) => id);
  }
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

/** Neighbours of which none is larger than all newer ones together: who merges an older one at least doubles what it was. */
function tierFrom(checkpoints: readonly PlannedCheckpoint[], from: number): readonly PlannedCheckpoint[] {
  let sum = 0;
  let to = from;
  for (; to < checkpoints.length; to++) {
    const { bytes } = checkpoints[to] as PlannedCheckpoint;
    if (to > from && bytes > sum) break;
    sum += bytes;
  }
  return checkpoints.slice(from, to);
}
