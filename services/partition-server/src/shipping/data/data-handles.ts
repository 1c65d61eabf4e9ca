/**
 * Handles of bytes that another stamp had written here: each says at which place, and for which PartitionName. A row of that stamp may refer to
 * bytes only by a handle, because a range holds the blob data of many accounts (docs/design/geo.md "Bytes of blobs").
 *
 *     WriteData ──► bytes appended for a PartitionName ──► MAC ──► the other stamp ──► row and handle ──► Vouchers.vouch
 *
 * Invariants:
 * - A handle vouches for the bytes of its place, or a part of them, for rows of its PartitionName and of no other one (rule `geoPlacesVouched`).
 * - The key never leaves the process. It ends with the process: bytes without a good handle are copied again. Nothing is stored, so that no
 *   stamp can learn the key of another one from a file, a backup or a message.
 */
import { toHex } from "@stamp/base";
import type { Place } from "@stamp/objects";
import type { Turns, World } from "@stamp/ports";

/** Bytes that were written as one. */
export type WrittenPlace = Pick<Place, "extentId" | "offsetBytes" | "lengthBytes">;

export interface DataHandle {
  readonly place: WrittenPlace;
  readonly mac: Uint8Array;
}

const keyBytes = 32;
const macBytes = 16;
/** Extent, offset and length, 8 bytes each. */
const placeBytes = 24;

export class HandleKey {
  readonly #world: World;
  readonly #key: Uint8Array;

  constructor(world: World) {
    this.#world = world;
    this.#key = world.random.bytes(keyBytes);
  }

  /** Vouches that the bytes of a place were written for a PartitionName. */
  macOf(name: Uint8Array, { extentId, offsetBytes, lengthBytes }: WrittenPlace): Uint8Array {
    const message = new Uint8Array(placeBytes + name.length);
    const view = new DataView(message.buffer);
    for (const [i, number] of [extentId, offsetBytes, lengthBytes].entries()) view.setBigUint64(8 * i, BigInt(number));
    message.set(name, placeBytes);
    return this.#world.digest.hmacSha256(this.#key, message).slice(0, macBytes);
  }

  isGood(name: Uint8Array, { place, mac }: DataHandle): boolean {
    return this.#world.digest.equal(this.macOf(name, place), mac);
  }
}

/** Handles that came with rows. Each is verified when a row needs it. */
export class Vouchers {
  readonly #key: HandleKey;
  /** By extent; by offset within it. */
  readonly #byExtent = new Map<number, DataHandle[]>();
  /** Handles that are good for a PartitionName, by its bytes in hexadecimal. */
  readonly #good = new Map<string, Set<DataHandle>>();

  constructor(key: HandleKey, handles: readonly DataHandle[]) {
    this.#key = key;
    for (const handle of handles) {
      const { extentId } = handle.place;
      const same = this.#byExtent.get(extentId);
      if (same === undefined) this.#byExtent.set(extentId, [handle]);
      else same.push(handle);
    }
    for (const same of this.#byExtent.values()) same.sort((a, b) => a.place.offsetBytes - b.place.offsetBytes);
  }

  /** Returns the places for which no handle of the PartitionName vouches. Others go first now and then: each handle costs microseconds. */
  async unvouched(name: Uint8Array, places: readonly Place[], turns: Turns): Promise<readonly Place[]> {
    const id = toHex(name);
    const good = this.#good.get(id) ?? new Set();
    this.#good.set(id, good);
    const missing: Place[] = [];
    for (const place of places) {
      if (turns.over) await turns.next();
      const handle = this.#covering(place);
      if (handle !== undefined && (good.has(handle) || this.#key.isGood(name, handle))) good.add(handle);
      else missing.push(place);
    }
    return missing;
  }

  #covering(place: Place): DataHandle | undefined {
    const handles = this.#byExtent.get(place.extentId) ?? [];
    let [low, high] = [0, handles.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((handles[middle]?.place.offsetBytes ?? 0) > place.offsetBytes) high = middle;
      else low = middle + 1;
    }
    const found = handles[low - 1];
    return found !== undefined && liesIn(place, found.place) ? found : undefined;
  }
}

/** Returns true if the bytes of `inner` are among those of `outer`. */
const liesIn = (inner: WrittenPlace, outer: WrittenPlace): boolean =>
  inner.extentId === outer.extentId &&
  inner.offsetBytes >= outer.offsetBytes &&
  inner.offsetBytes + inner.lengthBytes <= outer.offsetBytes + outer.lengthBytes;
