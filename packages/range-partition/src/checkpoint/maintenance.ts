/**
 * Background work of a range partition: a full memory table becomes a checkpoint, neighbouring checkpoints are merged. All may go on at
 * once, so that a long merge holds up neither commits nor merges of the checkpoints that come meanwhile; each records its result against the list as it then is, one record at a time. The
 * order is fixed (rule truncateAfterCheckpoint): row data acknowledged, then the metadata record acknowledged, then the log before it and
 * what the merge replaced are dropped. What was in memory when it was left is in every record until it is in a checkpoint (rule
 * restUntilCheckpointed).
 */
import { type Failure, type FormatName, type Outcome, ok, type Rules, WorkInTurn } from "@stamp/base";
import {
  coveredByRest,
  type Entry,
  encodeState,
  type FollowerCursors,
  type KeyBounds,
  type LogPlace,
  type MemoryTable,
  mergeDefaults,
  mergePlan,
  type PartitionState,
  type Write,
} from "@stamp/lsm";
import type { OwnedStream } from "@stamp/stream-client";
import type { UndurableCommits } from "../commit/group-commit.ts";
import type { HandoffRecord, LeaveOptions } from "../handoff/leave.ts";
import { MergedVersions } from "../tables.ts";
import type { Checkpoint, Storage } from "./checkpoint-reader.ts";
import { type CheckpointRequest, writeCheckpoint } from "./checkpoint-store.ts";
import { type RestTimes, restTimes, ServedWatch } from "./merge-pace.ts";

export interface MaintenanceStreams {
  readonly metadata: OwnedStream;
  readonly commitLog: OwnedStream;
  readonly rowData: OwnedStream;
  readonly blobData?: OwnedStream | undefined;
}

/** Memory table that takes no more commits, with its needs of the log. */
export interface FrozenTable {
  readonly table: MemoryTable;
  /** Sequence of the last commit before the table was frozen. A parent's commits may all be outside of it. */
  readonly lastSequence: number;
  /** Place behind the table's last commit, from which on the log holds everything later. */
  readonly logStart: LogPlace;
  readonly lastTicket: number;
}

/** Readers of the log, whose cursors go into every record. */
export interface RecordedFollowers {
  /** Returns the cursors for a record; `hasRest`: the record has rows that parents left. */
  cursors(hasRest: boolean): FollowerCursors;
  /** Notes a record with these cursors as durable. */
  recorded(cursors: FollowerCursors): void;
}

/** Merges at once: a long one, one of what came meanwhile, and so on. */
export const mergesMax = 3;
/** Policy for writing out a memory table: callers wait for it, so it never pauses. Merges pause. */
const flush = { inMemory: () => true, givenUp: () => false, restTimes: () => 0 };
/** Timeout of metadata writes: none, as for blocks of checkpoints. */
const metadataTimeoutMs = Number.POSITIVE_INFINITY;
const truncateTimeoutMs = 30_000;

const factsOf = ({ lastSequence, lastTicket, logStart }: FrozenTable): Partial<PartitionState> => ({
  checkpointedSequence: lastSequence,
  lastTicket,
  logStartExtentId: logStart.extentId,
  logStart,
});

/** Views. Tombstones too: checkpoints may have the keys. */
const newestWrites = (table: MemoryTable): readonly Write[] =>
  [...table.iterate({}, Number.MAX_SAFE_INTEGER)].map(({ key, value }) =>
    value === undefined ? { kind: "delete", key } : { kind: "put", key, value },
  );

/** Returns the extent from which the log is kept, for replay and for its recorded followers; 0: from its beginning. */
export function keptFromExtentId({ extents }: OwnedStream, { logStartExtentId, followers }: PartitionState): number {
  const wanted = new Set([logStartExtentId]);
  for (const { from } of Object.values(followers?.cursors ?? {})) wanted.add(from?.extentId ?? 0);
  return wanted.has(0) ? 0 : (extents.find(({ extentId }) => wanted.has(extentId))?.extentId ?? 0);
}

export class Maintenance {
  readonly #storage: Storage;
  readonly #streams: MaintenanceStreams;
  readonly #limits: { readonly checkpointsMax: number; readonly garbageBytesMax: number };
  readonly #own: KeyBounds;
  readonly #followers: RecordedFollowers;
  #stopped = false;
  /** Extent of the last record. */
  #recordExtentId = 0;
  #state: PartitionState;
  /** Format versions that a durable record names, or one on its way. */
  #needs: PartitionState["needs"];
  /** Checkpoints of the range, newest first. */
  #checkpoints: readonly Checkpoint[];
  #nextId: number;
  /**
   * For each checkpoint that is being written: the last extent of row data when it began. Its blocks lie there or
   * later.
   */
  readonly #writingFrom = new Map<number, number>();
  /** Checkpoints that merges under way read. */
  readonly #merging = new Set<number>();
  /** Records on their way; each waits for the one before it. */
  readonly #records = new WorkInTurn();
  readonly #drops = new WorkInTurn();

  constructor(
    storage: Storage,
    streams: MaintenanceStreams,
    opened: { readonly state: PartitionState; readonly checkpoints: readonly Checkpoint[] },
    limits: { readonly checkpointsMax: number; readonly garbageBytesMax: number },
    own: KeyBounds,
    followers: RecordedFollowers,
  ) {
    this.#own = own;
    this.#followers = followers;
    this.#storage = storage;
    this.#streams = streams;
    this.#state = opened.state;
    this.#needs = opened.state.needs;
    this.#checkpoints = opened.checkpoints;
    this.#limits = limits;
    this.#nextId = opened.state.nextCheckpointId;
  }

  get checkpoints(): readonly Checkpoint[] {
    return this.#checkpoints;
  }
  get state(): PartitionState {
    return this.#state;
  }

  /** Writes the table out. When it resolves well the table is no longer needed. */
  async checkpoint(frozen: FrozenTable): Promise<Outcome<void>> {
    const { times, world } = this.#storage;
    const sinceMs = world.clock.monotonicMs();
    const rules: Rules = world.rules;
    if (!rules.on("truncateAfterCheckpoint")) await this.#truncateLog(frozen.logStart.extentId);
    const written = await this.#write(frozen.table.versions(), this.#checkpoints.length === 0);
    if (!written.ok) return written;
    this.#storage.figures.add("flushedBytes", written.value?.stored.bytes ?? 0);
    const recorded = await this.#record((checkpoints) => (written.value === undefined ? checkpoints : [written.value, ...checkpoints]), {
      ...factsOf(frozen),
      rest: undefined,
    });
    if (!recorded.ok) return recorded;
    times.checkpoints.flush.since(sinceMs);
    await this.#truncateLog(frozen.logStart.extentId);
    return ok();
  }

  /** Records which extents of blob data are settled. */
  async settle(settledExtents: readonly number[]): Promise<Outcome<void>> {
    const recorded = await this.#record((checkpoints) => checkpoints, { settledExtents });
    return recorded.ok ? ok() : recorded;
  }

  /** Records what was found gone, and when. */
  async recordGone(goneSinceMs: Readonly<Record<string, number>>): Promise<Outcome<void>> {
    const known = Object.keys(goneSinceMs).length > 0 ? goneSinceMs : undefined;
    const recorded = await this.#record((checkpoints) => checkpoints, { goneSinceMs: known });
    return recorded.ok ? ok() : recorded;
  }

  /** Records the fences against what other stamps ship, and a ticket up to which no later owner gives one. */
  async recordFences(shippedFences: PartitionState["shippedFences"], ticket: number): Promise<Outcome<void>> {
    const lastTicket = Math.max(this.#state.lastTicket, ticket);
    const recorded = await this.#record((checkpoints) => checkpoints, { shippedFences, lastTicket });
    return recorded.ok ? ok() : recorded;
  }

  /** Records a lineage of the log above `above`, unless the log has one. */
  async beginLineage(above: number): Promise<Outcome<void>> {
    const { log, store } = this.#state.lineage ?? { log: 0, store: 0 };
    if (log > above) return ok();
    const recorded = await this.#record((checkpoints) => checkpoints, { lineage: { log: above + 1, store } });
    return recorded.ok ? ok() : recorded;
  }

  /** Records the cursors of the log's followers, and releases the log before them. */
  async recordFollowers(): Promise<Outcome<void>> {
    const recorded = await this.#record((checkpoints) => checkpoints, {});
    if (!recorded.ok) return recorded;
    await this.#truncateLog(this.#state.logStartExtentId);
    return ok();
  }

  /** Records the version of a format that the streams will hold from now on: a release that does not know it refuses the load. */
  async need(format: FormatName, version: number): Promise<Outcome<void>> {
    this.#needs = { ...this.#needs, [format]: Math.max(version, this.#needs?.[format] ?? 0) };
    const recorded = await this.#record((checkpoints) => checkpoints, { needs: this.#needs });
    return recorded.ok ? ok() : recorded;
  }

  /** Stops merges; one that is under way ends soon and comes to nothing. */
  stop(): void {
    this.#stopped = true;
  }

  /** Undoes `stop`. */
  goOn(): void {
    this.#stopped = false;
  }

  /** Records the state that `children` are loaded from, with the log from where it says. What is recorded later names them no more. */
  async recordHandoff(children: readonly string[]): Promise<Outcome<HandoffRecord>> {
    this.#stopped = true;
    const recorded = await this.#record((checkpoints) => checkpoints, { heirs: children });
    return recorded.ok ? ok({ state: recorded.value, recordExtentId: this.#recordExtentId }) : recorded;
  }

  /**
   * Writes the last record under this owner: the state that `children` are loaded from, with what is still in memory and what is in no log.
   * Nothing is truncated: the streams are about to go.
   */
  async leave(
    frozen: FrozenTable,
    undurable: Omit<UndurableCommits, "recorded">,
    { children, restBytesMax, writeRecord }: LeaveOptions,
  ): Promise<Outcome<HandoffRecord>> {
    this.#stopped = true;
    const isLittle = frozen.table.bytes + undurable.bytes <= restBytesMax;
    const written = isLittle ? ok(undefined) : await this.#write(frozen.table.versions(), this.#checkpoints.length === 0);
    if (!written.ok) return written;
    const { value: checkpoint } = written;
    this.#storage.figures.add("flushedBytes", checkpoint?.stored.bytes ?? 0);
    const rest = [...(isLittle ? newestWrites(frozen.table) : []), ...undurable.writes];
    const inRestFrom = (isLittle ? this.#state.checkpointedSequence : frozen.lastSequence) + 1;
    const left = await this.#record(
      (checkpoints) => (checkpoint === undefined ? checkpoints : [checkpoint, ...checkpoints]),
      { ...factsOf(frozen), checkpointedSequence: undurable.lastSequence, rest: rest.length > 0 ? rest : undefined, heirs: children },
      async (state) =>
        writeRecord({ state, own: this.#own, dataExtents: (this.#streams.blobData?.extents ?? []).map(({ extentId }) => extentId) }),
      () => coveredByRest(this.#followers.cursors(true), inRestFrom, undurable.lastSequence + 1),
    );
    return left.ok ? ok({ state: left.value, recordExtentId: this.#recordExtentId }) : left;
  }

  /** True if checkpoints should be merged. */
  get mergeDue(): boolean {
    return !this.#stopped && this.#plan() !== undefined;
  }

  /** True if there are more checkpoints than merges should ever leave. The next checkpoint then waits for a merge. */
  get crowded(): boolean {
    return !this.#stopped && this.#merging.size > 0 && this.#checkpoints.length >= mergesMax * this.#limits.checkpointsMax;
  }

  /** Does one merge, if there is one to do. `allCached`: no row of it was read from an extent node, so all that it wrote is in the row data cache. */
  async merge(): Promise<Outcome<{ readonly allCached: boolean }>> {
    const planned = this.#plan();
    if (planned === undefined) return ok({ allCached: true });
    for (const id of planned) this.#merging.add(id);
    const { times, world } = this.#storage;
    const sinceMs = world.clock.monotonicMs();
    try {
      return await this.#storage.figures.whileMerging(() => this.#merge(new Set(planned)));
    } finally {
      times.checkpoints.merge.since(sinceMs);
      for (const id of planned) this.#merging.delete(id);
    }
  }

  async #merge(ids: ReadonlySet<number>): Promise<Outcome<{ readonly allCached: boolean }>> {
    const sources = this.#checkpoints.filter(({ stored }) => ids.has(stored.id));
    const oldest = this.#checkpoints.at(-1);
    const bottom = oldest !== undefined && ids.has(oldest.stored.id);
    const versions = new MergedVersions(sources);
    let allCached = true;
    const written = await this.#write(versions, bottom, {
      inMemory: () => {
        allCached &&= versions.cached;
        return versions.cached;
      },
      givenUp: () => this.#stopped,
      restTimes: this.#restTimes(),
    });
    if (!written.ok) return written;
    this.#storage.figures.add("mergedBytes", written.value?.stored.bytes ?? 0);
    const merged = written.value;
    const change = (checkpoints: readonly Checkpoint[]): readonly Checkpoint[] => {
      const at = checkpoints.findIndex(({ stored }) => ids.has(stored.id));
      const rest = checkpoints.filter(({ stored }) => !ids.has(stored.id));
      return merged === undefined ? rest : [...rest.slice(0, at), merged, ...rest.slice(at)];
    };
    const recorded = this.#stopped ? undefined : await this.#record(change, {});
    if (!recorded?.ok) {
      await merged?.forget();
      return recorded ?? ok({ allCached: true });
    }
    await Promise.all(sources.map((source) => source.forget()));
    await this.#dropRowData();
    return ok({ allCached });
  }

  /** Returns the rests of one merge: it rests while anybody in this process was served since the last step. */
  #restTimes(): RestTimes {
    const { figures, world } = this.#storage;
    const watch = new ServedWatch(world.clock.monotonicMs(), figures.served);
    return () => {
      const served = watch.look(world.clock.monotonicMs(), figures.served);
      return restTimes(this.#checkpoints.length, this.#limits.checkpointsMax, served, figures.merges);
    };
  }

  #plan(): readonly number[] | undefined {
    const taken = this.#checkpoints.findIndex(({ stored }) => this.#merging.has(stored.id));
    const free = taken < 0 ? this.#checkpoints : this.#checkpoints.slice(0, taken);
    const stored = free.map(({ stored: { id }, liveBytes }) => ({ id, bytes: liveBytes }));
    const planned = mergePlan(stored, { ...mergeDefaults, checkpointsMax: this.#limits.checkpointsMax });
    if (planned !== undefined || stored.length === 0 || taken >= 0) return planned;
    // An extent stays for any checkpoint that lies in it, however little of it that is.
    let streamBytes = 0;
    for (const { sealedLengthBytes } of this.#streams.rowData.extents) streamBytes += sealedLengthBytes ?? 0;
    const liveBytes = stored.reduce((sum, { bytes }) => sum + bytes, 0);
    return streamBytes > 2 * liveBytes + this.#limits.garbageBytesMax ? stored.map(({ id }) => id) : undefined;
  }

  async #write(
    versions: AsyncIterable<Entry> | Iterable<Entry>,
    bottom: boolean,
    how: Pick<CheckpointRequest, "inMemory" | "givenUp" | "restTimes"> = flush,
  ): Promise<Outcome<Checkpoint | undefined>> {
    const { rowData } = this.#streams;
    const id = this.#nextId++;
    this.#writingFrom.set(id, rowData.extents.at(-1)?.extentId ?? 0);
    const written = await writeCheckpoint(rowData, this.#storage, { id, versions, bottom, own: this.#own, ...how });
    if (!written.ok || written.value === undefined) this.#writingFrom.delete(id);
    return written;
  }

  /** Puts the changed list into the metadata stream and takes it over when that is durable. `toRecord`: returns what the record says then. */
  #record(
    change: (checkpoints: readonly Checkpoint[]) => readonly Checkpoint[],
    facts: Partial<PartitionState>,
    toRecord = async (state: PartitionState): Promise<Outcome<PartitionState>> => ok(state),
    followed = (cursors: FollowerCursors): FollowerCursors => cursors,
  ): Promise<Outcome<PartitionState>> {
    return this.#records.run(async (): Promise<Outcome<PartitionState>> => {
      const checkpoints = change(this.#checkpoints);
      const { heirs: _, ...last } = this.#state;
      const before = this.#storage.world.rules.on("restUntilCheckpointed") ? last : { ...last, rest: undefined };
      const { rest } = { ...before, ...facts };
      const cursors = followed(this.#followers.cursors(rest !== undefined));
      const ranges = [this.#state.rangeId, ...(facts.heirs ?? [])];
      const state: PartitionState = {
        ...before,
        ...facts,
        followers: Object.keys(cursors).length > 0 ? { for: ranges, cursors } : undefined,
        ownerEpoch: this.#streams.metadata.ownerEpoch,
        recordNumber: this.#state.recordNumber + 1,
        nextCheckpointId: this.#nextId,
        checkpoints: checkpoints.map(({ stored }) => stored),
      };
      const written = await toRecord(state);
      if (!written.ok) return written;
      const record = encodeState(written.value, this.#storage.world.digest.crc32c);
      const places = await this.#streams.metadata.append([record], { timeoutMs: metadataTimeoutMs });
      if (!places.ok) return places;
      this.#state = state;
      this.#checkpoints = checkpoints;
      this.#followers.recorded(cursors);
      for (const { stored } of checkpoints) this.#writingFrom.delete(stored.id);
      const place = places.value[0];
      this.#recordExtentId = place?.extentId ?? 0;
      if (place !== undefined && facts.heirs === undefined) await this.#truncate(this.#streams.metadata, place.extentId);
      return written;
    });
  }

  #truncateLog(startExtentId: number): Promise<void> {
    const { commitLog } = this.#streams;
    return this.#truncate(commitLog, keptFromExtentId(commitLog, { ...this.#state, logStartExtentId: startExtentId }));
  }

  /** Drops extents, one call at a time: each is computed from the list that the one before left. */
  #dropRowData(): Promise<void> {
    return this.#drops.run(() => this.#dropUnused());
  }

  /** Drops extents of row data that no checkpoint refers to, and in which none is being written. */
  async #dropUnused(): Promise<void> {
    if (this.#stopped) return;
    const { rowData } = this.#streams;
    const used = new Set<number>();
    for (const { extentIds } of this.#checkpoints) for (const extentId of extentIds) used.add(extentId);
    const writingFrom = new Set(this.#writingFrom.values());
    const unused = new Set<number>();
    for (const { extentId } of rowData.extents) {
      if (writingFrom.has(0) || writingFrom.has(extentId)) break;
      if (!used.has(extentId)) unused.add(extentId);
    }
    const dropped = await rowData.dropExtents(unused, { timeoutMs: truncateTimeoutMs });
    if (!dropped.ok) this.#warn(rowData.name, dropped.failure);
  }

  /** Truncates a stream. A failure leaves only garbage, which the next truncation takes along. */
  async #truncate(stream: OwnedStream, beforeExtentId: number): Promise<void> {
    if (beforeExtentId === 0 || stream.extents[0]?.extentId === beforeExtentId || !stream.knows(beforeExtentId)) return;
    const truncated = await stream.truncateBefore(beforeExtentId, { timeoutMs: truncateTimeoutMs });
    if (!truncated.ok) this.#warn(stream.name, truncated.failure);
  }

  #warn(stream: string, { reason, message }: Failure): void {
    this.#storage.world.logger.warn("the start of a stream was not released, tried again later", { stream, reason, message });
  }
}
