/**
 * Keeps keys and settings of accounts from location services. From feature level 4 on the primary gives them to its copy from stamp to stamp
 * (docs/design/geo.md "Keys and settings"), and a location service that asks for them, or brings them, is of a release before.
 *
 * Invariant (rule `geoKeysByDoorsOnly`): while this process has not heard the level of its stamp, it counts as one at which nothing may pass.
 */
import { neededLevels, type Outcome, ok, type Rules, refused } from "@stamp/base";

export const levelUnheard = refused(
  "unavailable",
  "notReady",
  "this partition manager has not heard the feature level of its stamp yet: ask again",
);

/** Returns ok if a location service may carry keys and settings. `level`: feature level of the stamp; undefined: not heard yet. */
export function locationMayCarry(rules: Rules, level: number | undefined): Outcome<void> {
  if (!rules.on("geoKeysByDoorsOnly")) return ok();
  if (level === undefined) return levelUnheard;
  if (level < neededLevels.pushedSettings) return ok();
  return refused(
    "failedPrecondition",
    "newerFormat",
    `from feature level ${neededLevels.pushedSettings} on, keys of accounts go to their copies from stamp to stamp: upgrade the location service`,
  );
}
