/**
 * The partition server: operations on the ranges it holds, admission, the collector of garbage. `PartitionServerRole`
 * takes a `World`.
 */
export { partitionServerConfigSchema } from "./config.ts";
export { partitionServerMetrics } from "./metrics.ts";
export { PartitionServerRole } from "./partition-server.ts";
export type { TransportToStamp } from "./shipping/geo-link.ts";
