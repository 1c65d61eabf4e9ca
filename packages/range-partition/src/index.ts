export { RangePartition } from "./range-partition.ts";
export * from "./types.ts";
