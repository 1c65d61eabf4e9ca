/**
 * Decides at the receiver which shipped rows are applied (docs/design/geo-shipping.md "Shipping"). Rows of one PartitionName arrive in order
 * on one connection; a connection that its sender has given up may still deliver.
 *
 * Invariants (docs/design/model/geo-shipping.pml):
 * - A row is applied only if its version is above that of its key (rule `geoRowVersionsRise`) and above the floor (rule
 *   `geoFloorRefuses`).
 * - A deletion leaves a tombstone (rule `geoDeletionsLeaveTombstones`) until the sender's cursor has passed it and
 *   seeding has ended (rule `geoTombstonesKeptInSeeding`). The floor rises in the transaction that forgets tombstones.
 */
import type { Rules } from "@stamp/base";

/** Version of a row: role epoch of its primary, lineage of the log, then the number of its commit, which rises for each PartitionName. */
export interface RowVersion {
  readonly epoch: number;
  /** Lineage of the primary's log (@stamp/lsm log-lineage.ts): a higher one gives numbers of the one before again. Undefined is 0. */
  readonly lineage?: number | undefined;
  readonly number: number;
}

/** Returns a negative number if `a` is older than `b`, 0 if they are the same, a positive one if `a` is newer. */
export const compareVersions = (a: RowVersion, b: RowVersion): number =>
  a.epoch - b.epoch || (a.lineage ?? 0) - (b.lineage ?? 0) || a.number - b.number;

/** True if a shipment comes from a log that has lost its end since: the receiver has a later lineage of the same primary. */
export const isOfEarlierLineage = (shipped: RowVersion, held: RowVersion | undefined): boolean =>
  held !== undefined && shipped.epoch === held.epoch && (shipped.lineage ?? 0) < (held.lineage ?? 0);

const isAbove = (version: RowVersion, other: RowVersion | undefined): boolean => other === undefined || compareVersions(version, other) > 0;

/** The receiver's versions of the key of a shipped row. */
export interface HeldVersions {
  /** Version of the row or tombstone of this key; undefined: neither is there. */
  readonly held: RowVersion | undefined;
  /** Highest version up to which the receiver has forgotten tombstones of this range; undefined: none was forgotten. */
  readonly floor: RowVersion | undefined;
}

/** True if the row is applied. A row that is not applied is old: it counts as applied for the acknowledgement. */
export function appliesRow(shipped: RowVersion, { held, floor }: HeldVersions, rules: Rules): boolean {
  if (rules.on("geoRowVersionsRise") && !isAbove(shipped, held)) return false;
  return !rules.on("geoFloorRefuses") || isAbove(shipped, floor);
}

/** Returns the version of the tombstone that an applied deletion leaves; undefined: nothing is left of the key. */
export function tombstoneOf(deleted: RowVersion, rules: Rules): RowVersion | undefined {
  return rules.on("geoDeletionsLeaveTombstones") ? deleted : undefined;
}

/**
 * Returns the floor after the sender said that its cursor has passed every version up to `passed`; undefined: nothing is forgotten. Tombstones at
 * or below the new floor go in the transaction that writes it.
 */
export function nextFloor(passed: RowVersion, floor: RowVersion | undefined, seeding: boolean, rules: Rules): RowVersion | undefined {
  if (seeding && rules.on("geoTombstonesKeptInSeeding")) return undefined;
  return isAbove(passed, floor) ? passed : undefined;
}

/** True if a tombstone goes when the floor is written. */
export const forgottenAt = (tombstone: RowVersion, floor: RowVersion): boolean => compareVersions(tombstone, floor) <= 0;
