/**
 * Transactions on streams: state in, changes and the keys they depend on out. Every one of an owner checks the owner epoch here, and its
 * stream's key is a condition of it, so the check holds at the moment of the commit (model/append.pml FIX 2 and 3).
 */
import type { ExtentId, Outcome, OwnerEpoch, Rules } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import { streamKey } from "./codec.ts";
import type { ExtentRecord, SegmentReference, StreamRecord } from "./records.ts";
import { segmentExtentsMax, segmentsPerStreamMax } from "./records.ts";
import type { RecordChange, TransactionPlan } from "./state/changes.ts";
import type { StreamState } from "./state.ts";

/** Most extents and segments that are dropped in one transaction: it stays under 100 keys. */
export const dropsPerTransactionMax = 64;
export const streamNameMax = 512;

/** Refuses another owner than the recorded one (rule `ownerEpochAtManager`). */
export function checkOwner(record: StreamRecord, epoch: OwnerEpoch, rules: Rules): Outcome<void> {
  if (record.ownerEpoch === epoch || !rules.on("ownerEpochAtManager")) return ok();
  const current = { currentOwnerEpoch: String(record.ownerEpoch) };
  return epoch < record.ownerEpoch
    ? refused("failedPrecondition", "staleOwnerEpoch", `stream ${record.name} has owner epoch ${record.ownerEpoch}, not ${epoch}`, current)
    : refused("failedPrecondition", "staleOwnerEpoch", `stream ${record.name} was never opened with owner epoch ${epoch}`, current);
}

export function ownedStream(state: StreamState, name: string, epoch: OwnerEpoch, rules: Rules): Outcome<StreamRecord> {
  const record = state.stream(name);
  if (record === undefined) return refused("notFound", "streamNotFound", `there is no stream ${name}`);
  const owner = checkOwner(record, epoch, rules);
  return owner.ok ? ok(record) : owner;
}

export function checkName(name: string): Outcome<void> {
  if (name !== "" && name.length <= streamNameMax) return ok();
  return refused("invalidArgument", "badRequest", `a stream name has 1 to ${streamNameMax} characters`);
}

/** Checks the name and epoch of a new stream. Epoch 0 stands for "no such stream" in MultiModify. */
export function checkNew(name: string, epoch: OwnerEpoch): Outcome<void> {
  return epoch > 0 ? checkName(name) : refused("invalidArgument", "badRequest", `stream ${name}: owner epochs begin with 1`);
}

/** Changes nothing: proves at the store that the term and the records that an answer is made of still hold. */
export const planConfirm = (...names: readonly string[]): TransactionPlan => ({ changes: [], reads: names.map(streamKey) });

export function planCreateStream(state: StreamState, name: string, epoch: OwnerEpoch): Outcome<TransactionPlan> {
  const named = checkNew(name, epoch);
  if (!named.ok) return named;
  const existing = state.stream(name);
  if (existing === undefined) {
    return ok({ changes: [{ kind: "stream", record: { name, ownerEpoch: epoch, segments: [], skipCount: 0, tail: [] } }], reads: [] });
  }
  if (existing.ownerEpoch === epoch) return ok(planConfirm(name));
  return refused("alreadyExists", "streamExists", `stream ${name} exists with owner epoch ${existing.ownerEpoch}`);
}

/** Records the epoch, always by a write, and in the same transaction takes the last extent out of the hands of every lower owner. */
export function planOpenStream(
  state: StreamState,
  name: string,
  epoch: OwnerEpoch,
  create: boolean,
  rules: Rules,
): Outcome<TransactionPlan> {
  const record = state.stream(name);
  if (record === undefined) {
    return create ? planCreateStream(state, name, epoch) : refused("notFound", "streamNotFound", `there is no stream ${name}`);
  }
  if (epoch < record.ownerEpoch) {
    const owner = checkOwner(record, epoch, rules);
    if (!owner.ok) return owner;
  }
  const changes: RecordChange[] = [{ kind: "stream", record: { ...record, ownerEpoch: epoch } }];
  const last = lastExtent(state, name);
  if (last?.phase === "open") changes.push({ kind: "extent", record: { ...last, phase: "sealing" } });
  return ok({ changes, reads: [] });
}

/** Plans the opening of several streams of one owner: all of them, or none. */
export function planOpenStreams(
  state: StreamState,
  names: readonly string[],
  epoch: OwnerEpoch,
  create: boolean,
  rules: Rules,
): Outcome<TransactionPlan> {
  const changes: RecordChange[] = [];
  const reads: string[] = [];
  for (const name of names) {
    const plan = planOpenStream(state, name, epoch, create, rules);
    if (!plan.ok) return plan;
    changes.push(...plan.value.changes);
    reads.push(...plan.value.reads);
  }
  return ok({ changes, reads });
}

export function lastExtent(state: StreamState, name: string): ExtentRecord | undefined {
  const id = state.list(name).last;
  return id === undefined ? undefined : state.extent(id);
}

/** Returns the stream's record with one more extent; a full tail becomes a segment with the number `segmentId`. */
export function withExtent(record: StreamRecord, id: ExtentId, segmentId: number | undefined): Outcome<RecordChange[]> {
  if (record.tail.length < segmentExtentsMax) return ok([{ kind: "stream", record: { ...record, tail: [...record.tail, id] } }]);
  if (record.segments.length >= segmentsPerStreamMax) {
    return refused("resourceExhausted", "noPlacement", `stream ${record.name} has ${segmentsPerStreamMax} full segments: truncate it`);
  }
  if (segmentId === undefined) return refused("aborted", "conflict", `the tail of stream ${record.name} is full: it needs a segment`);
  const segments: SegmentReference[] = [...record.segments, { id: segmentId, count: record.tail.length }];
  return ok([
    { kind: "segment", id: segmentId, extents: record.tail },
    { kind: "stream", record: { ...record, segments, tail: [id] } },
  ]);
}

/** Drops the extents before `before` from the front of the list. What no list holds then is garbage (`planDropUnreferenced`). */
export function planTruncate(
  state: StreamState,
  name: string,
  epoch: OwnerEpoch,
  before: ExtentId,
  rules: Rules,
): Outcome<TransactionPlan> {
  const owned = ownedStream(state, name, epoch, rules);
  if (!owned.ok) return owned;
  const keepFrom = state.list(name).indexOf(before);
  if (keepFrom < 0) return refused("notFound", "unknownExtent", `extent ${before} is not in stream ${name}`);
  if (keepFrom === 0) return ok(planConfirm(name));
  return ok({ changes: [{ kind: "stream", record: withoutFront(owned.value, keepFrom) }], reads: [] });
}

export function planDeleteStream(state: StreamState, name: string, epoch: OwnerEpoch, rules: Rules): Outcome<TransactionPlan> {
  if (state.stream(name) === undefined) return ok(planConfirm(name));
  const owned = ownedStream(state, name, epoch, rules);
  return owned.ok ? ok({ changes: [{ kind: "removeStream", name }], reads: [] }) : owned;
}

/**
 * Records as dropped what no list holds: only that is ever deleted. A list can only get an extent from another list, so what no committed
 * list holds can't come back. `wallMs`: when, for the grace; undefined: it is not recorded.
 */
export function planDropUnreferenced(
  state: StreamState,
  extents: readonly ExtentId[],
  segments: readonly number[],
  wallMs: number | undefined,
): Outcome<TransactionPlan> {
  const changes: RecordChange[] = [];
  for (const id of extents) {
    const extent = state.extent(id);
    if (extent === undefined || !state.unreferenced().has(id)) continue;
    changes.push({ kind: "extent", record: { ...extent, phase: "dropped", ...(wallMs === undefined ? {} : { droppedAtMs: wallMs }) } });
  }
  for (const id of segments) if (state.looseSegments().has(id)) changes.push({ kind: "removeSegment", id });
  return ok({ changes, reads: [] });
}

function withoutFront(record: StreamRecord, count: number): StreamRecord {
  if (record.segments.length === 0) return { ...record, tail: record.tail.slice(count) };
  let skipCount = record.skipCount + count;
  let gone = 0;
  for (const segment of record.segments) {
    if (skipCount < segment.count) break;
    skipCount -= segment.count;
    gone += 1;
  }
  const segments = record.segments.slice(gone);
  return segments.length > 0
    ? { ...record, segments, skipCount }
    : { ...record, segments, skipCount: 0, tail: record.tail.slice(skipCount) };
}
