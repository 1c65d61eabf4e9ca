/** One extent on this node while the process runs: the replica machine, what is not in the extent file yet, and its block index. */
import type { PayloadHolders } from "@stamp/base";
import type { BlockIndex, FrameAt, PrimaryWindow, Replica } from "@stamp/extent";

/** A durable append that is not in the extent file yet. */
export interface PendingAppend {
  readonly offsetBytes: number;
  readonly endBytes: number;
  /** Undefined: its bytes are in the file, synced; only the index does not know of them. */
  readonly inMemory: { readonly slices: readonly Uint8Array[]; readonly holders: PayloadHolders | undefined } | undefined;
  readonly frames: readonly FrameAt[];
}

export interface AppendWaiter {
  acknowledge(committedBytes: number): void;
  /**
   * `lostReplica`: addresses, separated by commas, of the replicas whose connection was refused or lost, or that did not make the append
   * durable in time; `refusedForEver`: why a replica will never take this append.
   */
  fail(why: string, details: Readonly<Record<string, string>>): void;
}

export class LocalExtent {
  replica: Replica;
  /** Window of the primary; undefined while it takes no appends. */
  window: PrimaryWindow<AppendWaiter> | undefined;
  /** Appends that are not in the file yet, in offset order, contiguous. */
  pending: PendingAppend[] = [];
  /** Position below which the extent file has everything. */
  flushedBytes: number;
  /** Present for extents written by this process; loaded on demand for others. */
  index: BlockIndex | undefined;
  /** True if header and table do not yet hold the replica's state. */
  stateDirty = false;
  /** True if the file was written since its last sync. */
  syncNeeded = false;
  removed = false;
  /** Work on the file that has to be done before the next write. */
  before: (() => Promise<void>) | undefined;
  /** The flush under way: one at a time. */
  flushing: Promise<void> | undefined;
  /** Seal, copy and delete of one extent run one after another. */
  control: Promise<unknown> = Promise.resolve();

  constructor(replica: Replica, flushedBytes: number) {
    this.replica = replica;
    this.flushedBytes = flushedBytes;
  }

  get dirty(): boolean {
    return this.pending.length > 0 || this.stateDirty || this.before !== undefined;
  }

  /** Runs `work` after what is under way. */
  exclusively<T>(work: () => Promise<T>): Promise<T> {
    const run = this.control.then(work, work);
    this.control = run.catch(() => {});
    return run;
  }
}
