/**
 * Streams, extents and nodes as the stream manager records them, pure: codec of the records, placement, seals, repair,
 * erasure coding, garbage. A planner returns the transaction that makes a step. The caller owes: committing it under
 * its term before it tells anybody.
 */
export * from "./adoption.ts";
export * from "./codec.ts";
export * from "./coding/adopt-fragments.ts";
export * from "./coding/coding-ages.ts";
export * from "./coding/coding-pause.ts";
export * from "./coding/coding-policy.ts";
export * from "./coding/crowded-fragments.ts";
export * from "./coding/extent-ages.ts";
export * from "./coding/fragment-health.ts";
export * from "./coding/place-fragments.ts";
export * from "./coding/plan-coding.ts";
export * from "./coding/repair-sources.ts";
export * from "./coding/stray-fragments.ts";
export { type PhaseCounts, targetsOf } from "./extent-counts.ts";
export * from "./extent-list.ts";
export * from "./placement.ts";
export * from "./plan-extents.ts";
export * from "./plan-lists.ts";
export * from "./plan-nodes.ts";
export * from "./plan-streams.ts";
export * from "./records.ts";
export * from "./repair.ts";
export * from "./seal-machine.ts";
export * from "./state.ts";
