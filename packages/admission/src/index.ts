export * from "./concurrency-limit.ts";
export * from "./gate.ts";
export * from "./metrics.ts";
export * from "./sample-and-hold.ts";
