import type { Outcome, OwnerEpoch } from "@stamp/base";
import type { World } from "@stamp/ports";
import type { ExtentLocation } from "@stamp/wire";
import type { Place, ReadOptions, ReadPlacesOptions, StoredBlock, StreamClientOptions, StreamExtent } from "./types.ts";

export * from "./types.ts";

export declare class StreamClient {
  constructor(world: World, options: StreamClientOptions);
  readonly reader: ExtentReader;
  /** Takes the stream over: fences every lower epoch, seals the last extent. Repeats until the deadline. */
  openForOwner(
    name: string,
    ownerEpoch: OwnerEpoch,
    options: { readonly create: boolean; readonly timeoutMs: number },
  ): Promise<Outcome<OwnedStream>>;
  locate(extentIds: readonly number[], options: { readonly timeoutMs: number }): Promise<Outcome<readonly ExtentLocation[]>>;
}

export declare class OwnedStream {
  readonly name: string;
  readonly ownerEpoch: OwnerEpoch;
  readonly extents: readonly StreamExtent[];
  readonly fenced: boolean;
  /** Resolves once, when another owner took the stream over. */
  readonly whenFenced: Promise<void>;
  append(blocks: readonly Uint8Array[], options: { readonly timeoutMs: number }): Promise<Outcome<readonly Place[]>>;
  knows(extentId: number): boolean;
  truncateBefore(extentId: number, options: { readonly timeoutMs: number }): Promise<Outcome<void>>;
  readAll(options?: { readonly fromExtent?: number }): AsyncIterable<StoredBlock>;
  close(): Promise<void>;
}

export declare class ExtentReader {
  read(place: Place, options: ReadOptions): Promise<Outcome<Uint8Array>>;
  readPlaces(places: Iterable<Place>, options?: ReadPlacesOptions): AsyncIterable<Uint8Array>;
  learn(locations: readonly ExtentLocation[]): void;
}
