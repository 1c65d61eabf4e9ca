/**
 * Decides whether a fragment that a node holds may be deleted by a person because no record explains it. Pure: records come in.
 *
 * Invariants:
 * - A fragment that a record names is none: not one in use, not one that garbage collection deletes by itself.
 * - Files of the attempt under way stay (rule `attemptFragmentsStay`): a late deletion would meet what the attempt commits.
 * - Fragments of a higher version than the record's stay (rule `newerFragmentsStay`): the record is the older one, after metadata were restored
 *   from a copy or another manager leads, and these fragments may be all that is left of the extent.
 * - Every other version was given before, and no later attempt names it again.
 */
import type { Rules } from "@stamp/base";
import { samePlace } from "../plan-extents.ts";
import type { ExtentRecord, FragmentPlace } from "../records.ts";

/** Returns why the fragment is no stray or may not be deleted, in words; undefined: a person may delete it. */
export function whyFragmentStays(extent: ExtentRecord | undefined, place: FragmentPlace, rules: Rules): string | undefined {
  if (extent === undefined) return undefined;
  const { attempt, coded, removedFragments = [], version } = extent;
  const isThis = (other: FragmentPlace): boolean => samePlace(other, place) && other.version === place.version;
  if (coded?.fragments.some(isThis)) return "the extent is stored in it";
  if (removedFragments.some(isThis)) return "it is deleted by itself after the grace period";
  if (attempt?.version === place.version && rules.on("attemptFragmentsStay")) return `an attempt makes it: ${attempt.kind}`;
  if (place.version > version && rules.on("newerFragmentsStay"))
    return `it has version ${place.version}, and the record has ${version}: it may be all that is left of what the metadata have lost`;
  return undefined;
}
