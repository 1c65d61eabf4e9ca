/**
 * Knows where the bytes of places are at the other stamp. Rows that refer to bytes again, or to a part of them, need no second copy: a block
 * that was staged and is committed, a content row of an append blob that grew, a chunk of a page blob of which one page changed, a copied blob.
 *
 * Invariant: it saves work, and decides nothing. The other stamp refuses a row whose bytes are not there (rule `geoPlacesChecked`).
 */
import type { Place } from "@stamp/objects";
import type { DataHandle } from "./data-handles.ts";

/** Bytes of this stamp, with their place at the other one. */
export interface CopiedBytes {
  /** PartitionName that the bytes were copied for, in hexadecimal. */
  readonly name: string;
  readonly from: Place;
  readonly to: Place;
  /** Handle that vouches for the bytes at the other stamp; undefined: that stamp's release gives none. */
  readonly handle?: DataHandle | undefined;
}

/** Bounds the places that are remembered together: if there are more, who noted one the longest time ago forgets all of its places. */
export class PlacesBudget {
  readonly #placesMax: number;
  /** Places that each remembers; who noted one last is at the end. */
  readonly #counts = new Map<CopiedPlaces, number>();
  #count = 0;

  constructor(placesMax: number) {
    this.#placesMax = placesMax;
  }

  get count(): number {
    return this.#count;
  }

  /** Takes note of how many places `one` remembers now. */
  tell(one: CopiedPlaces): void {
    const more = one.count - (this.#counts.get(one) ?? 0);
    this.#count += more;
    this.#counts.delete(one);
    if (one.count > 0) this.#counts.set(one, one.count);
    if (more <= 0) return;
    for (const oldest of this.#counts.keys()) {
      if (this.#count <= this.#placesMax || oldest === one) return;
      oldest.clear();
    }
  }
}

export class CopiedPlaces {
  readonly #placesMax: number;
  /** Budget of all ranges of the server; undefined in tests, or for a short time. */
  readonly #budget: PlacesBudget | undefined;
  /** Keyed by extent of this stamp, used last at the end; by offset within it. */
  readonly #byExtent = new Map<number, CopiedBytes[]>();
  #count = 0;

  constructor(placesMax: number = Number.POSITIVE_INFINITY, budget?: PlacesBudget) {
    this.#placesMax = placesMax;
    this.#budget = budget;
  }

  get count(): number {
    return this.#count;
  }

  /** Returns the bytes of a place that lies in what was copied as one; undefined: they are not known to be there. */
  find(name: string, place: Place): CopiedBytes | undefined {
    const copied = this.#byExtent.get(place.extentId);
    if (copied === undefined) return undefined;
    const at = firstBehind(copied, place.offsetBytes) - 1;
    const found = copied[at];
    if (found === undefined || found.name !== name || endOf(found.from) < endOf(place)) return undefined;
    this.#byExtent.delete(place.extentId);
    this.#byExtent.set(place.extentId, copied);
    return found;
  }

  add(one: CopiedBytes): void {
    this.#add(one);
    this.#budget?.tell(this);
  }

  #add(one: CopiedBytes): void {
    const { extentId, offsetBytes } = one.from;
    const copied = this.#byExtent.get(extentId) ?? [];
    const at = firstBehind(copied, offsetBytes);
    const before = copied[at - 1];
    // If two begin at one offset, the longer one is kept, or the later one.
    const replaces = before !== undefined && before.from.offsetBytes === offsetBytes;
    if (replaces && before.name === one.name && endOf(before.from) > endOf(one.from)) return;
    if (replaces) copied[at - 1] = one;
    else {
      copied.splice(at, 0, one);
      this.#count++;
    }
    this.#byExtent.delete(extentId);
    this.#byExtent.set(extentId, copied);
    for (const [oldest, { length }] of this.#byExtent) {
      if (this.#count <= this.#placesMax) return;
      if (oldest === extentId) break;
      this.#byExtent.delete(oldest);
      this.#count -= length;
    }
    // One extent has more places than are remembered: the first half of it is forgotten, the one that was added last stays.
    if (this.#count <= this.#placesMax) return;
    const kept = copied.filter((each, i) => each === one || i >= copied.length - this.#placesMax / 2);
    this.#byExtent.set(extentId, kept);
    this.#count = kept.length;
  }

  /** Forgets bytes in these extents of the other stamp. */
  forget(extentIds: ReadonlySet<number>): void {
    for (const [extentId, copied] of this.#byExtent) {
      const kept = copied.filter(({ to }) => !extentIds.has(to.extentId));
      this.#count -= copied.length - kept.length;
      if (kept.length > 0) this.#byExtent.set(extentId, kept);
      else this.#byExtent.delete(extentId);
    }
    this.#budget?.tell(this);
  }

  /** Forgets all places. */
  clear(): void {
    this.#byExtent.clear();
    this.#count = 0;
    this.#budget?.tell(this);
  }
}

/** Returns the place that the bytes have at the other stamp. */
export const placeAtPeer = ({ offsetBytes, lengthBytes }: Place, { from, to }: Pick<CopiedBytes, "from" | "to">): Place => ({
  extentId: to.extentId,
  offsetBytes: to.offsetBytes + offsetBytes - from.offsetBytes,
  lengthBytes,
});

const endOf = ({ offsetBytes, lengthBytes }: Place): number => offsetBytes + lengthBytes;

/** Returns the index of the first one that begins behind the offset. */
function firstBehind(copied: readonly CopiedBytes[], offsetBytes: number): number {
  let [low, high] = [0, copied.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((copied[middle]?.from.offsetBytes ?? 0) > offsetBytes) high = middle;
    else low = middle + 1;
  }
  return low;
}
