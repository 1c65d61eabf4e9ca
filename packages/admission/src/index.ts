/**
 * Admission: which operations begin now, which wait, which are refused. Start at `Gate`. Pure: time comes with each
 * call. The caller owes: one `leave` for each operation that was let in, and the time of each call from one monotonic
 * clock.
 */
export * from "./concurrency-limit.ts";
export * from "./gate.ts";
export * from "./metrics.ts";
export * from "./sample-and-hold.ts";
