export * from "./config.ts";
export { PartitionManagerRole } from "./partition-manager.ts";
