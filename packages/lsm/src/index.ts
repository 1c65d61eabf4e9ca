export * from "./checkpoint.ts";
export * from "./commit-record.ts";
export * from "./entry.ts";
export * from "./memory-table.ts";
export * from "./merge-plan.ts";
export * from "./merger.ts";
export * from "./partition-state.ts";
