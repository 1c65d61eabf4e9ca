/** Answers of followers to a leader: to appends, heartbeats and pieces of a snapshot. */
import type { Core } from "../core.ts";
import type { MessageOf } from "../messages.ts";
import { offerSnapshot } from "../snapshot-stream.ts";
import { advanceCommit, handOver, heardFollower, leading } from "./leader.ts";
import { confirmReads } from "./replication.ts";

/** Number of answered heartbeats, without progress of a snapshot's stream, after which it is offered again. */
const idleHeartbeatsMax = 3;

export function onAppendAnswer(core: Core, message: MessageOf<"appendAnswer">): void {
  const progress = heardFollower(core, message);
  if (progress === undefined || message.index > core.log.last.index) return;
  if (message.accepted) {
    progress.accepted(message.index, message.full);
    advanceCommit(core);
    if (core.leadership !== undefined) handOver(core);
    return;
  }
  const { log } = core;
  const { hintIndex, hintTerm } = message;
  progress.refused(message.index, hintIndex < log.base.index ? hintIndex : log.agreement(hintIndex, hintTerm).index);
}

export function onHeartbeatAnswer(core: Core, message: MessageOf<"heartbeatAnswer">): void {
  const progress = heardFollower(core, message);
  if (progress === undefined) return;
  progress.heartbeatAnswered();
  progress.round = Math.max(progress.round, message.round);
  if (message.full) progress.fullRound = Math.max(progress.fullRound, message.round);
  confirmReads(core, leading(core));
  if (progress.state === "snapshot" && ++progress.idleHeartbeats >= idleHeartbeatsMax) offerSnapshot(core, message.from, progress);
}

export function onSnapshotAnswer(core: Core, message: MessageOf<"snapshotAnswer">): void {
  const progress = heardFollower(core, message);
  if (progress === undefined || progress.state !== "snapshot" || message.index !== progress.snapshotIndex) return;
  progress.idleHeartbeats = 0;
  progress.offsetBytes = message.offsetBytes;
  const { chunkBytesMax } = core.limits;
  core.chunksWanted.push({ to: message.from, index: message.index, offsetBytes: message.offsetBytes, bytesMax: chunkBytesMax });
}
