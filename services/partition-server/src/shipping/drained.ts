/**
 * A range of a drained account has shipped everything only if nothing is on its way that began before the account was drained (rule
 * `geoDrainedIsQuiet`). Else a write that a front-end let in before would be committed after the copy was promoted: it is not acknowledged, but the
 * drained stamp, which serves reads, would show it until it is demoted.
 *
 * The time at which the oldest transaction in progress began is noted with the range's Last Sync Time (docs/design/geo-shipping.md). All times are of the
 * monotonic clock of this server: after the wall clock was set back, Last Sync Time is ahead of it and tells nothing about what is on its way.
 */
import type { Rules } from "@stamp/base";
import type { Facts } from "./range-work.ts";

/**
 * Returns the facts of a range of a drained account. `drainedMsAgo`: time since the last front-end may have admitted a write of the account, in
 * milliseconds; undefined if it is not drained. `nowMs`: by the monotonic clock.
 */
export function ofDrained(facts: Facts, drainedMsAgo: number | undefined, nowMs: number, rules: Rules): Facts {
  const isQuiet = drainedMsAgo === undefined || (facts.passedMonotonicMs ?? Number.NEGATIVE_INFINITY) > nowMs - drainedMsAgo;
  return isQuiet || !rules.on("geoDrainedIsQuiet") ? facts : { ...facts, pending: Math.max(1, facts.pending) };
}
