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
  /** Extents that a taken one was made behind, that no node that was heard has: truncated since, or lost. */
  readonly missing: readonly { readonly stream: string; readonly id: number }[];
  /** Extents that had been left or deleted before: nothing is lost by them. */
  readonly left: readonly LeftExtent[];
}

/** `replicas`: those of all heard nodes that `mayComeBack` does not exclude. `floor`: as in `chooseTakenBack`. */
export function judgeRestored(state: StreamState, replicas: readonly UnknownReplica[], floor: number, rules: Rules): JudgedRestore {
  const lost: LostExtent[] = [];
  const proven: ProvenExtent[] = [];
  const byId = Map.groupBy(replicas, ({ id }) => id);
  for (const [id, those] of byId) {
    const extent = proveExtent(id, those);
    if (extent.ok) proven.push(extent.value);
    else {
      const stream = those.find((one) => one.stream !== "")?.stream ?? "";
      // Without content nothing is lost, and nothing by what was left or deleted before the copy.
      const isOld = id < floor || id <= (state.list(stream).last ?? 0);
      if (bytesOf(those) > 0 && !isOld) lost.push({ id, stream, bytes: bytesOf(those), why: extent.failure.message });
    }
  }
  const { left, missing, taken } = chooseTakenBack(state, proven, floor, rules);
  for (const { extent, isLost, why } of left)
    if (isLost) lost.push({ id: extent.id, stream: extent.stream, bytes: bytesOf(byId.get(extent.id) ?? []), why });
  return { taken, lost, missing, left: left.filter(({ isLost }) => !isLost) };
}

const bytesOf = (replicas: readonly UnknownReplica[]): number => Math.max(0, ...replicas.map(({ durableBytes }) => durableBytes));
