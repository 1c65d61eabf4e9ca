/**
 * Transactions on streams: state in, changes and the keys they depend on out. Every one of an owner checks the owner epoch here, and its
 * stream's key is a condition of it, so the check holds at the moment of the commit (model/append.pml FIX 2 and 3).
 */
import type { ExtentId, Outcome, OwnerEpoch, Rules } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import { streamKey } from "./codec.ts";
import type { ExtentRecord, SegmentReference, StreamRecord } from "./records.ts";
import { segmentExtentsMax, segmentsPerStreamMax } from "./records.ts";
import type { Change, Plan, StreamState } from "./state.ts";

/** At most so many extents are dropped in one transaction: it stays under 100 keys. */
export const dropsPerTransactionMax = 64;
export const streamNameMax = 512;

/** The rule `ownerEpochAtManager`: a change or an answer is for the owner that is recorded, nobody else. */
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

/** Changes nothing: proves at the store that the term and the record that an answer is made of still hold. */
export const planConfirm = (name: string): Plan => ({ changes: [], reads: [streamKey(name)] });

export function planCreateStream(state: StreamState, name: string, epoch: OwnerEpoch): Outcome<Plan> {
  if (name === "" || name.length > streamNameMax) {
    return refused("invalidArgument", "badRequest", `a stream name has 1 to ${streamNameMax} characters`);
  }
  const existing = state.stream(name);
  if (existing === undefined) {
    return ok({ changes: [{ kind: "stream", record: { name, ownerEpoch: epoch, segments: [], skipCount: 0, tail: [] } }], reads: [] });
  }
  if (existing.ownerEpoch === epoch) return ok(planConfirm(name));
  return refused("alreadyExists", "streamExists", `stream ${name} exists with owner epoch ${existing.ownerEpoch}`);
}

/** Records the epoch, always by a write, and in the same transaction takes the last extent out of the hands of every lower owner. */
export function planOpenStream(state: StreamState, name: string, epoch: OwnerEpoch, create: boolean, rules: Rules): Outcome<Plan> {
  const record = state.stream(name);
  if (record === undefined) {
    return create ? planCreateStream(state, name, epoch) : refused("notFound", "streamNotFound", `there is no stream ${name}`);
  }
  if (epoch < record.ownerEpoch) {
    const owner = checkOwner(record, epoch, rules);
    if (!owner.ok) return owner;
  }
  const changes: Change[] = [{ kind: "stream", record: { ...record, ownerEpoch: epoch } }];
  const last = lastExtent(state, name);
  if (last?.phase === "open") changes.push({ kind: "extent", record: { ...last, phase: "sealing" } });
  return ok({ changes, reads: [] });
}

export function lastExtent(state: StreamState, name: string): ExtentRecord | undefined {
  const id = state.extentsOf(name).at(-1);
  return id === undefined ? undefined : state.extent(id);
}

/** The stream's record with one more extent; a full tail becomes a segment with the number `segmentId`. */
export function withExtent(record: StreamRecord, id: ExtentId, segmentId: number | undefined): Outcome<Change[]> {
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

export interface Truncation {
  readonly plan: Plan;
  /** Nothing is left to drop. */
  readonly done: boolean;
}

/** Drops the extents before `before` from the front of the list; repeat it until `done`. */
export function planTruncate(state: StreamState, name: string, epoch: OwnerEpoch, before: ExtentId, rules: Rules): Outcome<Truncation> {
  const owned = ownedStream(state, name, epoch, rules);
  if (!owned.ok) return owned;
  const extents = state.extentsOf(name);
  const keepFrom = extents.indexOf(before);
  if (keepFrom < 0) return refused("notFound", "unknownExtent", `extent ${before} is not in stream ${name}`);
  if (keepFrom === 0) return ok({ plan: planConfirm(name), done: true });
  const dropped = extents.slice(0, Math.min(keepFrom, dropsPerTransactionMax));
  const changes: Change[] = [...withoutFront(owned.value, dropped.length), ...dropChanges(state, dropped)];
  return ok({ plan: { changes, reads: [] }, done: dropped.length === keepFrom });
}

/** Empties the list in steps, then removes the stream; repeat it until `done`. */
export function planDeleteStream(state: StreamState, name: string, epoch: OwnerEpoch, rules: Rules): Outcome<Truncation> {
  if (state.stream(name) === undefined) return ok({ plan: { changes: [], reads: [streamKey(name)] }, done: true });
  const owned = ownedStream(state, name, epoch, rules);
  if (!owned.ok) return owned;
  const extents = state.extentsOf(name);
  const dropped = extents.slice(0, dropsPerTransactionMax);
  const done = dropped.length === extents.length;
  const front = withoutFront(owned.value, dropped.length);
  const stream: Change[] = done ? [...front.filter((change) => change.kind !== "stream"), { kind: "removeStream", name }] : front;
  return ok({ plan: { changes: [...stream, ...dropChanges(state, dropped)], reads: [] }, done });
}

/** An extent that no list holds any more is dropped; one that another list shares stays. */
function dropChanges(state: StreamState, ids: readonly ExtentId[]): Change[] {
  const changes: Change[] = [];
  for (const id of ids) {
    const extent = state.extent(id);
    if (extent !== undefined && state.references(id) === 1) changes.push({ kind: "extent", record: { ...extent, phase: "dropped" } });
  }
  return changes;
}

function withoutFront(record: StreamRecord, count: number): Change[] {
  const changes: Change[] = [];
  let segments = record.segments;
  let skipCount = segments.length > 0 ? record.skipCount + count : 0;
  let fromTail = segments.length > 0 ? 0 : count;
  for (let first = segments[0]; first !== undefined && skipCount >= first.count; first = segments[0]) {
    skipCount -= first.count;
    segments = segments.slice(1);
    changes.push({ kind: "removeSegment", id: first.id });
    if (segments.length === 0) {
      fromTail = skipCount;
      skipCount = 0;
    }
  }
  changes.push({ kind: "stream", record: { ...record, segments, skipCount, tail: record.tail.slice(fromTail) } });
  return changes;
}
