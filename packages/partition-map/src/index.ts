export * from "./assignment.ts";
export * from "./balance.ts";
export * from "./held-ranges.ts";
export * from "./map-row.ts";
export * from "./range.ts";
export * from "./range-map.ts";
export * from "./reshape.ts";
export * from "./server-rules.ts";
