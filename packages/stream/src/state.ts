/**
 * The stream manager's memory: exactly what is committed in the metadata store under its term. It changes only by `apply`, after the
 * transaction was answered; whoever plans a transaction reads nothing else. Each record carries the version of its key, which becomes a
 * condition of every transaction that depends on it.
 */
import type { Checksum, ExtentId, Outcome } from "@stamp/base";
import { assert, ok, present, refused } from "@stamp/base";
import type { StoredRecord } from "./codec.ts";
import { decodeStored, encodeStored, extentKey, keyOf, segmentKey, streamKey } from "./codec.ts";
import type { ExtentRecord, NodeRecord, StreamRecord } from "./records.ts";

export type Removal =
  | { readonly kind: "removeStream"; readonly name: string }
  | { readonly kind: "removeExtent"; readonly id: ExtentId }
  | { readonly kind: "removeSegment"; readonly id: number };

/** A record that is written, or one that is removed. */
export type Change = StoredRecord | Removal;

export interface Plan {
  readonly changes: readonly Change[];
  /** Keys that were only read; those that are changed are conditions anyway. */
  readonly reads: readonly string[];
}

export interface PlannedTransaction {
  readonly conditions: { readonly key: string; readonly version: number }[];
  readonly writes: { readonly key: string; readonly value?: Uint8Array }[];
}

interface StreamEntry {
  readonly record: StreamRecord;
  /** The whole list. */
  readonly extents: readonly ExtentId[];
}

export function changedKey(change: Change): string {
  switch (change.kind) {
    case "removeStream":
      return streamKey(change.name);
    case "removeExtent":
      return extentKey(change.id);
    case "removeSegment":
      return segmentKey(change.id);
    default:
      return keyOf(change);
  }
}

const isRemoval = (change: Change): change is Removal =>
  change.kind === "removeStream" || change.kind === "removeExtent" || change.kind === "removeSegment";

export const keysOf = (plan: Plan): string[] => [...plan.changes.map(changedKey), ...plan.reads];

export class StreamState {
  readonly #versions = new Map<string, number>();
  readonly #streams = new Map<string, StreamEntry>();
  readonly #segments = new Map<number, readonly ExtentId[]>();
  readonly #extents = new Map<ExtentId, ExtentRecord>();
  readonly #nodes = new Map<string, NodeRecord>();
  readonly #references = new Map<ExtentId, number>();
  readonly #unsealed = new Set<ExtentId>();
  readonly #incomplete = new Set<ExtentId>();
  readonly #garbage = new Set<ExtentId>();
  #nextId = 1;

  /** From every key below `sm/`. */
  static load(
    entries: Iterable<{ readonly key: string; readonly value: Uint8Array; readonly version: number }>,
    checksum: Checksum,
  ): Outcome<StreamState> {
    const state = new StreamState();
    const streams: { record: StreamRecord; version: number }[] = [];
    for (const { key, value, version } of entries) {
      const stored = decodeStored(key, value, checksum);
      if (!stored.ok) return stored;
      // Lists are put together when all segments are known.
      if (stored.value.kind === "stream") streams.push({ record: stored.value.record, version });
      else state.#put(stored.value, version);
    }
    for (const { record, version } of streams) {
      for (const segment of record.segments) {
        if (state.#segments.get(segment.id)?.length !== segment.count) {
          return refused("dataLoss", "damaged", `segment ${segment.id} of stream ${record.name} is missing or has another length`);
        }
      }
      state.#put({ kind: "stream", record }, version);
      for (const id of state.extentsOf(record.name)) {
        if (!state.#extents.has(id)) return refused("dataLoss", "damaged", `extent ${id} of stream ${record.name} has no record`);
      }
    }
    return ok(state);
  }

  /** Every number below it is used up. */
  get nextId(): number {
    return this.#nextId;
  }

  get streamCount(): number {
    return this.#streams.size;
  }

  get extentCount(): number {
    return this.#extents.size;
  }

  stream(name: string): StreamRecord | undefined {
    return this.#streams.get(name)?.record;
  }

  extentsOf(name: string): readonly ExtentId[] {
    return this.#streams.get(name)?.extents ?? [];
  }

  streamNames(): IterableIterator<string> {
    return this.#streams.keys();
  }

  extent(id: ExtentId): ExtentRecord | undefined {
    return this.#extents.get(id);
  }

  extents(): IterableIterator<ExtentRecord> {
    return this.#extents.values();
  }

  /** `allocating`, `open`, `sealing`. */
  unsealed(): ReadonlySet<ExtentId> {
    return this.#unsealed;
  }

  /** `sealed`, and a replica is not known to be complete or a copy was begun. */
  incomplete(): ReadonlySet<ExtentId> {
    return this.#incomplete;
  }

  /** `dropped`, or with replicas that repair replaced. */
  garbage(): ReadonlySet<ExtentId> {
    return this.#garbage;
  }

  node(nodeId: string): NodeRecord | undefined {
    return this.#nodes.get(nodeId);
  }

  nodes(): IterableIterator<NodeRecord> {
    return this.#nodes.values();
  }

  segment(id: number): readonly ExtentId[] | undefined {
    return this.#segments.get(id);
  }

  /** In how many lists it is. */
  references(id: ExtentId): number {
    return this.#references.get(id) ?? 0;
  }

  versionOf(key: string): number {
    return this.#versions.get(key) ?? 0;
  }

  transaction(plan: Plan, checksum: Checksum): PlannedTransaction {
    const keys = new Set(keysOf(plan));
    return {
      conditions: [...keys].map((key) => ({ key, version: this.versionOf(key) })),
      writes: plan.changes.map((change) =>
        isRemoval(change) ? { key: changedKey(change) } : { key: keyOf(change), value: encodeStored(change, checksum) },
      ),
    };
  }

  /** The plan was committed under this version. */
  apply(plan: Plan, version: number): void {
    // A segment before the stream that refers to it, the stream that drops a segment before the segment goes.
    for (const change of plan.changes) if (!isRemoval(change) && change.kind !== "stream") this.#put(change, version);
    for (const change of plan.changes) if (change.kind === "stream") this.#put(change, version);
    for (const change of plan.changes) if (isRemoval(change)) this.#remove(change);
  }

  #put(stored: StoredRecord, version: number): void {
    this.#versions.set(keyOf(stored), version);
    switch (stored.kind) {
      case "ids":
        this.#nextId = stored.next;
        return;
      case "segment":
        this.#segments.set(stored.id, stored.extents);
        return;
      case "extent":
        this.#extents.set(stored.record.id, stored.record);
        this.#index(stored.record);
        return;
      case "node":
        this.#nodes.set(stored.record.nodeId, stored.record);
        return;
      case "stream":
        this.#count(stored.record.name, -1);
        this.#streams.set(stored.record.name, { record: stored.record, extents: this.#list(stored.record) });
        this.#count(stored.record.name, 1);
    }
  }

  #remove(removal: Removal): void {
    this.#versions.delete(changedKey(removal));
    switch (removal.kind) {
      case "removeStream":
        this.#count(removal.name, -1);
        this.#streams.delete(removal.name);
        return;
      case "removeExtent":
        assert(this.references(removal.id) === 0, "an extent that a list holds is not forgotten");
        this.#extents.delete(removal.id);
        for (const index of [this.#unsealed, this.#incomplete, this.#garbage]) index.delete(removal.id);
        return;
      case "removeSegment":
        this.#segments.delete(removal.id);
    }
  }

  #index(extent: ExtentRecord): void {
    const { phase, replicas, repair, removed } = extent;
    const belongs = (index: Set<ExtentId>, inside: boolean): unknown => (inside ? index.add(extent.id) : index.delete(extent.id));
    belongs(this.#unsealed, phase === "allocating" || phase === "open" || phase === "sealing");
    belongs(this.#incomplete, phase === "sealed" && (repair !== undefined || replicas.some((replica) => !replica.complete)));
    belongs(this.#garbage, phase === "dropped" || removed.length > 0);
  }

  #list(record: StreamRecord): readonly ExtentId[] {
    if (record.segments.length === 0) return record.tail;
    const list: ExtentId[] = [];
    record.segments.forEach((segment, index) => {
      const extents = present(this.#segments.get(segment.id), "a segment that a stream refers to");
      list.push(...(index === 0 ? extents.slice(record.skipCount) : extents));
    });
    list.push(...record.tail);
    return list;
  }

  #count(name: string, step: 1 | -1): void {
    for (const id of this.extentsOf(name)) {
      const count = this.references(id) + step;
      if (count === 0) this.#references.delete(id);
      else this.#references.set(id, count);
    }
  }
}
