/**
 * Transactions on extents: allocate, open, seal, complete, repair, forget. State in, changes out; what must hold is checked here again
 * by everyone who has waited, and the keys it was read from are conditions of the transaction.
 */
import type { ExtentId, Outcome, OwnerEpoch, Rules } from "@stamp/base";
import { assert, extentVersion, ok, refused } from "@stamp/base";
import { extentKey, streamKey } from "./codec.ts";
import { withoutAttempt } from "./coding/plan-coding.ts";
import { ownedStream, withExtent } from "./plan-streams.ts";
import type { ExtentRecord, ReplicaPlace } from "./records.ts";
import type { RecordChange, TransactionPlan } from "./state/changes.ts";
import type { StreamState } from "./state.ts";

/** Successor of an extent that an owner asks for. */
export type Successor =
  /** The successor is in the list already. */
  | { readonly kind: "found"; readonly id: ExtentId }
  /** `predecessor` is the last (or the list is empty): one may be allocated. */
  | { readonly kind: "none" };

/** `predecessor` undefined: the owner takes the list for empty. */
export function successorOf(state: StreamState, name: string, predecessor: ExtentId | undefined): Outcome<Successor> {
  const list = state.list(name);
  if (predecessor === undefined) {
    if (list.first === undefined) return ok({ kind: "none" });
    if (list.length === 1) return ok({ kind: "found", id: list.first });
    return refused("aborted", "conflict", `stream ${name} has ${list.length} extents: open it again`);
  }
  const next = list.successor(predecessor);
  if (next === "absent") return refused("notFound", "unknownExtent", `extent ${predecessor} is not in stream ${name}`);
  return ok(next === undefined ? { kind: "none" } : { kind: "found", id: next });
}

export interface AllocationRequest {
  readonly stream: string;
  readonly ownerEpoch: OwnerEpoch;
  readonly predecessor: ExtentId | undefined;
  readonly id: ExtentId;
  readonly replicas: readonly ReplicaPlace[];
  /** Creation number of the extent; undefined: it gets none. */
  readonly creation?: number | undefined;
}

/** Records it `allocating`: told to nobody, dropped by the next leader. Also for a stream that is to come. */
export function planAllocate(state: StreamState, request: AllocationRequest, rules: Rules): Outcome<TransactionPlan> {
  if (state.stream(request.stream) !== undefined) {
    const free = checkNoSuccessor(state, request, rules);
    if (!free.ok) return free;
  }
  assert(request.id < state.nextId && state.extent(request.id) === undefined, "an extent id is minted once");
  const record: ExtentRecord = {
    id: request.id,
    phase: "allocating",
    version: extentVersion(1),
    ownerEpoch: request.ownerEpoch,
    stream: request.stream,
    replicas: request.replicas.map(({ nodeId, diskId }) => ({ nodeId, diskId, complete: false })),
    removed: [],
    ...(request.creation === undefined ? {} : { creation: request.creation }),
  };
  return ok({ changes: [{ kind: "extent", record }], reads: [streamKey(request.stream)] });
}

/** Plans the transaction that opens an extent as the last of its stream. Its predecessor must be sealed. */
export function planOpenExtent(
  state: StreamState,
  request: Omit<AllocationRequest, "replicas">,
  segmentId: number | undefined,
  rules: Rules,
): Outcome<TransactionPlan> {
  const free = checkNoSuccessor(state, request, rules);
  if (!free.ok) return free;
  const extent = state.extent(request.id);
  if (extent?.phase !== "allocating") return refused("aborted", "conflict", `extent ${request.id} is not being allocated any more`);
  const { predecessor } = request;
  if (predecessor !== undefined && state.extent(predecessor)?.phase !== "sealed") {
    return refused("aborted", "conflict", `extent ${predecessor} is not sealed`);
  }
  const list = withExtent(free.value, request.id, segmentId);
  if (!list.ok) return list;
  return ok({
    changes: [...list.value, { kind: "extent", record: { ...extent, phase: "open" } }],
    reads: predecessor === undefined ? [] : [extentKey(predecessor)],
  });
}

/** `planRecordSealed` and `planOpenExtent` of its successor in one transaction. Refused with `conflict` when it has to be two. */
export function planSealAndOpen(
  state: StreamState,
  request: Omit<AllocationRequest, "replicas"> & { readonly predecessor: ExtentId; readonly endBytes: number },
  segmentId: number | undefined,
  rules: Rules,
): Outcome<TransactionPlan> {
  return succeed(state, request, "sealing", segmentId, rules);
}

/**
 * Like `planOpenExtent`, for a predecessor that its owner has filled: every append to it is acknowledged, up to
 * `endBytes`, and no other will come, so it is sealed there without a fence. Refused with `conflict` if it is being
 * sealed otherwise.
 */
export function planRoll(
  state: StreamState,
  request: Omit<AllocationRequest, "replicas"> & { readonly predecessor: ExtentId; readonly endBytes: number },
  segmentId: number | undefined,
  rules: Rules,
): Outcome<TransactionPlan> {
  if (state.extent(request.predecessor)?.ownerEpoch !== request.ownerEpoch) {
    return refused("aborted", "conflict", `extent ${request.predecessor} was not made for owner epoch ${request.ownerEpoch}`);
  }
  return succeed(state, request, "open", segmentId, rules);
}

/**
 * Plans the succession from a predecessor in this phase: it is sealed at `endBytes`, the successor is open and the last
 * of the list.
 */
function succeed(
  state: StreamState,
  request: Omit<AllocationRequest, "replicas"> & { readonly predecessor: ExtentId; readonly endBytes: number },
  phase: "open" | "sealing",
  segmentId: number | undefined,
  rules: Rules,
): Outcome<TransactionPlan> {
  const free = checkNoSuccessor(state, request, rules);
  if (!free.ok) return free;
  const [full, next] = [state.extent(request.predecessor), state.extent(request.id)];
  if (full?.phase !== phase || next?.phase !== "allocating") {
    return refused("aborted", "conflict", `extent ${request.predecessor} can't be left for ${request.id} in one step`);
  }
  const list = withExtent(free.value, request.id, segmentId);
  if (!list.ok) return list;
  const sealed: ExtentRecord = { ...full, phase: "sealed", version: extentVersion(full.version + 1), sealedLengthBytes: request.endBytes };
  return ok({
    changes: [...list.value, { kind: "extent", record: sealed }, { kind: "extent", record: { ...next, phase: "open" } }],
    reads: [],
  });
}

function checkNoSuccessor(state: StreamState, request: Omit<AllocationRequest, "replicas">, rules: Rules) {
  const owned = ownedStream(state, request.stream, request.ownerEpoch, rules);
  if (!owned.ok) return owned;
  const successor = successorOf(state, request.stream, request.predecessor);
  if (!successor.ok) return successor;
  if (successor.value.kind === "found") {
    return refused("aborted", "conflict", `stream ${request.stream} has a successor already: ${successor.value.id}`);
  }
  return owned;
}

/** Plans the end of extents that were allocated and never opened: nobody knows of them. */
export function planDropAllocating(state: StreamState, ids: readonly ExtentId[]): Outcome<TransactionPlan> {
  const changes: RecordChange[] = [];
  for (const id of ids) {
    const extent = state.extent(id);
    if (extent?.phase === "allocating") changes.push({ kind: "extent", record: { ...extent, phase: "dropped" } });
  }
  return ok({ changes, reads: [] });
}

/** Plans the record `sealing`. Nothing changes if the extent is sealing or sealed already. */
export function planBeginSeal(state: StreamState, id: ExtentId): Outcome<TransactionPlan> {
  const extent = state.extent(id);
  if (extent === undefined) return unknownExtent(id);
  if (extent.phase === "open") return ok({ changes: [{ kind: "extent", record: { ...extent, phase: "sealing" } }], reads: [] });
  if (extent.phase === "sealing" || extent.phase === "sealed") return ok({ changes: [], reads: [extentKey(id)] });
  return refused("failedPrecondition", "unknownExtent", `extent ${id} is ${extent.phase}`);
}

/** Plans the record of a sealed length. The first one wins: if the extent is sealed, the caller adopts the recorded length. */
export function planRecordSealed(
  state: StreamState,
  id: ExtentId,
  sealedLengthBytes: number,
  more: Pick<ExtentRecord, "loss" | "untold"> = {},
): Outcome<TransactionPlan> {
  const extent = state.extent(id);
  if (extent === undefined) return unknownExtent(id);
  if (extent.phase === "sealed") return ok({ changes: [], reads: [extentKey(id)] });
  if (extent.phase !== "sealing") return refused("failedPrecondition", "unknownExtent", `extent ${id} is ${extent.phase}`);
  const sealed: ExtentRecord = { ...extent, phase: "sealed", version: extentVersion(extent.version + 1), sealedLengthBytes };
  return ok({ changes: [{ kind: "extent", record: { ...sealed, ...more } }], reads: [] });
}

/**
 * A length that was told to nobody, and whose every holder is lost for certain: it is sealed again, from what the other replicas hold.
 * Everything acknowledged is on each of them (docs/decisions/0103).
 */
export function planUnseal(state: StreamState, id: ExtentId): Outcome<TransactionPlan> {
  const extent = state.extent(id);
  if (extent?.phase !== "sealed" || extent.untold === undefined) return ok({ changes: [], reads: [extentKey(id)] });
  const { sealedLengthBytes: _length, checksum: _checksum, untold: _untold, repair, ...rest } = extent;
  const record: ExtentRecord = {
    ...rest,
    phase: "sealing",
    version: extentVersion(extent.version + 1),
    replicas: extent.replicas.map((replica) => ({ ...replica, complete: false })),
    removed: repair === undefined ? extent.removed : [...extent.removed, repair],
  };
  return ok({ changes: [{ kind: "extent", record }], reads: [] });
}

/** Returns the record with its length free to be told, if as many replicas are recorded to hold the prefix. */
function settled(extent: ExtentRecord, minCopies: number): ExtentRecord {
  if (extent.untold === undefined || completeCount(extent) < minCopies) return extent;
  const { untold: _untold, ...rest } = extent;
  return rest;
}

/**
 * Remembers who was seen to hold the sealed prefix, or (`complete` false) was seen not to; and the checksum of the whole content when none
 * is recorded yet.
 */
export function planMarkReplicas(
  state: StreamState,
  id: ExtentId,
  nodeIds: ReadonlySet<string>,
  complete: boolean,
  more: { readonly checksum?: number | undefined; readonly minCopies: number } = { minCopies: Number.POSITIVE_INFINITY },
): Outcome<TransactionPlan> {
  const extent = state.extent(id);
  if (extent?.phase !== "sealed") return ok({ changes: [], reads: [] });
  const replicas = extent.replicas.map((replica) => (nodeIds.has(replica.nodeId) ? { ...replica, complete } : replica));
  const { checksum, minCopies } = more;
  const learned = extent.checksum === undefined && checksum !== undefined;
  if (!learned && replicas.every((replica, i) => replica.complete === extent.replicas[i]?.complete)) return ok({ changes: [], reads: [] });
  const record = settled({ ...extent, replicas, ...(learned ? { checksum } : {}) }, minCopies);
  return ok({ changes: [{ kind: "extent", record }], reads: [] });
}

/** Plans a repair: a new version and the node for the copy, recorded before the copy is made. Takes back an attempt at coding. */
export function planBeginRepair(state: StreamState, id: ExtentId, target: ReplicaPlace): Outcome<TransactionPlan> {
  const extent = state.extent(id);
  if (extent?.phase !== "sealed" || extent.coded !== undefined) return unknownExtent(id);
  if (extent.repair !== undefined) return refused("aborted", "conflict", `extent ${id} is under repair already`);
  if (extent.replicas.some((replica) => replica.nodeId === target.nodeId && replica.diskId === target.diskId && replica.complete)) {
    return refused("aborted", "conflict", `node ${target.nodeId} has a complete replica of extent ${id}`);
  }
  // Full redundancy comes first: an attempt at coding ends here.
  const record = { ...withoutAttempt(extent), version: extentVersion(extent.version + 1), repair: target };
  return ok({ changes: [{ kind: "extent", record }], reads: [] });
}

/** Plans the end of a repair: the durable copy replaces `replaced`, which becomes garbage, or is one more. */
export function planFinishRepair(
  state: StreamState,
  id: ExtentId,
  replaced: ReplicaPlace | undefined,
  more: { readonly checksum?: number | undefined; readonly minCopies: number } = { minCopies: Number.POSITIVE_INFINITY },
): Outcome<TransactionPlan> {
  const extent = state.extent(id);
  if (extent?.phase !== "sealed" || extent.repair === undefined) return unknownExtent(id);
  const { checksum, minCopies } = more;
  const learned = extent.checksum === undefined && checksum !== undefined ? { checksum } : {};
  const { repair, ...rest } = extent;
  const gone = (place: ReplicaPlace): boolean =>
    place.nodeId === repair.nodeId || (place.nodeId === replaced?.nodeId && place.diskId === replaced.diskId);
  const kept = extent.replicas.filter((replica) => !gone(replica));
  const removed = [
    ...extent.removed.filter((place) => !samePlace(place, repair)),
    ...extent.replicas.filter((replica) => gone(replica) && !samePlace(replica, repair)).map(({ nodeId, diskId }) => ({ nodeId, diskId })),
  ];
  const record = settled({ ...rest, ...learned, replicas: [...kept, { ...repair, complete: true }], removed }, minCopies);
  return ok({ changes: [{ kind: "extent", record }], reads: [] });
}

/** Plans the end of a failed repair: its target may hold a part of the copy, which is garbage. */
export function planAbandonRepair(state: StreamState, id: ExtentId): Outcome<TransactionPlan> {
  const extent = state.extent(id);
  if (extent?.repair === undefined) return ok({ changes: [], reads: [] });
  const { repair, ...rest } = extent;
  const current = extent.replicas.some((replica) => samePlace(replica, repair));
  const removed = current || extent.removed.some((place) => samePlace(place, repair)) ? extent.removed : [...extent.removed, repair];
  return ok({ changes: [{ kind: "extent", record: { ...rest, removed } }], reads: [] });
}

/** Plans to forget a replaced replica, which is deleted or whose disk is gone for ever. */
export function planForgetRemoved(state: StreamState, id: ExtentId, place: ReplicaPlace): Outcome<TransactionPlan> {
  const extent = state.extent(id);
  if (extent === undefined || !extent.removed.some((other) => samePlace(other, place))) return ok({ changes: [], reads: [] });
  const removed = extent.removed.filter((other) => !samePlace(other, place));
  return ok({ changes: [{ kind: "extent", record: { ...extent, removed } }], reads: [] });
}

/** Plans to forget a dropped extent whose replicas are all deleted. */
export function planForgetExtent(state: StreamState, id: ExtentId): Outcome<TransactionPlan> {
  return ok({ changes: state.extent(id)?.phase === "dropped" ? [{ kind: "removeExtent", id }] : [], reads: [] });
}

/** Plans the reservation of numbers for extents and segments; a successor never uses what is left of them. */
export function planReserveIds(state: StreamState, count: number): Outcome<TransactionPlan> {
  return ok({ changes: [{ kind: "ids", next: state.nextId + count }], reads: [] });
}

export const samePlace = (a: ReplicaPlace, b: ReplicaPlace): boolean => a.nodeId === b.nodeId && a.diskId === b.diskId;

/** True if the record names a replica at this place. */
export const holds = ({ replicas }: ExtentRecord, place: ReplicaPlace): boolean => replicas.some((one) => samePlace(one, place));

export const completeCount = (extent: ExtentRecord): number => extent.replicas.filter((replica) => replica.complete).length;

const unknownExtent = (id: ExtentId) => refused("notFound", "unknownExtent", `extent ${id} is not known in the state that this needs`);
