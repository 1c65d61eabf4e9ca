export { AppendWindow, type Done, type Next, type WindowLimits } from "./append-window.ts";
export { ExtentReader, type ReaderOptions, readerDefaults } from "./extent-reader.ts";
export { OwnedStream, type OwnedStreamOptions, ownedStreamDefaults } from "./owned-stream.ts";
export { type Location, locationFromWire, locationToWire, type Place, placeFromWire, placeToWire } from "./place.ts";
export type { StreamBlock } from "./sequential.ts";
export { StreamClient } from "./stream-client.ts";
