/**
 * Numbers that order the stays of an account at one stamp: copies that begin there, and removals that end them
 * (docs/design/geo.md "Removal"). A range keeps the highest number it was told, its tenure of the account.
 *
 * Invariants (docs/design/model/geo-removal.pml):
 * - A removal deletes nothing where a later stay has begun (rule `geoRemovalEnds`).
 * - Rows that were shipped to an earlier stay are not taken.
 */
import type { AccountRole, CommandOrder } from "./account-role.ts";
import { commandPhases } from "./account-role.ts";

/** Above every phase of a command. */
const phasesMax = 8;

/** Tenure that a command begins. */
export const tenureOf = ({ operation, phase }: CommandOrder): number => operation * phasesMax + phase;

/** Tenure of a copy that operation `paired` began. */
export const tenureOfCopy = (paired: number): number => tenureOf({ operation: paired, phase: commandPhases.follow });

/** Tenure of the removal of an account that was removed from the stamp; undefined: it was not. */
export const removalOf = ({ role, obeyed }: AccountRole): number | undefined => (role === "removed" ? tenureOf(obeyed) : undefined);
