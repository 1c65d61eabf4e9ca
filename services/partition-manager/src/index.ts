/**
 * The partition manager: assignment, balance, splits, merges, accounts of the configuration. `PartitionManagerRole`
 * takes a `World`.
 */
export { balancePolicyOf, developmentAccount, partitionManagerConfigSchema } from "./config.ts";
export { partitionManagerMetrics } from "./metrics.ts";
export { PartitionManagerRole } from "./partition-manager.ts";
