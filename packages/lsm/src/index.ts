/**
 * Log-structured tables, pure: memory table, commit records, checkpoint files with their index and filter, and the plan
 * of merges. Fetching blocks is the caller's part.
 */
export * from "./checkpoint.ts";
export * from "./commit-record.ts";
export * from "./entry.ts";
export * from "./key-bounds.ts";
export * from "./log-followers.ts";
export * from "./memory-table.ts";
export * from "./merge-plan.ts";
export * from "./merger.ts";
export * from "./partition-state.ts";
