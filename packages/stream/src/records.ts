/**
 * Records of the stream manager in the metadata store: streams are lists of extents, extents have replicas on nodes.
 *
 * A stream's list is a chain of immutable segments of at most 1,000 extents and a tail, so that a transaction stays small. What was
 * truncated away in front is `skipCount` of the first segment. Reference counts are not kept: they are derived from the lists.
 */
import type { ExtentId, ExtentVersion, OwnerEpoch } from "@stamp/base";

export const segmentExtentsMax = 1_000;
export const segmentsPerStreamMax = 2_000;

/**
 * allocating → open → sealing → sealed → dropped. `allocating` was told to nobody and may be dropped; `open` means that every replica
 * has it durably; `sealed` is the first recorded length, for ever.
 */
export type ExtentPhase = "allocating" | "open" | "sealing" | "sealed" | "dropped";

export interface ReplicaRecord {
  readonly nodeId: string;
  /** Disk of the replica: with another disk the node does not have the replica. */
  readonly diskId: string;
  /** True if the replica was seen to hold the sealed prefix durably. */
  readonly complete: boolean;
}

export interface ReplicaPlace {
  readonly nodeId: string;
  readonly diskId: string;
}

/** A fragment on a node. A node has at most one fragment of a version of an extent. */
export interface FragmentPlace extends ReplicaPlace {
  /** Version of the attempt that made the fragment: a part of its name. */
  readonly version: ExtentVersion;
}

/** How a sealed extent is stored that has no replicas any more (docs/design/erasure-coding.md). */
export interface CodedRecord {
  /** Name of the code in `packages/erasure`. */
  readonly profile: string;
  /** Place of each fragment, by its index in the code. */
  readonly fragments: readonly FragmentPlace[];
  /** crc32c of the content of each fragment, by index, the same for all versions of it. Absent: an earlier release coded the extent. */
  readonly checksums?: readonly number[];
}

/**
 * A change of how the extent is stored that was begun. `code`: fragments are made of a replica. `repair`: one fragment is made anew. `decode`:
 * replicas are made of the fragments.
 */
export type AttemptRecord = {
  /** Version of the extent's record that began it, which no attempt had before: its files have this version. */
  readonly version: ExtentVersion;
} & (
  | { readonly kind: "code"; readonly profile: string /** By index in the code. */; readonly targets: readonly ReplicaPlace[] }
  | { readonly kind: "repair"; readonly index: number; readonly target: ReplicaPlace }
  | { readonly kind: "decode"; readonly targets: readonly ReplicaPlace[] }
);

export interface ExtentRecord {
  readonly id: ExtentId;
  readonly phase: ExtentPhase;
  /** Raised by seal and repair, and by the beginning and the end of an attempt. */
  readonly version: ExtentVersion;
  /** Epoch of the owner that it was allocated for. */
  readonly ownerEpoch: OwnerEpoch;
  /** Name of the stream that the extent was allocated for. */
  readonly stream: string;
  /** The first is the primary; the order never changes while it is open. */
  readonly replicas: readonly ReplicaRecord[];
  /** Sealed length in bytes; absent until the extent is sealed. */
  readonly sealedLengthBytes?: number;
  /** crc32c of the whole sealed content, once a replica has told it; the first recorded is the right one for ever. */
  readonly checksum?: number;
  /** A copy that was begun: this node gets a new replica. */
  readonly repair?: ReplicaPlace;
  /** Replicas that repair replaced and that were not deleted yet. */
  readonly removed: readonly ReplicaPlace[];
  /**
   * Fewer than `minCopies` replicas made the sealed length: these nodes'. It was told to nobody, and is not before as many are recorded
   * complete and this is gone (`planUnseal`).
   */
  readonly untold?: readonly string[];
  /** Wall-clock time when it was recorded as dropped, in milliseconds since 1970; the grace counts from there, over every leader. */
  readonly droppedAtMs?: number;
  /** Loss that a person accepted when sealing the extent; kept as long as the extent. */
  readonly loss?: AcceptedLoss;
  /** Fragments; absent: the extent is stored as replicas. If present, `replicas` is empty. */
  readonly coded?: CodedRecord;
  /** Attempt at coding, repair or decoding; absent: none is under way. Never together with `repair`. */
  readonly attempt?: AttemptRecord;
  /**
   * Creation number, random, from 1 on: no extent that gets the same number by an older metadata store has the same one. Absent: the extent was made
   * below feature level 4.
   */
  readonly creation?: number;
  /** Fragments that were replaced, or made by an attempt that was taken back, and that are not deleted yet. Absent: none. */
  readonly removedFragments?: readonly FragmentPlace[];
}

export interface AcceptedLoss {
  /** Known acknowledged bytes at the sealing; those above the sealed length are lost. */
  readonly knownCommittedBytes: number;
  readonly wallMs: number;
  /** Name and reason of the person. */
  readonly note: string;
}

export interface SegmentReference {
  readonly id: number;
  readonly count: number;
}

export interface StreamRecord {
  readonly name: string;
  /** Every change by a lower one is refused. */
  readonly ownerEpoch: OwnerEpoch;
  readonly segments: readonly SegmentReference[];
  /** Extents of the first segment that were truncated away. */
  readonly skipCount: number;
  readonly tail: readonly ExtentId[];
}

/** draining: it gets no new replicas and those it has are made again elsewhere. decommissioned: it was emptied and is forgotten. */
export type NodeDuty = "serving" | "draining" | "decommissioned";

export interface NodeRecord {
  readonly nodeId: string;
  readonly address: string;
  readonly diskId: string;
  readonly faultDomain: string;
  readonly incarnation: number;
  /** Duty of the node; absent: it serves. */
  readonly duty?: NodeDuty;
}
