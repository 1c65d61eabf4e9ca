/**
 * The stream layer for its client: `StreamClient` opens streams under an owner epoch, `OwnedStream` appends,
 * `ExtentReader` reads places from any replica or from fragments. The caller owes: one owner epoch for each taking over
 * of a stream.
 */
export * from "./append-window.ts";
export * from "./owned-stream.ts";
export * from "./place.ts";
export * from "./read/extent-reader.ts";
export { type HedgeFigures, hedgeMetrics } from "./read/hedge-budget.ts";
export { readWholeBlocks } from "./read/read-runs.ts";
export * from "./stream-client.ts";
export * from "./types.ts";
