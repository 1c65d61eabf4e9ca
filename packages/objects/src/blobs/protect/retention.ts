/** Times of deleted blobs: until when softly deleted ones are kept, and the timestamps that name snapshots and versions. */

/** A soft deletion. The state is kept, hidden, until it is purged. The retention at the time of the deletion counts. */
export interface SoftDeletion {
  /** Time of the deletion, in milliseconds since 1970. */
  readonly atMs: number;
  /** Time from which the state may be purged, in milliseconds since 1970. */
  readonly purgeMs: number;
}

const dayMs = 86_400_000;

export const deletedAt = (wallMs: number, retentionDays: number): SoftDeletion => ({
  atMs: wallMs,
  purgeMs: wallMs + retentionDays * dayMs,
});

/** True if the deleted state may be purged. */
export const isPurged = (deleted: SoftDeletion | undefined, wallMs: number): boolean => deleted !== undefined && deleted.purgeMs <= wallMs;

export const daysLeft = (deleted: SoftDeletion, wallMs: number): number => Math.max(0, Math.ceil((deleted.purgeMs - wallMs) / dayMs));

/** Returns the timestamp of a snapshot or version, in microseconds since 1970. Those of one blob rise, and none is given twice. 0: none. */
export const stampOfMs = (wallMs: number): number => Math.floor(wallMs) * 1000;

/** Returns a timestamp of now, above the one that the blob was given last. */
export const nextStamp = (wallMs: number, lastStamp: number): number => Math.max(stampOfMs(wallMs), lastStamp + 1);
