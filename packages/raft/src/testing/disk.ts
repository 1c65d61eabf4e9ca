/**
 * A member's folder: what its caller has written durably, and writes that a crash takes back. Copies of the folder are what a
 * person would put back.
 */
import type { Ready } from "../ready.ts";
import { type Entry, type HardState, noSnapshot, type SnapshotMeta } from "../types.ts";

export interface Folder {
  readonly hardState: HardState;
  readonly snapshot: SnapshotMeta;
  readonly entries: readonly Entry[];
  /** State of the caller: texts of all applied entries in order, up to `snapshot.index`. The state of later entries is applied again. */
  readonly state: readonly string[];
}

/** Folder of a first voter, or of a member that joins or has lost its own. */
export const newFolder = (snapshot: SnapshotMeta = noSnapshot): Folder => ({
  hardState: { term: 0, vote: undefined, commit: snapshot.index },
  snapshot,
  entries: [],
  state: [],
});

/** Returns the folder after one write of a Ready. `received`: state of the snapshot that it installs. */
export function written(folder: Folder, ready: Ready, received: readonly string[] | undefined): Folder {
  let { hardState, snapshot, entries, state } = folder;
  hardState = ready.hardState ?? hardState;
  if (ready.snapshot !== undefined) {
    snapshot = ready.snapshot;
    entries = [];
    state = received ?? [];
  }
  const first = ready.entries[0];
  if (first !== undefined) entries = [...entries.filter(({ index }) => index < first.index), ...ready.entries];
  return { hardState, snapshot, entries, state };
}
