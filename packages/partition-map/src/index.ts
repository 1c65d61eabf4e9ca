/**
 * Key ranges and the partition map, pure: assignment to servers, records of splits and merges, balance of load, and the
 * rules of a server that holds ranges. The caller owes: making a record durable before the step that follows it.
 */
export * from "./assignment.ts";
export * from "./balance.ts";
export * from "./held-ranges.ts";
export * from "./map-row.ts";
export * from "./range.ts";
export * from "./range-map.ts";
export * from "./reshape.ts";
export * from "./server-rules.ts";
