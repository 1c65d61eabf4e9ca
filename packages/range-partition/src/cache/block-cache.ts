/**
 * Row data cache: data blocks of checkpoints in memory, for reads only, bounded in bytes and shared by the partitions of a process. Blocks
 * lie one behind the other in segments, and a segment is filled again and again: what is pushed out leaves nothing to collect, so the cache
 * takes the memory that it may take and no more. The oldest segment goes first; of its blocks those that were asked for since stay: what a
 * scan read once goes before what is read again and again.
 */
import type { StoredPlace } from "@stamp/lsm";

const segmentBytesMax = 4 * 1024 * 1024;
const segmentsMin = 4;
/** Largest kept part of a segment that is filled again. Bounds the work of finding room. */
const keptShare = 3 / 4;
/** A segment of which more is free, because it was forgotten, is filled again before more memory is taken. */
const freeShare = 1 / 2;
/** Share of a segment. When the cache is full, a segment that is free by more than this is filled before blocks of another one are pushed out. */
const freeShareWhenFull = 1 / 16;

interface Segment {
  readonly bytes: Uint8Array;
  /** Blocks of the segment, in the order of their places. */
  slots: Slot[];
  filledBytes: number;
  /** Part of `filledBytes` that was not forgotten. */
  wantedBytes: number;
}

interface Slot {
  readonly segment: Segment;
  readonly extentId: number;
  readonly offsetBytes: number;
  readonly lengthBytes: number;
  at: number;
  used: boolean;
  forgotten: boolean;
}

export class BlockCache {
  readonly #segmentBytes: number;
  readonly #segmentsMax: number;
  /** Segments in the order in which they were filled; blocks go into the last one. */
  readonly #segments: Segment[] = [];
  /** Keyed by extent and offset. */
  readonly #slots = new Map<number, Map<number, Slot>>();
  #wantedBytes = 0;
  #pushedOutBytes = 0;

  constructor(bytesMax: number) {
    this.#segmentBytes = Math.min(segmentBytesMax, Math.floor(bytesMax / segmentsMin));
    this.#segmentsMax = Math.floor(bytesMax / this.#segmentBytes);
  }

  /** Bytes of the blocks that are cached now. */
  get bytes(): number {
    return this.#wantedBytes;
  }

  /** True if a block of this length fits in without displacing another one. */
  hasRoomFor(lengthBytes: number): boolean {
    if (this.#segments.length < this.#segmentsMax) return true;
    // At least one segment has as much free as the average.
    const freeBytes = this.#segmentBytes - this.#wantedBytes / this.#segments.length;
    return freeBytes > Math.max(freeShareWhenFull * this.#segmentBytes, lengthBytes);
  }

  /** Bytes of blocks that made room for others, since the start. */
  get pushedOutBytes(): number {
    return this.#pushedOutBytes;
  }

  /** True if blocks of this length together fit into the cache. */
  holds(bytes: number): boolean {
    return bytes <= (1 - freeShareWhenFull) * this.#segmentsMax * this.#segmentBytes;
  }

  /** Memory that the cache takes, in bytes. */
  get takenBytes(): number {
    return this.#segments.length * this.#segmentBytes;
  }

  /** Returns a view, good until anything is put here. */
  get(place: StoredPlace): Uint8Array | undefined {
    const slot = this.#find(place);
    if (slot !== undefined) slot.used = true;
    return slot && viewOf(slot);
  }

  /** Reads like `get`, but does not count as a use. */
  peek(place: StoredPlace): Uint8Array | undefined {
    const slot = this.#find(place);
    return slot && viewOf(slot);
  }

  /** Copies a block into the cache, unless it is there or larger than a quarter of the cache or 4 MiB. */
  put(place: StoredPlace, bytes: Uint8Array): void {
    const { extentId, offsetBytes } = place;
    const { length } = bytes;
    if (length > this.#segmentBytes || this.#find(place) !== undefined) return;
    const filled = this.#segments.at(-1);
    const segment = filled !== undefined && filled.filledBytes + length <= this.#segmentBytes ? filled : this.#emptied(length);
    const slot = { segment, extentId, offsetBytes, lengthBytes: length, at: segment.filledBytes, used: false, forgotten: false };
    segment.bytes.set(bytes, slot.at);
    segment.slots.push(slot);
    segment.filledBytes += length;
    segment.wantedBytes += length;
    this.#wantedBytes += length;
    const ofExtent = this.#slots.get(extentId);
    if (ofExtent === undefined) this.#slots.set(extentId, new Map([[offsetBytes, slot]]));
    else ofExtent.set(offsetBytes, slot);
  }

  /** Forgets the block at a place that nobody asks for again. */
  forget(place: StoredPlace): void {
    const slot = this.#find(place);
    if (slot !== undefined) this.#remove(slot);
  }

  #find({ extentId, offsetBytes }: StoredPlace): Slot | undefined {
    return this.#slots.get(extentId)?.get(offsetBytes);
  }

  #remove(slot: Slot): void {
    const { segment, extentId, offsetBytes, lengthBytes } = slot;
    slot.forgotten = true;
    segment.wantedBytes -= lengthBytes;
    this.#wantedBytes -= lengthBytes;
    const ofExtent = this.#slots.get(extentId);
    ofExtent?.delete(offsetBytes);
    if (ofExtent?.size === 0) this.#slots.delete(extentId);
  }

  /** Returns the segment to fill next, with room for these bytes: one with much free space, else a new one, else the oldest. */
  #emptied(lengthBytes: number): Segment {
    const mayGrow = this.#segments.length < this.#segmentsMax;
    const roomiest = this.#roomiest();
    const freeMin = Math.max((mayGrow ? freeShare : freeShareWhenFull) * this.#segmentBytes, lengthBytes);
    const isRoomy = roomiest !== undefined && this.#segmentBytes - roomiest.wantedBytes > freeMin;
    if (!isRoomy && mayGrow) {
      const segment = { bytes: new Uint8Array(this.#segmentBytes), slots: [], filledBytes: 0, wantedBytes: 0 };
      this.#segments.push(segment);
      return segment;
    }
    const segment = isRoomy ? roomiest : (this.#segments[0] as Segment);
    this.#segments.splice(this.#segments.indexOf(segment), 1);
    this.#segments.push(segment);
    const keptBytesMax = this.#segmentBytes - lengthBytes;
    this.#empty(segment, isRoomy ? keptBytesMax : Math.min(keptShare * this.#segmentBytes, keptBytesMax), isRoomy);
    return segment;
  }

  /** Returns the segment with the fewest wanted bytes; of several, the oldest. */
  #roomiest(): Segment | undefined {
    let best: Segment | undefined;
    for (const segment of this.#segments) if (best === undefined || segment.wantedBytes < best.wantedBytes) best = segment;
    return best;
  }

  /** Empties a segment. At most `keptBytesMax` of its blocks stay and move to its front. */
  #empty(segment: Segment, keptBytesMax: number, keepUnused: boolean): void {
    const { bytes, slots } = segment;
    segment.slots = [];
    segment.filledBytes = 0;
    for (const slot of slots) {
      if (slot.forgotten) continue;
      const end = segment.filledBytes + slot.lengthBytes;
      if ((slot.used || keepUnused) && end <= keptBytesMax) {
        bytes.copyWithin(segment.filledBytes, slot.at, slot.at + slot.lengthBytes);
        slot.at = segment.filledBytes;
        slot.used &&= keepUnused;
        segment.slots.push(slot);
        segment.filledBytes = end;
      } else {
        this.#pushedOutBytes += slot.lengthBytes;
        this.#remove(slot);
      }
    }
  }
}

const viewOf = ({ segment, at, lengthBytes }: Slot): Uint8Array => segment.bytes.subarray(at, at + lengthBytes);
