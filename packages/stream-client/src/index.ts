export * from "./append-window.ts";
export * from "./extent-reader.ts";
export * from "./owned-stream.ts";
export * from "./place.ts";
export { readWholeBlocks } from "./read-runs.ts";
export * from "./stream-client.ts";
export * from "./types.ts";
