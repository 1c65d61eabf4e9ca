export * from "./config.ts";
export { partitionServerMetrics } from "./metrics.ts";
export { PartitionServerRole } from "./partition-server.ts";
