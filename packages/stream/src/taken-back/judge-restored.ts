/** Judges the replicas that restored metadata do not explain: which extents come back, and which are lost. */
import type { Rules } from "@stamp/base";
import type { StreamState } from "../state.ts";
import { chooseTakenBack, type LeftExtent } from "./choose-taken-back.ts";
import { type ProvenExtent, proveExtent, type UnknownReplica } from "./prove-extent.ts";
import type { LostExtent } from "./taken-back-record.ts";

export interface JudgedRestore {
  /** Extents to append to the list of each stream, in order. */
  readonly taken: ReadonlyMap<string, readonly ProvenExtent[]>;
  readonly lost: readonly LostExtent[];
  /** Extents that had been left or deleted before: nothing is lost by them. */
  readonly left: readonly LeftExtent[];
}

/** `replicas`: those that `mayComeBack` does not exclude, of all nodes that were heard. `floor`: as in `chooseTakenBack`. */
export function judgeRestored(state: StreamState, replicas: readonly UnknownReplica[], floor: number, rules: Rules): JudgedRestore {
  const lost: LostExtent[] = [];
  const proven: ProvenExtent[] = [];
  const byId = Map.groupBy(replicas, ({ id }) => id);
  for (const [id, those] of byId) {
    const extent = proveExtent(id, those);
    if (extent.ok) proven.push(extent.value);
    // Without content nothing is lost.
    else if (bytesOf(those) > 0)
      lost.push({
        id,
        stream: those.find(({ stream }) => stream !== "")?.stream ?? "",
        bytes: bytesOf(those),
        why: extent.failure.message,
      });
  }
  const { left, missing, taken } = chooseTakenBack(state, proven, floor, rules);
  for (const { extent, isLost, why } of left)
    if (isLost) lost.push({ id: extent.id, stream: extent.stream, bytes: bytesOf(byId.get(extent.id) ?? []), why });
  for (const { id, stream } of missing)
    lost.push({ id, stream, why: "no node that was heard has it: it was truncated away after the copy, or it is lost" });
  return { taken, lost, left: left.filter(({ isLost }) => !isLost) };
}

const bytesOf = (replicas: readonly UnknownReplica[]): number => Math.max(0, ...replicas.map(({ durableBytes }) => durableBytes));
