/** Stamps that name snapshots and versions, and how long deleted things are kept. */

/**
 * Time of a soft deletion. The state is kept, hidden, until it is purged; the retention that held at the deletion
 * counts.
 */
export interface Deleted {
  readonly atMs: number;
  readonly purgeMs: number;
}

const dayMs = 86_400_000;

export const deletedAt = (wallMs: number, retentionDays: number): Deleted => ({ atMs: wallMs, purgeMs: wallMs + retentionDays * dayMs });

/** Whether its time is over. */
export const isPurged = (deleted: Deleted | undefined, wallMs: number): boolean => deleted !== undefined && deleted.purgeMs <= wallMs;

export const daysLeft = (deleted: Deleted, wallMs: number): number => Math.max(0, Math.ceil((deleted.purgeMs - wallMs) / dayMs));

/** A stamp counts microseconds since 1970. Of one blob they rise, and none is given twice. 0: none. */
export const stampOfMs = (wallMs: number): number => Math.floor(wallMs) * 1000;

/** A stamp of now, behind the one that was given last. */
export const nextStamp = (wallMs: number, lastStamp: number): number => Math.max(stampOfMs(wallMs), lastStamp + 1);
