export * from "./config.ts";
export { partitionManagerMetrics } from "./metrics.ts";
export { PartitionManagerRole } from "./partition-manager.ts";
