/** The transaction that takes extents back to the end of a stream's list after a restore of the metadata. */
import { type ExtentId, type Outcome, ok, ownerEpoch } from "@stamp/base";
import { extentKey } from "../codec.ts";
import { lastExtent, withExtent } from "../plan-streams.ts";
import type { StreamRecord } from "../records.ts";
import { segmentExtentsMax } from "../records.ts";
import type { RecordChange, TransactionPlan } from "../state/changes.ts";
import type { StreamState } from "../state.ts";
import { mayComeBack } from "./choose-taken-back.ts";
import { type ProvenExtent, takenBackRecord } from "./prove-extent.ts";

/** Extents of one transaction, which has at most 100 keys. Together they fill at most one segment. */
export const takenAtOnceMax = 64;

/**
 * `extents`: in order, behind the list's last; one that is in the list already is passed over. A stream that is not there is made. `segmentId`: number for a segment, if the tail gets
 * too long (`needsSegment`). The list's last takes no appends any more: whatever its owner was told, another extent came behind it.
 */
export function planTakeBack(
  state: StreamState,
  name: string,
  extents: readonly ProvenExtent[],
  segmentId: number | undefined,
): Outcome<TransactionPlan> {
  const stream = state.stream(name) ?? newStream(name, extents);
  const others: RecordChange[] = [];
  const last = lastExtent(state, name);
  if (last?.phase === "open") others.push({ kind: "extent", record: { ...last, phase: "sealing" } });
  let record: StreamRecord = stream;
  for (const proven of extents) {
    if (!mayComeBack(state, proven.id)) continue;
    const list = withExtent(record, proven.id, segmentId);
    if (!list.ok) return list;
    for (const change of list.value) {
      if (change.kind === "stream") record = change.record;
      else others.push(change);
    }
    others.push({ kind: "extent", record: takenBackRecord(proven, state.extent(proven.id)) });
  }
  if (record === stream) return ok({ changes: [], reads: [] });
  return ok({ changes: [...others, { kind: "stream", record }], reads: last === undefined ? [] : [extentKey(last.id)] });
}

/** Returns the record of a stream that began after the copy, before it has its extents back. */
const newStream = (name: string, extents: readonly ProvenExtent[]): StreamRecord => ({
  name,
  ownerEpoch: ownerEpoch(Math.max(0, ...extents.map((extent) => extent.ownerEpoch))),
  segments: [],
  skipCount: 0,
  tail: [],
});

/** True if the tail of the list has no room for this many more. */
export const needsSegment = (state: StreamState, name: string, count: number): boolean =>
  (state.stream(name)?.tail.length ?? 0) + count > segmentExtentsMax;

/**
 * Returns the extents inside of a list that are being sealed, and that no node has: they were deleted after the copy, or lost, and the stream went on
 * behind them. `disks`: disks of the nodes that have listed their replicas, by node. `held`: unsealed extents of which a node told a replica.
 */
export function goneInside(state: StreamState, disks: ReadonlyMap<string, string>, held: ReadonlySet<ExtentId>): ExtentId[] {
  return [...state.unsealed()].filter((id) => {
    const extent = state.extent(id);
    if (extent?.phase !== "sealing" || held.has(id)) return false;
    const successor = state.list(extent.stream).successor(id);
    return typeof successor === "number" && extent.replicas.every(({ diskId, nodeId }) => disks.get(nodeId) === diskId);
  });
}
