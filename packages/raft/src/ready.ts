/**
 * Requests to the caller, as values. The caller handles them in the order of their numbers:
 *
 *     1. sends `messages`, at any time
 *     2. installs `snapshot`, cuts its stored log off at the first of `entries`, appends them, writes `hardState`: one atomic write,
 *        synced if `mustSync`
 *     3. calls `persisted(number)`, then sends `messagesAfterSync`
 *     4. applies `committed` to its state, in order
 *
 * Several Readys may be in hand at once, as long as writes end in order. Nothing of step 3 happens before every earlier write is durable.
 */
import type { Message } from "./messages.ts";
import type { Entry, HardState, MemberId, Role, SnapshotMeta } from "./types.ts";

export interface ReadState {
  /** Number that the caller gave to `readIndex`. */
  readonly context: number;
  /** The read may be answered from a state that has applied this entry. */
  readonly index: number;
}

/** Bytes of the caller's snapshot that the caller has to give to `giveChunk`. */
export interface ChunkWanted {
  readonly to: MemberId;
  readonly index: number;
  readonly offsetBytes: number;
  readonly bytesMax: number;
}

/** Bytes that the caller has to store aside, and then calls `chunkStored`. Offset 0 begins anew. */
export interface ChunkToStore {
  readonly from: MemberId;
  readonly snapshot: SnapshotMeta;
  readonly offsetBytes: number;
  readonly bytes: Uint8Array;
  readonly last: boolean;
}

export interface Ready {
  readonly number: number;
  /** New hard state; undefined: it did not change. */
  readonly hardState: HardState | undefined;
  /** Received snapshot that replaces state and log. */
  readonly snapshot: SnapshotMeta | undefined;
  readonly entries: readonly Entry[];
  readonly mustSync: boolean;
  readonly messages: readonly Message[];
  readonly messagesAfterSync: readonly Message[];
  readonly committed: readonly Entry[];
  readonly reads: readonly ReadState[];
  /** Contexts of reads that nobody will confirm: leadership was lost. */
  readonly lostReads: readonly number[];
  readonly chunksWanted: readonly ChunkWanted[];
  readonly chunksToStore: readonly ChunkToStore[];
}

/** State for people and metrics. */
export interface RaftStatus {
  readonly id: MemberId;
  readonly role: Role;
  readonly term: number;
  /** Id of the leader; undefined: none is known. */
  readonly leader: MemberId | undefined;
  /** True if the member counts in majorities; false from a start until the others have readmitted it. */
  readonly full: boolean;
  readonly commit: number;
  readonly lastIndex: number;
  readonly durable: number;
  /** Reason why this member takes part no more, for people; undefined: it does. */
  readonly contradiction: string | undefined;
}
