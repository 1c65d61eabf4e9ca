/**
 * Handles of bytes that another stamp had written here: each says at which place, and for which PartitionName. A row of that stamp may refer to
 * bytes only by a handle, because a range holds the blob data of many accounts (docs/design/geo-shipping.md "Bytes of blobs").
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

/** Number of handles that are sorted in one piece; others go first between two pieces. */
const sortedAtOnce = 4_096;

/** Handles that came with rows. Each is verified when a row needs it. */
export class Vouchers {
  readonly #key: HandleKey;
  readonly #handles: readonly DataHandle[];
  /** Keyed by extent; by offset within it. Made when a row first needs a handle. */
  #index: Promise<ReadonlyMap<number, readonly DataHandle[]>> | undefined;
  /** Handles that are good for a PartitionName, by its bytes in hexadecimal. */
  readonly #good = new Map<string, Set<DataHandle>>();

  constructor(key: HandleKey, handles: readonly DataHandle[]) {
    this.#key = key;
    this.#handles = handles;
  }

  /** Returns the places for which no handle of the PartitionName vouches. Others go first now and then: each handle costs microseconds. */
  async unvouched(name: Uint8Array, places: readonly Place[], turns: Turns): Promise<readonly Place[]> {
    const id = toHex(name);
    const good = this.#good.get(id) ?? new Set();
    this.#good.set(id, good);
    const missing: Place[] = [];
    if (places.length === 0) return missing;
    this.#index ??= indexed(this.#handles, turns);
    const index = await this.#index;
    for (const place of places) {
      if (turns.over) await turns.next();
      const handle = covering(index, place);
      if (handle !== undefined && (good.has(handle) || this.#key.isGood(name, handle))) good.add(handle);
      else missing.push(place);
    }
    return missing;
  }
}

/** Returns the last handle that begins at the place or before it, if the place lies in it. Handles that this stamp gives do not overlap. */
function covering(index: ReadonlyMap<number, readonly DataHandle[]>, place: Place): DataHandle | undefined {
  const handles = index.get(place.extentId) ?? [];
  let [low, high] = [0, handles.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((handles[middle]?.place.offsetBytes ?? 0) > place.offsetBytes) high = middle;
    else low = middle + 1;
  }
  const found = handles[low - 1];
  return found !== undefined && liesIn(place, found.place) ? found : undefined;
}

async function indexed(handles: readonly DataHandle[], turns: Turns): Promise<ReadonlyMap<number, readonly DataHandle[]>> {
  const runs = new Map<number, DataHandle[][]>();
  for (const handle of handles) {
    if (turns.over) await turns.next();
    const { extentId } = handle.place;
    const same = runs.get(extentId) ?? [];
    if (same.length === 0) runs.set(extentId, same);
    const last = same.at(-1);
    if (last === undefined || last.length >= sortedAtOnce) same.push([handle]);
    else last.push(handle);
  }
  const index = new Map<number, readonly DataHandle[]>();
  for (const [extentId, same] of runs) {
    for (const run of same) {
      if (turns.over) await turns.next();
      run.sort((one, other) => one.place.offsetBytes - other.place.offsetBytes);
    }
    index.set(extentId, await merged(same, turns));
  }
  return index;
}

/** Merges sorted runs, two by two. */
async function merged(runs: readonly (readonly DataHandle[])[], turns: Turns): Promise<readonly DataHandle[]> {
  const [only = [], ...others] = runs;
  if (others.length === 0) return only;
  const half = runs.length >>> 1;
  const [left, right] = [await merged(runs.slice(0, half), turns), await merged(runs.slice(half), turns)];
  const both: DataHandle[] = [];
  let at = 0;
  for (const handle of left) {
    if (turns.over) await turns.next();
    for (let next = right[at]; next !== undefined && next.place.offsetBytes < handle.place.offsetBytes; next = right[at]) {
      both.push(next);
      at += 1;
    }
    both.push(handle);
  }
  for (; at < right.length; at++) both.push(right[at] as DataHandle);
  return both;
}

/** True if the bytes of `inner` are among those of `outer`. */
const liesIn = (inner: WrittenPlace, outer: WrittenPlace): boolean =>
  inner.extentId === outer.extentId &&
  inner.offsetBytes >= outer.offsetBytes &&
  inner.offsetBytes + inner.lengthBytes <= outer.offsetBytes + outer.lengthBytes;
