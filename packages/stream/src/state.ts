/**
 * The stream manager's memory: exactly what is committed in the metadata store under its term. It changes only by `apply`, after the
 * transaction was answered; whoever plans a transaction reads nothing else. Each record carries the version of its key, which becomes a
 * condition of every transaction that depends on it.
 */
import type { Checksum, ExtentId, Outcome } from "@stamp/base";
import { assert, OrderedIds, ok, present, refused } from "@stamp/base";
import type { StoredRecord } from "./codec.ts";
import { decodeStored, encodeStored, recordKey } from "./codec.ts";
import { ExtentCounts, type PhaseCounts } from "./extent-counts.ts";
import { ExtentList } from "./extent-list.ts";
import type { ExtentRecord, NodeRecord, StreamRecord } from "./records.ts";
import { ReferenceCounts } from "./reference-counts.ts";
import {
  changedKey,
  extentOfKey,
  isRemoval,
  keysOf,
  type PlannedTransaction,
  type Removal,
  removalOf,
  type StoredEntry,
  type TransactionPlan,
} from "./state/changes.ts";
import { CompactRecords } from "./state/compact-records.ts";
import { ExtentIndex } from "./state/extent-index.ts";

interface StreamEntry {
  readonly record: StreamRecord;
  readonly list: ExtentList;
}

export class StreamState {
  /** Versions of all keys except those of extents. */
  readonly #versions = new Map<string, number>();
  readonly #extentVersions = new Map<ExtentId, number>();
  readonly #streams = new Map<string, StreamEntry>();
  readonly #segments = new Map<number, readonly ExtentId[]>();
  readonly #extents = new Map<ExtentId, ExtentRecord>();
  readonly #order = new OrderedIds<ExtentId>((id) => this.#extents.has(id));
  readonly #nodes = new Map<string, NodeRecord>();
  readonly #references = new ReferenceCounts();
  readonly #segmentReferences = new Map<number, number>();
  readonly #index = new ExtentIndex();
  readonly #looseSegments = new Set<number>();
  readonly #counts = new ExtentCounts();
  readonly #compact = new CompactRecords((nodeId) => this.#nodes.get(nodeId));
  /** Bytes of whole segments whose extents are all sealed. */
  #segmentBytes = new WeakMap<readonly ExtentId[], number>();
  #nextId = 1;

  /** Streams that were read and whose lists are not put together yet, because other keys are still being read; undefined afterwards. */
  #unlisted: Map<string, { readonly record: StreamRecord; readonly version: number }> | undefined = new Map();

  /** Builds the state from every key below `sm/`, all from one moment. */
  static load(entries: Iterable<StoredEntry>, checksum: Checksum): Outcome<StreamState> {
    const state = new StreamState();
    const taken = state.take(entries, checksum);
    if (!taken.ok) return taken;
    const complete = state.complete();
    return complete.ok ? ok(state) : complete;
  }

  /**
   * Applies changes that others wrote: keys as they are now, version 0 when they were deleted. Before `complete` the
   * entries may be from different moments, as long as those of the last one are in the end. Afterwards each call has
   * everything that was written between two moments.
   */
  take(entries: Iterable<StoredEntry>, checksum: Checksum): Outcome<void> {
    const streams: { record: StreamRecord; version: number }[] = [];
    const gone: Removal[] = [];
    for (const { key, value, version } of entries) {
      if (version === 0) {
        const removal = removalOf(key);
        if (removal === undefined) return refused("dataLoss", "damaged", `key ${key} was deleted`);
        gone.push(removal);
        continue;
      }
      const stored = decodeStored(key, value, checksum);
      if (!stored.ok) return stored;
      // Lists are put together when all segments are known.
      if (stored.value.kind === "stream") streams.push({ record: stored.value.record, version });
      else this.#put(stored.value, version);
    }
    for (const { record, version } of streams) {
      if (this.#unlisted !== undefined) this.#unlisted.set(record.name, { record, version });
      else {
        const put = this.#putStream(record, version);
        if (!put.ok) return put;
      }
    }
    // In this order: who refers to another goes first.
    for (const kind of ["removeStream", "removeSegment", "removeExtent"] as const) {
      for (const removal of gone) {
        if (removal.kind !== kind) continue;
        if (removal.kind === "removeStream") this.#unlisted?.delete(removal.name);
        if (this.versionOf(changedKey(removal)) > 0) this.#remove(removal);
      }
    }
    return ok();
  }

  /**
   * Everything was read, as it was at one moment: puts the lists together, until so many extents are in them. True when that is all; else call it
   * again. Refused with `damaged` when something is missing.
   */
  complete(extentsMax: number = Number.POSITIVE_INFINITY): Outcome<boolean> {
    let extents = 0;
    for (const [name, { record, version }] of this.#unlisted ?? []) {
      if (extents >= extentsMax) return ok(false);
      const put = this.#putStream(record, version);
      if (!put.ok) return put;
      this.#unlisted?.delete(name);
      extents += this.list(name).length;
    }
    this.#unlisted = undefined;
    return ok(true);
  }

  #putStream(record: StreamRecord, version: number): Outcome<void> {
    for (const segment of record.segments) {
      if (this.#segments.get(segment.id)?.length !== segment.count) {
        return refused("dataLoss", "damaged", `segment ${segment.id} of stream ${record.name} is missing or has another length`);
      }
    }
    const before = this.list(record.name);
    this.#put({ kind: "stream", record }, version);
    for (const { extents, from } of this.list(record.name).pieces) {
      // A segment that was in the list was looked at then; it may have had extents truncated away in front, never more.
      if (before.pieces.some((piece) => piece.extents === extents && piece.from <= from && extents !== record.tail)) continue;
      const { bytes, allSealed, lost } = this.#sealedBytesOf(extents, from);
      if (lost !== undefined) return refused("dataLoss", "damaged", `extent ${lost} of stream ${record.name} has no record`);
      if (from === 0 && extents !== record.tail && allSealed) this.#segmentBytes.set(extents, bytes);
    }
    return ok();
  }

  /** Number that the next extent gets; all numbers below are used up. */
  get nextId(): number {
    return this.#nextId;
  }

  /** True if there is no stream, extent or node, as in a new stamp. */
  get isEmpty(): boolean {
    return this.#streams.size === 0 && this.#extents.size === 0 && this.nodes().next().done === true;
  }

  get streamCount(): number {
    return this.#streams.size;
  }

  get extentCount(): number {
    return this.#extents.size;
  }

  /** Kept, not counted: as cheap for a million extents as for one. */
  get phaseCounts(): PhaseCounts {
    return this.#counts.phases;
  }

  /** Number of extents that a person sealed although acknowledged data may be lost. Kept as well. */
  get lossyCount(): number {
    return this.#counts.lossy;
  }

  /** Number of extents that are stored as fragments. Kept as well. */
  get codedCount(): number {
    return this.#counts.coded;
  }

  /**
   * Returns the number of extents that are not dropped and have a replica or a fragment on this node; one that is being made counts. Kept as
   * well.
   */
  replicasOn(nodeId: string): number {
    return this.#counts.replicasOn(nodeId);
  }

  /** Returns the number of extents that are being allocated, open or being sealed and have a replica on this node. Kept as well. */
  unsealedOn(nodeId: string): number {
    return this.#counts.unsealedOn(nodeId);
  }

  /**
   * Returns the bytes of the sealed extents of a list. Whole segments were added up before: a list of a million extents
   * costs as much as its segments.
   */
  sealedBytes(name: string): number {
    const { segments, tail } = this.list(name);
    let bytes = this.#sealedBytesOf(tail, 0).bytes;
    for (const { extents, from } of segments)
      bytes += from === 0 ? this.#bytesOfSegment(extents) : this.#sealedBytesOf(extents, from).bytes;
    return bytes;
  }

  #bytesOfSegment(extents: readonly ExtentId[]): number {
    const known = this.#segmentBytes.get(extents);
    if (known !== undefined) return known;
    const { bytes, allSealed } = this.#sealedBytesOf(extents, 0);
    if (allSealed) this.#segmentBytes.set(extents, bytes);
    return bytes;
  }

  /** Returns the sealed bytes; `lost`: an extent without a record. */
  #sealedBytesOf(extents: readonly ExtentId[], from: number) {
    let bytes = 0;
    let allSealed = true;
    let lost: ExtentId | undefined;
    for (let at = from; at < extents.length; at++) {
      const extent = this.#extents.get(extents[at] as ExtentId);
      if (extent === undefined) lost ??= extents[at];
      if (extent?.sealedLengthBytes === undefined) allSealed = false;
      else bytes += extent.sealedLengthBytes;
    }
    return { bytes, allSealed, lost };
  }

  stream(name: string): StreamRecord | undefined {
    return this.#streams.get(name)?.record;
  }

  /** Returns the extents of a stream; empty: there is no such stream. */
  list(name: string): ExtentList {
    return this.#streams.get(name)?.list ?? ExtentList.empty;
  }

  /** Returns the whole list, put together: not for a long one on a path that is hot. */
  extentsOf(name: string): readonly ExtentId[] {
    return this.list(name).slice(0);
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

  /** Returns the first `limit` extents with higher ids, in the order of ids. */
  extentsAfter(id: number, limit: number): ExtentRecord[] {
    return this.#order.after(id, limit).map((each) => present(this.#extents.get(each), "an extent in the order of ids"));
  }

  /** Returns the extents in the phases `allocating`, `open` and `sealing`. */
  unsealed(): ReadonlySet<ExtentId> {
    return this.#index.unsealed;
  }

  /** Returns the `sealed` extents with a replica that is not known to be complete, or with a copy that was begun. */
  incomplete(): ReadonlySet<ExtentId> {
    return this.#index.incomplete;
  }

  /** Returns the extents with an attempt (coding, repair of a fragment, decoding) that was begun. */
  attempts(): ReadonlySet<ExtentId> {
    return this.#index.attempts;
  }

  /** Returns the extents that are `dropped`, or have replicas or fragments that were replaced. */
  garbage(): ReadonlySet<ExtentId> {
    return this.#index.garbage;
  }

  /** Returns the extents that are `open`, `sealing` or `sealed` and in no list: nobody can bring them back. */
  unreferenced(): ReadonlySet<ExtentId> {
    return this.#index.unreferenced;
  }

  /** Segments that no list refers to. */
  looseSegments(): ReadonlySet<number> {
    return this.#looseSegments;
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

  /** Returns the number of lists that hold the extent. */
  references(id: ExtentId): number {
    return this.#references.of(id);
  }

  versionOf(key: string): number {
    const id = extentOfKey(key);
    return (id === undefined ? this.#versions.get(key) : this.#extentVersions.get(id)) ?? 0;
  }

  transaction(plan: TransactionPlan, checksum: Checksum): PlannedTransaction {
    const keys = new Set(keysOf(plan));
    return {
      conditions: [...keys].map((key) => ({ key, version: this.versionOf(key) })),
      writes: plan.changes.map((change) =>
        isRemoval(change) ? { key: changedKey(change) } : { key: recordKey(change), value: encodeStored(change, checksum) },
      ),
    };
  }

  /** Notes that the plan was committed under this version. */
  apply(plan: TransactionPlan, version: number): void {
    // A segment before the stream that refers to it; a list that gets an extent before the one that loses it.
    for (const change of plan.changes) if (!isRemoval(change) && change.kind !== "stream") this.#put(change, version);
    for (const change of plan.changes) if (change.kind === "stream") this.#put(change, version);
    for (const change of plan.changes) if (isRemoval(change)) this.#remove(change);
  }

  #put(stored: StoredRecord, version: number): void {
    if (stored.kind === "extent") this.#extentVersions.set(stored.record.id, version);
    else this.#versions.set(recordKey(stored), version);
    switch (stored.kind) {
      case "ids":
        this.#nextId = stored.next;
        return;
      case "segment":
        this.#segments.set(stored.id, stored.extents);
        if (!this.#segmentReferences.has(stored.id)) this.#looseSegments.add(stored.id);
        return;
      case "extent": {
        const stream = this.#streams.get(stored.record.stream)?.record.name ?? stored.record.stream;
        const record = this.#compact.extent(stored.record, stream);
        const before = this.#extents.get(record.id);
        this.#counts.changed(before, record);
        if (before === undefined) this.#order.add(record.id);
        // A length that was told to nobody is made anew, which is rare: everything may be added up again.
        else if (before.sealedLengthBytes !== undefined && before.sealedLengthBytes !== record.sealedLengthBytes)
          this.#segmentBytes = new WeakMap();
        this.#extents.set(record.id, record);
        this.#index.put(record, this.#references.of(record.id) > 0);
        return;
      }
      case "node":
        this.#nodes.set(stored.record.nodeId, stored.record);
        return;
      case "stream": {
        const { record } = stored;
        const before = this.#streams.get(record.name);
        const after: StreamEntry = { record, list: this.#list(record) };
        this.#streams.set(record.name, after);
        this.#recount(before, after);
      }
    }
  }

  #remove(removal: Removal): void {
    if (removal.kind === "removeExtent") this.#extentVersions.delete(removal.id);
    else this.#versions.delete(changedKey(removal));
    switch (removal.kind) {
      case "removeStream": {
        const before = this.#streams.get(removal.name);
        this.#streams.delete(removal.name);
        this.#recount(before, undefined);
        return;
      }
      case "removeExtent":
        assert(this.references(removal.id) === 0, "an extent that a list holds is not forgotten");
        this.#counts.changed(this.#extents.get(removal.id), undefined);
        this.#extents.delete(removal.id);
        this.#order.removed();
        this.#index.remove(removal.id);
        return;
      case "removeSegment":
        assert(!this.#segmentReferences.has(removal.id), "a segment that a list refers to is not removed");
        this.#segments.delete(removal.id);
        this.#looseSegments.delete(removal.id);
    }
  }

  #list(record: StreamRecord): ExtentList {
    const segments = record.segments.map(({ id }, index) => {
      const extents = present(this.#segments.get(id), "a segment that a stream refers to");
      return { extents, from: index === 0 ? record.skipCount : 0 };
    });
    return new ExtentList(segments, record.tail);
  }

  /** Counts references anew where a list changed: lists may be long, changes are small. */
  #recount(before: StreamEntry | undefined, after: StreamEntry | undefined): void {
    const old = new Map((before?.list.segments ?? []).map(({ extents, from }) => [extents, from]));
    const lost: { readonly extents: readonly ExtentId[]; readonly from: number; readonly to: number }[] = [];
    for (const { extents, from } of after?.list.segments ?? []) {
      const had = old.get(extents);
      old.delete(extents);
      if (had === undefined) this.#count(extents, from, extents.length, 1);
      else if (had > from) this.#count(extents, from, had, 1);
      else if (had < from) lost.push({ extents, from: had, to: from });
    }
    for (const [extents, from] of old) lost.push({ extents, from, to: extents.length });
    const [oldTail, newTail] = [before?.list.tail ?? [], after?.list.tail ?? []];
    let same = 0;
    while (same < oldTail.length && oldTail[same] === newTail[same]) same += 1;
    this.#count(newTail, same, newTail.length, 1);
    lost.push({ extents: oldTail, from: same, to: oldTail.length });
    for (const { extents, from, to } of lost) this.#count(extents, from, to, -1);
    if (before?.record.segments !== after?.record.segments) {
      for (const { id } of after?.record.segments ?? []) this.#countSegment(id, 1);
      for (const { id } of before?.record.segments ?? []) this.#countSegment(id, -1);
    }
  }

  #count(extents: readonly ExtentId[], from: number, to: number, step: 1 | -1): void {
    for (let at = from; at < to; at++) {
      const id = extents[at] as ExtentId;
      if (this.#references.change(id, step) > 0) {
        if (this.#index.unreferenced.size > 0) this.#index.unreferenced.delete(id);
        continue;
      }
      const phase = this.#extents.get(id)?.phase;
      if (phase !== undefined && phase !== "allocating" && phase !== "dropped") this.#index.unreferenced.add(id);
    }
  }

  #countSegment(id: number, step: 1 | -1): void {
    const count = (this.#segmentReferences.get(id) ?? 0) + step;
    if (count > 0) {
      this.#segmentReferences.set(id, count);
      this.#looseSegments.delete(id);
    } else {
      this.#segmentReferences.delete(id);
      this.#looseSegments.add(id);
    }
  }
}
