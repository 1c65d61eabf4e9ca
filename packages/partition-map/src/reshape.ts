/**
 * Splits and merges of range partitions as recorded state machines (partition-layer.md "Partition manager", model/split.pml).
 *
 *   recorded ──the server that has the parents leaves their streams to the children (MultiModify: the commit point)──> done
 *      ├─ the server could not prepare it, before anything had to wait ──> back
 *      └─ given up, or a new leader: fence the parents at the stream manager, then ask it whether the children exist ──> forward or back
 *
 * The record stands in the rows of all parents before anything is asked of a server (rule namesBeforeSplit), so whoever leads later finds
 * it. Names and owner epochs of children are minted with it and never used for anything else. Asking before fencing would be guessing:
 * the change may still be on its way (rule fenceBeforeAsking).
 */

import { compareBytes, type Outcome, ok, refused, toHex } from "@stamp/base";
import { partitionStart } from "@stamp/objects";
import type { ChildRange, Origin, Reshape } from "./range.ts";
import { holdsKey, originsMax, type Range, streamsOf } from "./range.ts";

/** Returns a child of a split or merge. Its id names its first owner epoch, which no other range has. */
export const childOf = (table: Range["table"], ownerEpoch: number): ChildRange => ({
  rangeId: `${table.toLowerCase()}-e${ownerEpoch}`,
  ownerEpoch,
});

/** Returns the parent's row with the record of a split; `epochs`: two new owner epochs. */
export function splitRecord(parent: Range, at: Uint8Array, epochs: readonly [number, number]): Outcome<Range> {
  if (!holdsKey(parent, at) || compareBytes(at, parent.low) === 0) {
    return refused("invalidArgument", "badRequest", `a split of ${parent.rangeId} is at a key behind its first one and before its end`);
  }
  const start = partitionStart(at);
  if (start !== undefined && start.length < at.length) {
    const why = `that key is inside a PartitionName, whose rows stay in one range; its first key is ${toHex(start)}`;
    return refused("invalidArgument", "badRequest", why);
  }
  const children = [childOf(parent.table, epochs[0]), childOf(parent.table, epochs[1])] as const;
  return ok({ ...parent, reshape: { kind: "split", at, children } });
}

/** Returns the rows of both parents with the record of a merge. */
export function mergeRecords(left: Range, right: Range, epoch: number): Outcome<readonly [Range, Range]> {
  if (left.table !== right.table || left.high.length === 0 || compareBytes(left.high, right.low) !== 0) {
    return refused("invalidArgument", "badRequest", `${left.rangeId} and ${right.rangeId} are not neighbours in this order`);
  }
  if (left.server !== right.server || left.leaseEpoch !== right.leaseEpoch) {
    return refused("failedPrecondition", "conflict", `${left.rangeId} and ${right.rangeId} are not on one server`);
  }
  const reshape: Reshape = { kind: "merge", parents: [left.rangeId, right.rangeId], children: [childOf(left.table, epoch)] };
  return ok([
    { ...left, reshape },
    { ...right, reshape },
  ]);
}

/**
 * Returns the ranges that replace the parents (by key, all of them) when their streams were left to the children:
 * assigned to the server that had the parents, under the lease that it had then.
 */
export function childRanges(parents: readonly Range[], loaded: boolean): readonly Range[] {
  const first = parents[0] as Range;
  const last = parents.at(-1) as Range;
  const { reshape, table, server, serverAddress, leaseEpoch } = first;
  if (reshape === undefined) return [];
  const rangeVersion = Math.max(...parents.map((parent) => parent.rangeVersion)) + 1;
  const origins = originsOf(parents);
  const bounds = reshape.kind === "split" ? [first.low, reshape.at, last.high] : [first.low, last.high];
  return reshape.children.map(({ rangeId, ownerEpoch }, i) => ({
    rangeId,
    table,
    low: bounds[i] as Uint8Array,
    high: bounds[i + 1] as Uint8Array,
    rangeVersion,
    ownerEpoch,
    streams: streamsOf(rangeId, table),
    server,
    serverAddress,
    leaseEpoch,
    loaded,
    hasStreams: true,
    origins,
  }));
}

/** Returns the origins of the children: the log of a split goes on, that of a merge begins empty, and only the first parent's metadata stream goes on. */
function originsOf([first, second]: readonly Range[]): readonly Origin[] {
  const found = new Map<string, Origin>();
  const add = (range: Range | undefined, left: (of: Origin["left"]) => Origin["left"]): void => {
    if (range === undefined) return;
    for (const origin of [...(range.origins ?? []), { rangeId: range.rangeId, left: "all" } as const])
      if (!found.has(origin.rangeId)) found.set(origin.rangeId, { ...origin, left: left(origin.left) });
  };
  add(first, (of) => (second === undefined || of === "data" ? of : "state"));
  add(second, () => "data");
  return [...found.values()].slice(-originsMax);
}

/** Returns the range after a split or merge that came to nothing. */
export const withoutReshape = ({ reshape: _, ...range }: Range): Range => range;

/** True if the range is as it was known: given to nobody else since, and in the same change, or in none. */
export const isUnchanged = (now: Range | undefined, known: Range | undefined): boolean =>
  now !== undefined &&
  known !== undefined &&
  now.ownerEpoch === known.ownerEpoch &&
  now.rangeVersion === known.rangeVersion &&
  changeOf(now) === changeOf(known);

const changeOf = ({ reshape }: Range): string => reshape?.children.map(({ rangeId }) => rangeId).join() ?? "";

/** Returns all parents of the split or merge that this range is in, by key. */
export function parentsOf(range: Range, ranges: readonly Range[]): readonly Range[] {
  const { reshape } = range;
  if (reshape?.kind !== "merge") return [range];
  return reshape.parents.map((id) => ranges.find((one) => one.rangeId === id)).filter((one): one is Range => one !== undefined);
}
