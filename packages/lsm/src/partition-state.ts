/**
 * The state of a range partition, as the last record of its metadata stream says it: the root from which everything else is found.
 *
 *   frame (base framed.ts, kind 'P', version 1) around JSON: what a person may have to read in an emergency, and small.
 */
import {
  type Checksum,
  compareBytes,
  frameRecord,
  fromHex,
  fromUtf8,
  type Outcome,
  ok,
  refused,
  toHex,
  unframeRecord,
  utf8,
} from "@stamp/base";
import type { StoredPlace } from "./checkpoint-index.ts";

export interface StoredCheckpoint {
  readonly id: number;
  /** Of the index, in pieces, in order. */
  readonly indexPlaces: readonly StoredPlace[];
  /** Of data blocks and index. */
  readonly bytes: number;
  readonly entryCount: number;
  readonly minSequence: number;
  readonly maxSequence: number;
  /** What of it counts, when not all: the keys that its partition had before a merge. In hexadecimal, as KeyBounds. */
  readonly bounds?: { readonly low: string; readonly high: string };
}

/** `low` inclusive, `high` exclusive; an empty `high` is no end. */
export interface KeyBounds {
  readonly low: Uint8Array;
  readonly high: Uint8Array;
}

export interface PartitionState {
  readonly rangeId: string;
  readonly ownerEpoch: number;
  /** Rises with every record of this partition. */
  readonly recordNumber: number;
  /** Newest first. */
  readonly checkpoints: readonly StoredCheckpoint[];
  /** Everything up to it is in the checkpoints; the log is replayed after it. */
  readonly checkpointedSequence: number;
  /** No ticket above it was used by what is in the checkpoints. */
  readonly lastTicket: number;
  /** Replay begins here; 0: at the first extent of the log. */
  readonly logStartExtentId: number;
  readonly nextCheckpointId: number;
  /** Ids of the ranges that may be loaded from this record besides its own: it was left by a split or a merge. */
  readonly heirs?: readonly string[];
}

export const holdsKey = ({ low, high }: KeyBounds, key: Uint8Array): boolean =>
  compareBytes(key, low) >= 0 && (high.length === 0 || compareBytes(key, high) < 0);

export function intersect(a: KeyBounds, b: KeyBounds): KeyBounds {
  const low = compareBytes(a.low, b.low) >= 0 ? a.low : b.low;
  const high = a.high.length === 0 ? b.high : b.high.length === 0 || compareBytes(a.high, b.high) <= 0 ? a.high : b.high;
  return { low, high };
}

/** What of the checkpoint counts in a partition that has the keys of `own`. */
export function boundsOf({ bounds }: StoredCheckpoint, own: KeyBounds): KeyBounds {
  const checked = bounds && keyBounds(bounds);
  return checked ? intersect(checked, own) : own;
}

function keyBounds(bounds: { readonly low: string; readonly high: string }): KeyBounds | undefined {
  const low = fromHex(bounds.low);
  const high = fromHex(bounds.high);
  return low && high && { low, high };
}

/** The checkpoint as it is handed over: to whoever gets it, no more of it counts than did in `own`. */
export function boundedTo(stored: StoredCheckpoint, own: KeyBounds): StoredCheckpoint {
  const { low, high } = boundsOf(stored, own);
  return { ...stored, bounds: { low: toHex(low), high: toHex(high) } };
}

/**
 * The state that neighbours leave to the range they become: what each had, of each no more than its keys. Their logs end here, so their
 * sequences don't have to agree. `first` is the one whose metadata stream goes on.
 */
export function joinedState(first: PartitionState, own: KeyBounds, second: PartitionState, secondOwn: KeyBounds): PartitionState {
  const shift = first.nextCheckpointId;
  return {
    ...first,
    checkpoints: [
      ...first.checkpoints.map((stored) => boundedTo(stored, own)),
      ...second.checkpoints.map((stored) => boundedTo({ ...stored, id: stored.id + shift }, secondOwn)),
    ],
    checkpointedSequence: Math.max(first.checkpointedSequence, second.checkpointedSequence),
    lastTicket: Math.max(first.lastTicket, second.lastTicket),
    nextCheckpointId: shift + second.nextCheckpointId,
  };
}

const kind = 0x50;
/** 2 since there are heirs and bounds; 1 is read as it was. */
const formatVersion = 2;

export const encodeState = (state: PartitionState, checksum: Checksum): Uint8Array<ArrayBuffer> =>
  frameRecord(kind, formatVersion, utf8(JSON.stringify(state)), checksum);

export function decodeState(bytes: Uint8Array, checksum: Checksum): Outcome<PartitionState> {
  const payload = unframeRecord(kind, bytes[1] === 1 ? 1 : formatVersion, bytes, checksum);
  if (!payload.ok) return payload;
  let state: PartitionState;
  try {
    state = JSON.parse(fromUtf8(payload.value)) as PartitionState;
  } catch {
    return malformed();
  }
  const numbers = [
    state?.ownerEpoch,
    state?.recordNumber,
    state?.checkpointedSequence,
    state?.lastTicket,
    state?.logStartExtentId,
    state?.nextCheckpointId,
  ];
  if (typeof state?.rangeId !== "string" || !Array.isArray(state.checkpoints) || !numbers.every(Number.isSafeInteger)) return malformed();
  for (const { bounds } of state.checkpoints) if (bounds !== undefined && keyBounds(bounds) === undefined) return malformed();
  return ok(state);
}

const malformed = (): Outcome<never> => refused("dataLoss", "damaged", "a partition state that can't be read");
