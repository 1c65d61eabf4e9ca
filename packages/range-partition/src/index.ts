export { handOver, type OwnedNames } from "./hand-over.ts";
export type { Left } from "./maintenance.ts";
export { RangePartition } from "./range-partition.ts";
export * from "./types.ts";
