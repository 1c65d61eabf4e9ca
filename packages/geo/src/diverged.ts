/**
 * Report of a primary that a forced failover deposed (docs/design/geo-shipping.md "Report of a deposed primary"): which commits are in
 * it, and which stamp tells what the new primary had.
 */
import type { Outcome, Rules } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import type { AccountRole } from "./account-role.ts";
import { compareVersions, type RowVersion } from "./row-versions.ts";

/** True if this stamp was deposed by force and its report is not complete. */
export const owesReport = ({ role, report }: AccountRole): boolean => role === "unseeded" && report !== undefined && !report.complete;

/**
 * True if the new primary lacked the commit when it was promoted. `held`: version up to which the commit's PartitionName was
 * shipped to it; undefined: nothing was. The cursor alone is not enough, because acknowledgements are lost (rule
 * `geoReportLacksShipped`).
 */
export const isDiverged = (commit: RowVersion, held: RowVersion | undefined, rules: Rules): boolean =>
  held === undefined || compareVersions(commit, held) > 0 || !rules.on("geoReportLacksShipped");

/** Refuses to tell versions to a primary that another promotion than the asked one deposed. */
export function tellsVersions(row: AccountRole | undefined, epoch: number): Outcome<void> {
  const isPrimary = row?.role === "primary" || row?.role === "drained";
  if (isPrimary && row.epoch === epoch) return ok();
  const is = row === undefined ? "has nothing of the account" : `is ${row.role} of the account under role epoch ${row.epoch}`;
  return refused("failedPrecondition", "staleRoleEpoch", `this stamp is asked as the primary under role epoch ${epoch}: it ${is}`);
}
