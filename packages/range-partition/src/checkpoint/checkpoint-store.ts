/**
 * Writes checkpoints to the row data stream: data blocks first, several to an append, then the index in pieces. A checkpoint holds one
 * version of a key: a snapshot that is older reads from the view it was taken with, which has the memory table or the checkpoints that
 * this one is made of.
 */
import { equalBytes, FailureError, type Outcome, ok } from "@stamp/base";
import { CheckpointWriter, type Entry, type KeyBounds, type StoredPlace } from "@stamp/lsm";
import type { OwnedStream, Place } from "@stamp/stream-client";
import { Checkpoint, forgetBlocks, type Storage } from "./checkpoint-reader.ts";
import { MergePace, type RestTimes } from "./merge-pace.ts";

/** Size of one append, at most, but for a block that is larger alone. */
const appendBytes = 512 * 1024;
/** Blocks of a checkpoint are on their way for as long as it takes, also until disks have room again; only the end of ownership ends it. */
const appendTimeoutMs = Number.POSITIVE_INFINITY;

export interface CheckpointRequest {
  readonly id: number;
  /** Versions of every key, in order. */
  readonly versions: AsyncIterable<Entry> | Iterable<Entry>;
  /** Called after each version: true if its row was in memory. A block with mostly such rows is put into the row data cache. */
  readonly inMemory: () => boolean;
  /** True if nothing older lies below, so that tombstones need not be kept. */
  readonly bottom: boolean;
  /** The keys of the partition. */
  readonly own: KeyBounds;
  /** Called for every key: true if the checkpoint is not wanted any more. */
  readonly givenUp: () => boolean;
  /** Called after each step: how long the writing rests. */
  readonly restTimes: RestTimes;
}

/** Writes a checkpoint; undefined: nothing was left to write, or it was given up. */
export async function writeCheckpoint(
  rowData: OwnedStream,
  storage: Storage,
  request: CheckpointRequest,
): Promise<Outcome<Checkpoint | undefined>> {
  const places: StoredPlace[] = [];
  const written = await write(rowData, storage, request, places);
  if (!written.ok || written.value === undefined) await forgetBlocks(storage, places);
  return written;
}

/** Writes blocks, and tells the place of each as soon as it has one. */
async function write(
  rowData: OwnedStream,
  storage: Storage,
  request: CheckpointRequest,
  places: StoredPlace[],
): Promise<Outcome<Checkpoint | undefined>> {
  const { crc32c } = storage.world.digest;
  const writer = new CheckpointWriter(crc32c);
  const pace = new MergePace(storage.world, request.restTimes);
  let waiting: { readonly bytes: Uint8Array; readonly cached: boolean }[] = [];
  let waitingBytes = 0;
  let [entries, inMemory] = [0, 0];
  const flush = async (): Promise<void> => {
    if (waiting.length === 0) return;
    const blocks = waiting;
    waiting = [];
    waitingBytes = 0;
    const written = await append(
      rowData,
      blocks.map(({ bytes }) => bytes),
    );
    places.push(...written);
    for (const [at, { bytes, cached }] of blocks.entries()) {
      const place = written[at];
      if (cached && place !== undefined) storage.caches.blocks.put(place, bytes);
    }
  };
  const keep = async (bytes: Uint8Array): Promise<void> => {
    if (waitingBytes + bytes.length > appendBytes) await flush();
    waiting.push({ bytes, cached: 2 * inMemory > entries });
    waitingBytes += bytes.length;
    [entries, inMemory] = [0, 0];
  };
  try {
    let lastKey: Uint8Array | undefined;
    for await (const entry of request.versions) {
      const rest = pace.worked(entry.value?.length ?? 0);
      if (rest !== undefined) await rest;
      // The newest of a key comes first; a tombstone hides nothing where nothing lies below.
      if (lastKey !== undefined && equalBytes(lastKey, entry.key)) continue;
      lastKey = entry.key;
      if (request.givenUp()) return ok(undefined);
      if (request.bottom && entry.value === undefined) continue;
      const cached = request.inMemory();
      const block = writer.add(entry);
      if (block !== undefined) await keep(block);
      entries++;
      if (cached) inMemory++;
    }
    if (writer.entryCount === 0) return ok(undefined);
    const lastBlock = writer.lastBlock();
    if (lastBlock !== undefined) await keep(lastBlock);
    await flush();
    const indexing = writer.index(places);
    let step = indexing.next();
    for (; !step.done; step = indexing.next()) await pace.step();
    const { bytes: encoded, index } = step.value;
    const indexPlaces: Place[] = [];
    for (let at = 0; at < encoded.length; at += appendBytes) {
      indexPlaces.push(...(await append(rowData, [encoded.subarray(at, at + appendBytes)])));
    }
    const { entryCount, minSequence, maxSequence, dataBytes } = index;
    const stored = { id: request.id, indexPlaces, bytes: dataBytes + encoded.length, entryCount, minSequence, maxSequence };
    if (indexPlaces[0] !== undefined) storage.caches.indexes.put(indexPlaces[0], index);
    return ok(new Checkpoint(stored, index, request.own, storage));
  } catch (error) {
    if (error instanceof FailureError) return { ok: false, failure: error.failure };
    throw error;
  }
}

async function append(stream: OwnedStream, blocks: readonly Uint8Array[]): Promise<readonly Place[]> {
  const places = await stream.append(blocks, { timeoutMs: appendTimeoutMs });
  if (!places.ok) throw new FailureError(places.failure);
  return places.value;
}
