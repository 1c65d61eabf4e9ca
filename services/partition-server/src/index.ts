export * from "./config.ts";
export { PartitionServerRole } from "./partition-server.ts";
