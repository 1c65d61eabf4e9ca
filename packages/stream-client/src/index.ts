/**
 * The stream layer for its client: `StreamClient` opens streams under an owner epoch, `OwnedStream` appends,
 * `ExtentReader` reads places from any replica or from fragments. The caller owes: one owner epoch for each taking over
 * of a stream.
 */
export { placesOf } from "./append-window.ts";
export { OwnedStream } from "./owned-stream.ts";
export { type Location, locationFromWire } from "./place.ts";
export { ExtentReader } from "./read/extent-reader.ts";
export { type HedgeFigures, hedgeMetrics } from "./read/hedge-budget.ts";
export { readWholeBlocks } from "./read/read-runs.ts";
export { isGone } from "./read/read-sealed.ts";
export { StreamClient } from "./stream-client.ts";
export type { AppendOptions, ExtentChange, Place, StreamClientOptions, StreamExtent } from "./types.ts";
