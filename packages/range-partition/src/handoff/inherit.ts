/**
 * A range begins where others have left, in the process that handed their streams over: it knows what is in them, so nobody is asked and
 * nothing is read but indexes that are not cached.
 */
import { type KeyBounds, MemoryTable } from "@stamp/lsm";
import type { World } from "@stamp/ports";
import type { OwnedStream, StreamClient, StreamExtent } from "@stamp/stream-client";
import type { Caches } from "../cache/caches.ts";
import { Checkpoint } from "../checkpoint/checkpoint-reader.ts";
import { childState, type LoadedPartition, type PartitionStreams, type ReplayedLog, replayRest, storageOf } from "../load/load.ts";
import type { PartitionOptions } from "../types.ts";
import type { HandedOver } from "./hand-over.ts";
import type { LeftLog, LeftPartition } from "./leave.ts";

/** Returns undefined when a checkpoint can't be opened, or a parent's streams were not all resolved. */
export async function inheritPartition(
  world: World,
  client: StreamClient,
  options: PartitionOptions,
  caches: Caches,
  parents: readonly PartitionStreams[],
  left: LeftPartition,
  handed: HandedOver,
): Promise<LoadedPartition | undefined> {
  const own = { low: options.lowKey, high: options.highKey };
  const storage = storageOf(world, client, options, caches);
  const state = childState(left.state, options.rangeId, own);
  const opened = await Promise.all(state.checkpoints.map((stored) => Checkpoint.open(stored, own, storage)));
  const checkpoints = opened.flatMap((one) => (one.ok ? [one.value] : []));
  if (checkpoints.length < opened.length) return undefined;
  const listOf = (kind: keyof PartitionStreams, of = parents) => inherited(of.map((streams) => streams[kind]));
  const first = parents.slice(0, 1);
  const metadata = extentsFrom(listOf("metadata", first), left.recordExtentId);
  const commitLog = left.log === undefined ? [] : extentsFrom(listOf("commitLog", first), left.log.fromExtentId);
  const rowData = listOf("rowData");
  const blobData = listOf("blobData");
  if (metadata === undefined || commitLog === undefined || rowData === undefined || blobData === undefined) return undefined;
  const { ownerEpoch, streams: names } = options;
  const streams: PartitionStreams = {
    metadata: client.ownedStream(names.metadata, ownerEpoch, metadata),
    commitLog: client.ownedStream(names.commitLog, ownerEpoch, commitLog, handed.get(names.commitLog)),
    rowData: client.ownedStream(names.rowData, ownerEpoch, rowData),
    blobData: names.blobData === undefined ? undefined : client.ownedStream(names.blobData, ownerEpoch, blobData),
  };
  const replayed = left.log === undefined ? replayRest(state) : ofLog(left.log, state.lastTicket, own);
  return { streams, storage, state, checkpoints, replayed };
}

/** Returns what a replay of the log would find. */
function ofLog({ table: all, lastSequence, lastTicket, logBytes }: LeftLog, ownTicket: number, { low, high }: KeyBounds): ReplayedLog {
  const table = new MemoryTable();
  for (const { key, sequence, value } of all.iterate({ gte: low, ...(high.length > 0 && { lt: high }) }, Number.MAX_SAFE_INTEGER)) {
    table.put(key, sequence, value);
  }
  return { table, lastSequence, lastTicket: Math.max(lastTicket, ownTicket), logBytes };
}

/** Returns the list that the stream of a child has after the change; undefined when a parent's end is not known here. */
function inherited(streams: readonly (OwnedStream | undefined)[]): readonly StreamExtent[] | undefined {
  const extents = new Map<number, StreamExtent>();
  for (const stream of streams) {
    const end = stream?.endsAt;
    if (stream !== undefined && end === undefined) return undefined;
    for (const { extentId, sealedLengthBytes } of stream?.extents ?? []) {
      const lengthBytes = sealedLengthBytes ?? (end !== "sealed" && end?.extentId === extentId ? end.lengthBytes : undefined);
      if (lengthBytes === undefined) return undefined;
      if (!extents.has(extentId)) extents.set(extentId, { extentId, sealedLengthBytes: lengthBytes });
    }
  }
  return [...extents.values()];
}

/** Returns the extents from this one on; all of them if it is none of them. */
const extentsFrom = (extents: readonly StreamExtent[] | undefined, first: number): readonly StreamExtent[] | undefined =>
  extents?.slice(
    Math.max(
      0,
      extents.findIndex(({ extentId }) => extentId === first),
    ),
  );
