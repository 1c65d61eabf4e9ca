/**
 * Background work of a range partition, one thing at a time: a full memory table becomes a checkpoint, neighbouring checkpoints are
 * merged. The order is fixed (rule truncateAfterCheckpoint): row data acknowledged, then the metadata record acknowledged, then the log
 * before it and what the merge replaced are dropped.
 */
import { type Failure, type Outcome, ok, type Rules } from "@stamp/base";
import { encodeState, type MemoryTable, mergeDefaults, mergePlan, type PartitionState } from "@stamp/lsm";
import type { OwnedStream } from "@stamp/stream-client";
import type { Checkpoint, Storage } from "./checkpoint-reader.ts";
import { writeCheckpoint } from "./checkpoint-store.ts";
import { mergedVersions } from "./tables.ts";

export interface MaintenanceStreams {
  readonly metadata: OwnedStream;
  readonly commitLog: OwnedStream;
  readonly rowData: OwnedStream;
}

/** A memory table that takes no more commits, and what the log needs of it. */
export interface Frozen {
  readonly table: MemoryTable;
  /** The log from this extent on holds everything after it. */
  readonly logStartExtentId: number;
  readonly lastTicket: number;
  readonly openSnapshots: () => readonly number[];
}

const metadataTimeoutMs = 3_600_000;
const truncateTimeoutMs = 30_000;

export class Maintenance {
  readonly #storage: Storage;
  readonly #streams: MaintenanceStreams;
  readonly #checkpointsMax: number;
  #state: PartitionState;
  /** Newest first. */
  #checkpoints: readonly Checkpoint[];

  constructor(
    storage: Storage,
    streams: MaintenanceStreams,
    opened: { readonly state: PartitionState; readonly checkpoints: readonly Checkpoint[] },
    checkpointsMax: number,
  ) {
    this.#storage = storage;
    this.#streams = streams;
    this.#state = opened.state;
    this.#checkpoints = opened.checkpoints;
    this.#checkpointsMax = checkpointsMax;
  }

  get checkpoints(): readonly Checkpoint[] {
    return this.#checkpoints;
  }
  get state(): PartitionState {
    return this.#state;
  }

  /** Writes the table out. When it resolves well the table is no longer needed. */
  async checkpoint(frozen: Frozen): Promise<Outcome<void>> {
    const rules: Rules = this.#storage.world.rules;
    if (!rules.on("truncateAfterCheckpoint")) await this.#truncateLog(frozen.logStartExtentId);
    const written = await writeCheckpoint(this.#streams.rowData, this.#storage, {
      id: this.#state.nextCheckpointId,
      versions: frozen.table.versions(),
      openSnapshots: frozen.openSnapshots(),
      bottom: this.#checkpoints.length === 0,
    });
    if (!written.ok) return written;
    const checkpoints = written.value === undefined ? this.#checkpoints : [written.value, ...this.#checkpoints];
    const recorded = await this.#record(checkpoints, {
      checkpointedSequence: frozen.table.lastSequence,
      lastTicket: frozen.lastTicket,
      logStartExtentId: frozen.logStartExtentId,
    });
    if (!recorded.ok) return recorded;
    await this.#truncateLog(frozen.logStartExtentId);
    return ok();
  }

  /** One merge, if there is one to do. */
  async merge(openSnapshots: () => readonly number[]): Promise<Outcome<"merged" | "nothing">> {
    const planned = mergePlan(
      this.#checkpoints.map(({ stored }) => stored),
      { ...mergeDefaults, checkpointsMax: this.#checkpointsMax },
    );
    if (planned === undefined) return ok("nothing" as const);
    const ids = new Set(planned);
    const sources = this.#checkpoints.filter(({ stored }) => ids.has(stored.id));
    const oldest = this.#checkpoints.at(-1);
    const written = await writeCheckpoint(this.#streams.rowData, this.#storage, {
      id: this.#state.nextCheckpointId,
      versions: mergedVersions(sources),
      openSnapshots: openSnapshots(),
      bottom: oldest !== undefined && ids.has(oldest.stored.id),
    });
    if (!written.ok) return written;
    const merged = written.value;
    const at = this.#checkpoints.findIndex(({ stored }) => ids.has(stored.id));
    const rest = this.#checkpoints.filter(({ stored }) => !ids.has(stored.id));
    const checkpoints = merged === undefined ? rest : [...rest.slice(0, at), merged, ...rest.slice(at)];
    const recorded = await this.#record(checkpoints, {});
    if (!recorded.ok) return recorded;
    await this.#truncateRowData();
    return ok("merged" as const);
  }

  async #record(checkpoints: readonly Checkpoint[], change: Partial<PartitionState>): Promise<Outcome<void>> {
    const state: PartitionState = {
      ...this.#state,
      ...change,
      ownerEpoch: this.#streams.metadata.ownerEpoch,
      recordNumber: this.#state.recordNumber + 1,
      nextCheckpointId: this.#state.nextCheckpointId + 1,
      checkpoints: checkpoints.map(({ stored }) => stored),
    };
    const record = encodeState(state, this.#storage.world.digest.crc32c);
    const places = await this.#streams.metadata.append([record], { timeoutMs: metadataTimeoutMs });
    if (!places.ok) return places;
    this.#state = state;
    this.#checkpoints = checkpoints;
    const place = places.value[0];
    if (place !== undefined) await this.#truncate(this.#streams.metadata, place.extentId);
    return ok();
  }

  #truncateLog(startExtentId: number): Promise<void> {
    return this.#truncate(this.#streams.commitLog, startExtentId);
  }

  /** Extents before the first that a checkpoint refers to. */
  async #truncateRowData(): Promise<void> {
    const { rowData } = this.#streams;
    const used = new Set<number>();
    for (const { stored, index } of this.#checkpoints) {
      for (const place of stored.indexPlaces) used.add(place.extentId);
      for (const { place } of index.blocks) used.add(place.extentId);
    }
    const first = rowData.extents.find(({ extentId }) => used.has(extentId));
    if (first !== undefined) await this.#truncate(rowData, first.extentId);
  }

  /** What stays is only garbage: the next truncation takes it along. */
  async #truncate(stream: OwnedStream, beforeExtentId: number): Promise<void> {
    if (beforeExtentId === 0 || stream.extents[0]?.extentId === beforeExtentId || !stream.knows(beforeExtentId)) return;
    const truncated = await stream.truncateBefore(beforeExtentId, { timeoutMs: truncateTimeoutMs });
    if (!truncated.ok) this.#warn(stream.name, truncated.failure);
  }

  #warn(stream: string, { reason, message }: Failure): void {
    this.#storage.world.logger.warn("stream not truncated, later", { stream, reason, message });
  }
}
