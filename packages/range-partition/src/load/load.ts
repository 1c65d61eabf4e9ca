/**
 * Loads a range partition: takes its streams over with the new owner epoch (which fences the old owner), finds the state in the metadata
 * stream, opens the checkpoints and replays the commit log. Replay is idempotent by (owner epoch, sequence).
 */
import { FailureError, type Outcome, ok, refused, unwrap } from "@stamp/base";
import {
  type CommitRecord,
  decodeCommit,
  decodeState,
  followersFor,
  holdsKey,
  type KeyBounds,
  lineageAtLoad,
  MemoryTable,
  type PartitionState,
  type StoredCheckpoint,
  withRestOf,
  writesBytes,
} from "@stamp/lsm";
import { Turns, type World } from "@stamp/ports";
import { isGone, type OwnedStream, type StreamClient } from "@stamp/stream-client";
import type { Caches } from "../cache/caches.ts";
import { Checkpoint, type Storage } from "../checkpoint/checkpoint-reader.ts";
import { StorageFigures } from "../storage-figures.ts";
import { StorageTimes } from "../storage-times.ts";
import type { PartitionOptions } from "../types.ts";
import { GoneExtents, isWhole, LogGaps, rolledBack, withoutUnknown } from "./rolled-back.ts";

export interface PartitionStreams {
  readonly metadata: OwnedStream;
  readonly commitLog: OwnedStream;
  readonly rowData: OwnedStream;
  readonly blobData: OwnedStream | undefined;
}

export interface LoadedPartition {
  readonly streams: PartitionStreams;
  readonly storage: Storage;
  readonly state: PartitionState;
  readonly checkpoints: readonly Checkpoint[];
  readonly replayed: ReplayedLog;
}

export interface ReplayedLog {
  readonly table: MemoryTable;
  readonly lastSequence: number;
  readonly lastTicket: number;
  readonly logBytes: number;
}

export const storageOf = (world: World, client: StreamClient, options: PartitionOptions, caches: Caches): Storage => ({
  world,
  reader: client.reader,
  caches,
  figures: new StorageFigures(options.figures),
  times: options.times ?? new StorageTimes(world.clock),
});

export async function loadPartition(
  world: World,
  client: StreamClient,
  options: PartitionOptions & { readonly timeoutMs: number },
  caches: Caches,
): Promise<Outcome<LoadedPartition>> {
  const startedMs = world.clock.monotonicMs();
  const names = [options.streams.metadata, options.streams.commitLog, options.streams.rowData];
  if (options.streams.blobData !== undefined) names.push(options.streams.blobData);
  // In one call and one transaction: nothing is read before all of them are had.
  const all = await client.openAllForOwner(names, options.ownerEpoch, {
    create: options.create ?? true,
    timeoutMs: Math.max(1, options.timeoutMs),
  });
  if (!all.ok) return all;
  const opened = all.value;
  const close = async (): Promise<void> => {
    for (const stream of opened) await stream.close();
  };
  const openedMs = world.clock.monotonicMs();
  const [metadata, commitLog, rowData, blobData] = opened as [OwnedStream, OwnedStream, OwnedStream, OwnedStream | undefined];
  const storage = storageOf(world, client, options, caches);
  try {
    const own = { low: options.lowKey, high: options.highKey };
    const newest = await readState(world, metadata, options, own);
    const found = await afterRestore(world, { metadata, rowData }, newest, { own, storage });
    const gaps = new LogGaps(found, isRestored(newest, metadata) && world.rules.on("restoredLogsMayLack"));
    const [checkpoints, replayed] = await Promise.all([
      Promise.all(found.checkpoints.map(async (stored) => unwrap(await Checkpoint.open(stored, own, storage)))),
      replay(world, commitLog, found, { own, gaps }),
    ]);
    const state = withLineage(world, withLosses(world, found, gaps), metadata.lineage, replayed.lastSequence);
    world.logger.info("range partition loaded", {
      rangeId: options.rangeId,
      ownerEpoch: options.ownerEpoch,
      sequence: replayed.lastSequence,
      replayedBytes: replayed.logBytes,
      checkpoints: checkpoints.length,
      openMs: Math.round(openedMs - startedMs),
      readMs: Math.round(world.clock.monotonicMs() - openedMs),
    });
    return ok({ streams: { metadata, commitLog, rowData, blobData }, storage, state, checkpoints, replayed });
  } catch (error) {
    await close();
    if (error instanceof FailureError) return { ok: false, failure: error.failure };
    throw error;
  }
}

async function readState(world: World, metadata: OwnedStream, options: PartitionOptions, own: KeyBounds): Promise<PartitionState> {
  let last: PartitionState | undefined;
  const gone = new GoneExtents();
  for await (const { payload } of metadata.readAll(readOver(metadata, gone))) {
    gone.blockRead();
    const state = decodeState(payload, world.digest.crc32c);
    if (!state.ok) throw new FailureError(state.failure);
    if (last === undefined || state.value.recordNumber > last.recordNumber) last = state.value;
  }
  if (gone.atEnd !== undefined) throw new FailureError(gone.atEnd);
  if (last !== undefined && last.rangeId !== options.rangeId) {
    // Left by a split or a merge.
    if (last.heirs?.includes(options.rangeId)) return childState(last, options.rangeId, own);
    throw new FailureError(
      refused("dataLoss", "damaged", `the metadata of ${last.rangeId} where that of ${options.rangeId} belongs`).failure,
    );
  }
  return (
    (last && withRestOf(withoutChildren(last), own)) ?? {
      rangeId: options.rangeId,
      ownerEpoch: options.ownerEpoch,
      recordNumber: 0,
      checkpoints: [],
      checkpointedSequence: 0,
      lastTicket: 0,
      logStartExtentId: 0,
      nextCheckpointId: 1,
    }
  );
}

/**
 * After a restore of the metadata store the list of a stream may name extents that were deleted after the copy, or lost. They are passed over if
 * something is read behind them: a later record counts alone, and a commit that is missing shows as a gap.
 */
const readOver = (stream: OwnedStream, gone: GoneExtents) => (stream.lineage > 0 ? { passOver: gone.passOver } : {});

/** True if the metadata store was restored since the record was written. */
const isRestored = (newest: PartitionState, metadata: OwnedStream): boolean => metadata.lineage > (newest.lineage?.store ?? 0);

/** Returns the state with the replayed gaps of the log, and logs them. */
function withLosses(world: World, state: PartitionState, gaps: LogGaps): PartitionState {
  const { losses } = gaps;
  for (const [first, last] of gaps.found)
    world.logger.error("the commit log lacks commits since the metadata store was restored: rows that only these had are lost", {
      ...{ rangeId: state.rangeId, first, last },
    });
  return losses === undefined ? state : { ...state, losses };
}

/** Returns the state to begin with: after a restore of the metadata store, one of which the store knows the checkpoints. */
async function afterRestore(
  world: World,
  { metadata, rowData }: Pick<PartitionStreams, "metadata" | "rowData">,
  newest: PartitionState,
  { own, storage }: { readonly own: KeyBounds; readonly storage: Storage },
): Promise<PartitionState> {
  if (!isRestored(newest, metadata) || !world.rules.on("knownCheckpointsCount")) return newest;
  const known = new Map<string, boolean>();
  const isReadable = async (stored: StoredCheckpoint): Promise<boolean> => {
    const key = JSON.stringify(stored.indexPlaces);
    const readable = known.get(key) ?? (await isKnown(stored));
    known.set(key, readable);
    return readable;
  };
  const isKnown = async (stored: StoredCheckpoint): Promise<boolean> => {
    if (!stored.indexPlaces.every(({ extentId }) => rowData.knows(extentId))) return false;
    // Its blocks may be in extents before that of its index.
    const checkpoint = await Checkpoint.open(stored, own, storage);
    if (!checkpoint.ok && isGone(checkpoint.failure)) return false;
    return [...unwrap(checkpoint).extentIds].every((extentId) => rowData.knows(extentId));
  };
  if (await isWhole(newest, isReadable)) return newest;
  const records: PartitionState[] = [];
  for await (const { payload } of metadata.readAll(readOver(metadata, new GoneExtents()))) {
    const state = decodeState(payload, world.digest.crc32c);
    if (state.ok) records.push(state.value);
  }
  const state = (await rolledBack(newest, records, isReadable)) ?? (await withoutUnknown(newest, isReadable));
  world.logger.error("the restored metadata store does not know the newest checkpoints of the range: rows that only these had are lost", {
    rangeId: newest.rangeId,
    checkpointedBefore: newest.checkpointedSequence,
    checkpointed: state.checkpointedSequence,
  });
  return state;
}

/** Returns the state with which a child range begins. */
export const childState = (left: PartitionState, rangeId: string, own: KeyBounds): PartitionState => ({
  ...withRestOf(withoutChildren(left), own),
  rangeId,
  followers: { for: [rangeId], cursors: followersFor(left.followers, rangeId, own) },
  lastTicket: Math.max(left.lastTicket, ticketBefore(rangeId)),
});

/** Tickets of a range between two splits or merges, before it gives those with which a later range began. */
const ticketsPerChild = 2 ** 24;
const birthEpochMax = 2 ** 28;

/**
 * Children of one partition must not count on from the same ticket: an ETag is made of the ticket, and a container that is deleted and made
 * again may have its blobs in another child (docs/design/partition-layer.md). A range's id ends with the owner epoch that it was born with, which no other
 * range has; it is the same whoever loads the range.
 */
function ticketBefore(rangeId: string): number {
  const epoch = Number(/-e(\d+)$/.exec(rangeId)?.[1] ?? 0);
  return epoch < birthEpochMax ? epoch * ticketsPerChild : 0;
}

/**
 * Begins a new lineage of the log if the load shows one (@stamp/lsm log-lineage.ts). It is recorded with the next record of the range, which is
 * before a follower is given anything: until then each load begins one. Followers of the lineage before are gone, and scan the rows.
 */
function withLineage(world: World, state: PartitionState, store: number, end: number): PartitionState {
  const { followers, rangeId } = state;
  const cursors = followers?.cursors ?? {};
  const stored = state.lineage;
  const lineage = lineageAtLoad({ stored, store, cursors, end, wallMs: world.clock.wallMs() });
  if (lineage.log === (stored?.log ?? 0) || !world.rules.on("logsHaveLineages")) return state;
  const names = Object.keys(cursors).join(", ");
  world.logger.warn("the commit log begins a new lineage: its followers scan the rows", {
    rangeId,
    end,
    lineage: lineage.log,
    followers: names,
  });
  return { ...state, lineage, ...(followers && { followers: { ...followers, cursors: {} } }) };
}

const withoutChildren = ({ heirs: _, ...state }: PartitionState): PartitionState => state;

/** Returns the rows in memory that a parent left, as the first memory table. */
export function replayRest({ rest = [], checkpointedSequence, lastTicket }: PartitionState): ReplayedLog {
  const table = new MemoryTable();
  const sequence = checkpointedSequence + 1;
  for (const write of rest) table.put(write.key, sequence, write.kind === "put" ? write.value : undefined);
  const [lastSequence, logBytes] = rest.length > 0 ? [sequence, writesBytes(rest)] : [checkpointedSequence, 0];
  return { table, lastSequence, lastTicket, logBytes };
}

/** Replays the log. It begins with that of a parent that left it to children, with rows of all; that of a merge's child begins empty. */
async function replay(
  world: World,
  log: OwnedStream,
  state: PartitionState,
  how: { readonly own: KeyBounds; readonly gaps: LogGaps },
): Promise<ReplayedLog> {
  const rest = replayRest(state);
  const { table } = rest;
  let { lastSequence, lastTicket, logBytes } = rest;
  const { logStart, logStartExtentId } = state;
  const begins = logStart?.extentId === logStartExtentId ? logStart : { extentId: logStartExtentId, offsetBytes: 0 };
  const from = log.knows(logStartExtentId) ? { from: begins } : {};
  const turns = new Turns(world.clock);
  const gone = new GoneExtents();
  for await (const { payload } of log.readAll({ ...from, ...readOver(log, gone) })) {
    gone.blockRead();
    if (turns.over) await turns.next();
    const decoded = decodeCommit(payload, world.digest.crc32c);
    if (!decoded.ok) throw new FailureError(decoded.failure);
    const record = decoded.value;
    lastTicket = Math.max(lastTicket, record.lastTicket);
    const before = lastSequence;
    lastSequence = applyRecord(world, table, record, { applied: lastSequence, ...how });
    if (lastSequence > before) logBytes += payload.length;
  }
  if (gone.atEnd !== undefined) throw new FailureError(gone.atEnd);
  return { table, lastSequence, lastTicket, logBytes };
}

/** Applies a record. Returns the last applied sequence. Applied commits are passed over; a gap is lost data, which only a restore explains. */
function applyRecord(
  world: World,
  table: MemoryTable,
  record: CommitRecord,
  { applied, gaps, own }: { readonly applied: number; readonly gaps: LogGaps; readonly own: KeyBounds },
): number {
  if (record.firstSequence > applied + 1 && !gaps.passes(applied + 1, record.firstSequence - 1)) {
    const gap = `the commit log goes from ${applied} to ${record.firstSequence}`;
    throw new FailureError(refused("dataLoss", "damaged", gap).failure);
  }
  let last = applied;
  for (const [i, writes] of record.transactions.entries()) {
    const sequence = record.firstSequence + i;
    if (sequence <= applied && world.rules.on("replayBySequence")) continue;
    for (const write of writes) {
      if (holdsKey(own, write.key)) table.put(write.key, sequence, write.kind === "put" ? write.value : undefined);
    }
    last = Math.max(last, sequence);
  }
  return last;
}
