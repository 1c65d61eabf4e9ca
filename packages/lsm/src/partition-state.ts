/**
 * The state of a range partition, as the last record of its metadata stream says it: the root from which everything else is found.
 *
 *   frame (base framed.ts, kind 'P', version 1) around JSON: what a person may have to read in an emergency, and small.
 */
import { type Checksum, frameRecord, fromUtf8, type Outcome, ok, refused, unframeRecord, utf8 } from "@stamp/base";
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
}

const kind = 0x50;
const formatVersion = 1;

export const encodeState = (state: PartitionState, checksum: Checksum): Uint8Array<ArrayBuffer> =>
  frameRecord(kind, formatVersion, utf8(JSON.stringify(state)), checksum);

export function decodeState(bytes: Uint8Array, checksum: Checksum): Outcome<PartitionState> {
  const payload = unframeRecord(kind, formatVersion, bytes, checksum);
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
  return ok(state);
}

const malformed = (): Outcome<never> => refused("dataLoss", "damaged", "a partition state that can't be read");
