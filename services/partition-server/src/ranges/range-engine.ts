/**
 * The storage engine of a partition server: loads, serves, splits and closes range partitions (@stamp/range-partition), whose caches and budget of
 * memory tables all ranges of the process share.
 */
import { FailureError, type Outcome, ok, ownerEpoch, present, refused } from "@stamp/base";
import type { Decision } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import type { World } from "@stamp/ports";
import {
  type Caches,
  type Cursor,
  type DeletedWalk,
  Handoff,
  type HandoffChild,
  MemoryBudget,
  makeCaches,
  type PartitionOptions,
  type PartitionStreamNames,
  RangePartition,
  type Row,
  type RowScan,
  type ScanRange,
  StorageFigures,
  StorageTimes,
} from "@stamp/range-partition";
import { StreamClient } from "@stamp/stream-client";
import { type PartitionServerConfig, rowCacheBytesOf } from "../config.ts";
import type { Engines, LoadEngine, RangeEngine, RowView } from "../operations/engine.ts";

const loadTimeoutMs = 30_000;
/** Time in which other stamps acknowledge what a merge would end. */
const followedWaitMs = 2_000;

export function rangeEngines(world: World, config: PartitionServerConfig): Engines {
  const streams = new StreamClient(world, { lockService: config.lockService, extentTargetBytes: config.extentTargetBytes });
  const limits = { rowCacheBytesMax: rowCacheBytesOf(config, world.memoryBytes), indexCacheBytesMax: config.indexCacheBytesMax };
  const shared: Shared = {
    caches: makeCaches(limits),
    memory: new MemoryBudget(config.memoryTablesBytesMax),
    figures: new StorageFigures(),
    times: new StorageTimes(world.clock),
  };
  return {
    load: (range, onFenced) => load(world, streams, config, shared, range, onFenced),
    storage: () => ({
      ...shared.figures.counts,
      rowCacheBytes: shared.caches.blocks.bytes,
      indexCacheBytes: shared.caches.indexes.bytes,
      memoryTableBytes: shared.memory.bytes,
    }),
    hedges: () => streams.reader.hedges,
    times: shared.times,
    locate: async (extentIds, timeoutMs) => {
      const found = await streams.locate(extentIds, { timeoutMs });
      // Where they are is a help: a reader that misses one asks the stream manager itself.
      return found.ok ? [...found.value] : [];
    },
    handoff: (parents, children) => {
      const leaving = parents.map(({ range, engine }) => ({ ...ownedOf(range), partition: present(engine.partition, "a parent") }));
      const handoff = new Handoff(world, streams, leaving, children.map(ownedOf), { followedWaitMs });
      const inherit: LoadEngine = async (range, onFenced) => {
        const child = await handoff.inherit(optionsOf(config, shared, range, onFenced));
        return child ? ok(engineOf(child)) : load(world, streams, config, shared, range, onFenced);
      };
      return Object.assign(handoff, { load: inherit });
    },
  };
}

/** Caches and budgets that all ranges of this process share. */
interface Shared {
  readonly caches: Caches;
  readonly memory: MemoryBudget;
  readonly figures: StorageFigures;
  readonly times: StorageTimes;
}

function optionsOf(config: PartitionServerConfig, shared: Shared, range: Range, onFenced: (why: string) => void): PartitionOptions {
  return {
    rangeId: range.rangeId,
    streams: namesOf(range),
    ownerEpoch: ownerEpoch(range.ownerEpoch),
    create: !range.hasStreams,
    lowKey: range.low,
    highKey: range.high,
    limits: {
      memoryTableBytesMax: config.memoryTableBytesMax,
      logBytesMax: config.logBytesMax,
      checkpointsMax: config.checkpointsMax,
    },
    ...shared,
    pinTermMs: config.pinTermMs,
    onLost: onFenced,
  };
}

async function load(
  world: World,
  streams: StreamClient,
  config: PartitionServerConfig,
  shared: Shared,
  range: Range,
  onFenced: (why: string) => void,
): Promise<Outcome<RangeEngine>> {
  const loaded = await RangePartition.load(world, streams, { ...optionsOf(config, shared, range, onFenced), timeoutMs: loadTimeoutMs });
  return loaded.ok ? ok(engineOf(loaded.value)) : loaded;
}

const ownedOf = (range: Range): HandoffChild => ({ rangeId: range.rangeId, streams: namesOf(range), ownerEpoch: range.ownerEpoch });

function namesOf({ streams: { metadata, commitLog, rowData, blobData } }: Range): PartitionStreamNames {
  return { metadata, commitLog, rowData, ...(blobData === "" ? {} : { blobData }) };
}

interface RowSource {
  get(key: Uint8Array): Promise<Uint8Array | undefined>;
  scan(range: ScanRange): RowScan;
}

function engineOf(partition: RangePartition): RangeEngine {
  return {
    partition,
    read: async (work, { background } = { background: false }) => {
      const snapshot = partition.snapshot();
      try {
        const scan = (range: ScanRange) => partition.scan({ ...range, background }, snapshot);
        return await work(viewOf({ get: (key) => partition.get(key, snapshot), scan }));
      } finally {
        snapshot.close();
      }
    },
    transact: (lockKeys, decide, options) =>
      partition
        .transact<Outcome<Decision>>(
          lockKeys.length === 1 ? (lockKeys[0] as Uint8Array) : lockKeys,
          async (tx) => {
            const result = await decide(viewOf(tx), tx.nextSequence);
            return { writes: result.ok ? result.value.writes : [], result };
          },
          options,
        )
        .then((outcome) => (outcome.ok ? outcome.value : outcome)),
    appendData: async (payload, options) => {
      const places = await partition.appendData([payload], options);
      if (!places.ok) return places;
      const place = places.value[0];
      return place ? ok(place) : refused("internal", "bug", "an append gave no place");
    },
    mayReferTo: (place) => partition.ownsPlace(place),
    checkpoint: () => partition.checkpoint(),
    begin: () => partition.begin(),
    keySamples: () => partition.keySamples(),
    sealedDataExtents: () => partition.data.sealedExtents,
    settleExtents: () => partition.settleExtents(),
    goneSinceMs: () => partition.goneSinceMs,
    recordGone: (goneSinceMs) => partition.recordGone(goneSinceMs),
    needRows: (version) => partition.need("row", version),
    pinData: (extentIds) => partition.pinData(extentIds),
    copyData: (places, timeoutMs) => partition.copyData(places, { timeoutMs }),
    leaveExtents: (extentIds) => partition.leaveExtents(extentIds),
    dropExtents: (unreferenced, timeoutMs) => partition.dropExtents(unreferenced, { timeoutMs }),
    get facts() {
      const { sequence, memoryTableBytes, memoryTableFirstSequence, checkpointedSequence, checkpoints, checkpointBytes, storage, losses } =
        partition.stats;
      return {
        ...(losses === undefined ? {} : { losses: lossFacts(losses) }),
        sequence,
        memoryTableBytes,
        memoryTableFirstSequence,
        checkpointedSequence,
        checkpointCount: checkpoints,
        checkpointBytes,
        storage,
      };
    },
    close: () => partition.close(),
    forgetCached: () => partition.forgetCached(),
  };
}

const lossFacts = ({ checkpoints, commits }: NonNullable<RangePartition["stats"]["losses"]>) => ({
  commits: commits.reduce((sum, [first, last]) => sum + last - first + 1, 0),
  checkpoints,
});

/** Returns a view of rows. Unreadable storage is a failure of the operation, not of this process. */
function viewOf(source: RowSource): RowView {
  return {
    get: (key) => caught(async () => source.get(key)),
    scan: (low, high, { rowsMax, bytesMax, deletedMax = Number.POSITIVE_INFINITY }) =>
      caught(async () => {
        const rows: { key: Uint8Array; value: Uint8Array }[] = [];
        const walk: DeletedWalk = { deletedMax, deleted: 0, stoppedAt: undefined };
        let bytes = 0;
        let full = false;
        await eachRow(source.scan({ gte: low, lt: high, walk }), ([key, value]) => {
          full = rows.length >= rowsMax || (rows.length > 0 && bytes + value.length > bytesMax);
          if (full) return false;
          rows.push({ key, value });
          bytes += key.length + value.length;
          return true;
        });
        if (full) return { rows, more: true, deleted: walk.deleted };
        return { rows, more: walk.stoppedAt !== undefined, deleted: walk.deleted, stoppedAt: walk.stoppedAt };
      }),
    walk: (low, high, visit, { hidden } = { hidden: false }) =>
      caught(async () => {
        const cursor: Cursor = { from: undefined };
        await eachRow(source.scan({ gte: low, lt: high, cursor, hidden }), ([key, value]) => {
          cursor.from = visit({ key, value });
          return cursor.from !== undefined;
        });
      }),
  };
}

/** Gives row after row, until `take` returns false. It waits where the scan has to, and not at each row. */
async function eachRow(scan: RowScan, take: (row: Row) => boolean): Promise<void> {
  try {
    for (;;) {
      const pulled = scan.pull();
      const row = pulled instanceof Promise ? await pulled : pulled;
      if (row === undefined || !take(row)) return;
    }
  } finally {
    scan.close();
  }
}

async function caught<T>(work: () => Promise<T>): Promise<Outcome<T>> {
  try {
    return ok(await work());
  } catch (error) {
    if (error instanceof FailureError) return { ok: false, failure: error.failure };
    throw error;
  }
}
