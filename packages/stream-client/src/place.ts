/** Where bytes lie in the stream layer, and where the replicas of an extent are. */
import { type CodedLocation, type ExtentLocation, fromWire, toWire, type Place as WirePlace } from "@stamp/wire";
import type { Place } from "./types.ts";

/** Where the fragments of a coded extent are. */
export interface CodedPlaces {
  /** Name of the code. */
  readonly profile: string;
  /** Indexed by index in the code. An empty address: its node is not known. */
  readonly fragments: readonly {
    readonly version: number;
    readonly address: string;
    /** crc32c of the fragment's content, recorded at the coding; undefined: not recorded. */
    readonly checksum?: number;
  }[];
  /** crc32c of the whole sealed content; undefined: the stream manager is of a release that does not tell it. */
  readonly checksum?: number;
}

export interface Location {
  readonly extentId: number;
  readonly version: number;
  /** The first is the primary. */
  readonly addresses: readonly string[];
  readonly sealedLengthBytes?: number | undefined;
  /** Places of the fragments; undefined: the extent is stored as replicas. With it there are no addresses. */
  readonly coded?: CodedPlaces | undefined;
}

export const placeFromWire = (place: WirePlace): Place => ({
  extentId: fromWire(place.extentId),
  offsetBytes: fromWire(place.offsetBytes),
  lengthBytes: place.lengthBytes,
});

export const placeToWire = (place: Place): { extentId: bigint; offsetBytes: bigint; lengthBytes: number } => ({
  extentId: toWire(place.extentId),
  offsetBytes: toWire(place.offsetBytes),
  lengthBytes: place.lengthBytes,
});

export const locationFromWire = (location: ExtentLocation): Location => ({
  extentId: fromWire(location.extentId),
  version: fromWire(location.version),
  addresses: location.addresses,
  sealedLengthBytes: location.sealedLengthBytes === undefined ? undefined : fromWire(location.sealedLengthBytes),
  ...(location.coded === undefined ? {} : { coded: codedFromWire(location.coded) }),
});

const codedFromWire = ({ profile, fragments, checksum: content }: CodedLocation): CodedPlaces => ({
  profile,
  fragments: fragments.map(({ version, address, checksum }) => ({
    version: fromWire(version),
    address,
    ...(checksum === undefined ? {} : { checksum }),
  })),
  ...(content === undefined ? {} : { checksum: content }),
});
