/** Is a recorded history linearizable? Start at `checkHistory`. */
export * from "./check.ts";
export * from "./history.ts";
export * from "./models/batch.ts";
export * from "./models/blob.ts";
export * from "./models/register.ts";
export * from "./report.ts";
export * from "./search.ts";
