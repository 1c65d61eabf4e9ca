/**
 * Versions that a copy has and the primary's log never had: commits behind them would be left out there as old, and count as shipped. A process
 * with this stamp's secret has made them, or the log lost its end unnoticed. The range begins a new lineage of its log and is seeded anew
 * (docs/design/geo-shipping.md "Lineage").
 *
 * Invariants:
 * - The other stamp can't make this one begin a lineage that its own clock does not allow, or one for an account that is not copied there.
 * - Versions of a later role epoch than the copy follows stand above every lineage: no range counts as shipped behind them.
 */
import { type Failed, neededLevels, refused, timeNumber } from "@stamp/base";
import { compareVersions, type RowVersion } from "@stamp/geo";
import type { World } from "@stamp/ports";
import type { RangePartition } from "@stamp/range-partition";

export interface AheadCopy {
  readonly failure: Failed;
  /** Lineage above which the log begins a new one; undefined: it may not, the failure says why. */
  readonly above: number | undefined;
}

/** Returns undefined if the log has had the version, or may have (rule `copiesAreNotAhead`). `level`: feature level of this stamp. */
export function aheadOf(
  { rules, clock }: World,
  { lineage, followers, rangeId }: Pick<RangePartition, "lineage" | "followers" | "rangeId">,
  held: RowVersion,
  { epoch, level }: { readonly epoch: number; readonly level: number },
): AheadCopy | undefined {
  const end = { epoch, lineage: lineage.log, number: followers.lastSequence };
  if (compareVersions(held, end) <= 0 || !rules.on("copiesAreNotAhead")) return undefined;
  if (held.epoch > epoch) {
    const message = `the copy has rows of role epoch ${held.epoch}, and follows ${epoch}: give the copy up, wait until its rows are deleted, and make it again`;
    return { failure: refused("failedPrecondition", "staleLineage", message), above: undefined };
  }
  const { lineage: heldLineage = 0 } = held;
  const isFar = heldLineage > Math.max(lineage.log, timeNumber(clock.wallMs()));
  const hint = isFar
    ? "that lineage is of a time to come: give the copy up and make it again"
    : level < neededLevels.lineages
      ? `feature level ${level} of this stamp knows no lineages: ./stamp upgrade finalize`
      : "the range is seeded again";
  const has = `the copy has commit ${held.number} of lineage ${heldLineage}, which range ${rangeId} never made`;
  return {
    failure: refused("failedPrecondition", "staleLineage", `${has}: ${hint}`),
    above: isFar || level < neededLevels.lineages ? undefined : Math.max(lineage.log, heldLineage),
  };
}
