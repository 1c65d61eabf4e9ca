/**
 * A range begins where others have left, in the process that handed their streams over: it knows what is in them, so nobody is asked and
 * nothing is read but indexes that are not cached.
 */
import type { World } from "@stamp/ports";
import type { OwnedStream, StreamClient, StreamExtent } from "@stamp/stream-client";
import type { Caches } from "./caches.ts";
import { Checkpoint } from "./checkpoint-reader.ts";
import type { HandedOver } from "./hand-over.ts";
import type { Left } from "./leave.ts";
import { heirState, type Loaded, type PartitionStreams, replayRest, storageOf } from "./load.ts";
import type { PartitionOptions } from "./types.ts";

/** Undefined when a checkpoint can't be opened, or a parent's streams were not all resolved. */
export async function inheritPartition(
  world: World,
  client: StreamClient,
  options: PartitionOptions,
  caches: Caches,
  parents: readonly PartitionStreams[],
  left: Left,
  handed: HandedOver,
): Promise<Loaded | undefined> {
  const own = { low: options.lowKey, high: options.highKey };
  const storage = storageOf(world, client, options, caches);
  const state = heirState(left.told, options.rangeId, own);
  const opened = await Promise.all(state.checkpoints.map((stored) => Checkpoint.open(stored, own, storage)));
  const checkpoints = opened.flatMap((one) => (one.ok ? [one.value] : []));
  if (checkpoints.length < opened.length) return undefined;
  const listOf = (kind: "metadata" | "rowData" | "blobData", of = parents) => inherited(of.map((streams) => streams[kind]));
  const lists = {
    metadata: extentsFrom(listOf("metadata", parents.slice(0, 1)), left.recordExtentId),
    rowData: listOf("rowData"),
    blobData: listOf("blobData"),
  };
  if (lists.metadata === undefined || lists.rowData === undefined || lists.blobData === undefined) return undefined;
  const { ownerEpoch, streams: names } = options;
  const streams: PartitionStreams = {
    metadata: client.ownedStream(names.metadata, ownerEpoch, lists.metadata),
    commitLog: client.ownedStream(names.commitLog, ownerEpoch, [], handed.get(names.commitLog)),
    rowData: client.ownedStream(names.rowData, ownerEpoch, lists.rowData),
    blobData: names.blobData === undefined ? undefined : client.ownedStream(names.blobData, ownerEpoch, lists.blobData),
  };
  return { streams, storage, state, checkpoints, replayed: replayRest(state) };
}

/** The list that the stream of an heir has after the change; undefined when a parent's end is not known here. */
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

/** From the one of this number on; all of them when it is none of them. */
const extentsFrom = (extents: readonly StreamExtent[] | undefined, first: number): readonly StreamExtent[] | undefined =>
  extents?.slice(
    Math.max(
      0,
      extents.findIndex(({ extentId }) => extentId === first),
    ),
  );
