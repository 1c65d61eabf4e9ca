/**
 * A snapshot on its way to a follower whose entries the leader has given up (section 7), in chunks. The machine handles offers and
 * answers; the bytes are the caller's.
 *
 *     leader                                            follower
 *     snapshotOffer ───────────────────────────────────▶ has the entries: appendAnswer
 *     ChunkWanted ◀─ snapshotAnswer (offset) ◀────────── else: what it has of this snapshot
 *     giveChunk ──▶ snapshotChunk ─────────────────────▶ ChunkToStore ──▶ chunkStored
 *                    snapshotAnswer (offset) ◀────────── and so on; after the last chunk: Ready.snapshot, then appendAnswer
 *
 * Invariants:
 * - One chunk is on its way to a follower at a time. A lost message is made up for by another offer.
 * - Chunks of one snapshot come from one leader in one term: the bytes of another leader's snapshot may differ. While the caller has a chunk in
 *   hand, no other snapshot takes its place: `chunkStored` would count that chunk as one of the new snapshot.
 * - Nothing of a snapshot shows before all of it is stored.
 */
import type { Core } from "./core.ts";
import type { Progress } from "./leader/progress.ts";
import type { MessageOf } from "./messages.ts";
import type { MemberId } from "./types.ts";

export function offerSnapshot(core: Core, to: MemberId, progress: Progress): void {
  progress.toSnapshot(core.log.snapshot.index);
  core.send(to, { kind: "snapshotOffer", snapshot: core.log.snapshot });
}

export interface Chunk {
  readonly bytes: Uint8Array;
  readonly last: boolean;
}

/** Sends the bytes that were wanted; undefined: the caller has no such snapshot any more, so the newest is offered. */
export function giveChunk(core: Core, to: MemberId, index: number, offsetBytes: number, chunk: Chunk | undefined): void {
  const progress = core.leadership?.progress.get(to);
  if (progress?.state !== "snapshot" || progress.snapshotIndex !== index || progress.offsetBytes !== offsetBytes) return;
  if (chunk === undefined) offerSnapshot(core, to, progress);
  else core.send(to, { kind: "snapshotChunk", index, offsetBytes, ...chunk });
}

export function onSnapshotOffer(core: Core, { from, term, snapshot }: MessageOf<"snapshotOffer">): void {
  if (snapshot.index <= core.commit || core.log.termAt(snapshot.index) === snapshot.term) {
    core.commitTo(snapshot.index);
    core.incoming = undefined;
    core.sendAfterSync(from, { kind: "appendAnswer", accepted: true, index: snapshot.index });
    return;
  }
  const held = core.incoming;
  if (held?.from !== from || held.term !== term || held.snapshot.index !== snapshot.index) {
    // It is offered again.
    if (held?.storing === true) return;
    core.incoming = { from, term, snapshot, storedBytes: 0, storing: false };
  }
  if (core.incoming?.storing === false) answerOffset(core);
}

export function onSnapshotChunk(core: Core, { from, term, index, offsetBytes, bytes, last }: MessageOf<"snapshotChunk">): void {
  const held = core.incoming;
  if (held === undefined || held.from !== from || held.term !== term || held.snapshot.index !== index) return;
  if (held.storing || held.storedBytes !== offsetBytes) return;
  held.storing = true;
  core.chunksToStore.push({ from, snapshot: held.snapshot, offsetBytes, bytes, last });
}

/** Notes that the caller has stored a chunk, or, with undefined, found that the bytes are damaged: then all of it is sent again. */
export function chunkStored(core: Core, index: number, endBytes: number | undefined, last: boolean): void {
  const held = core.incoming;
  if (held === undefined || held.snapshot.index !== index || !held.storing) return;
  held.storing = false;
  held.storedBytes = endBytes ?? 0;
  if (held.term !== core.term || core.leader !== held.from) return;
  if (endBytes === undefined || !last) {
    answerOffset(core);
    return;
  }
  core.incoming = undefined;
  if (index <= core.commit) return;
  core.restore(held.snapshot);
  core.sendAfterSync(held.from, { kind: "appendAnswer", accepted: true, index });
}

function answerOffset(core: Core): void {
  const held = core.incoming;
  if (held !== undefined) core.send(held.from, { kind: "snapshotAnswer", index: held.snapshot.index, offsetBytes: held.storedBytes });
}
