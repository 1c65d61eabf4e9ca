/**
 * Chooses the extents that are taken back into their streams after a restore of the metadata (docs/decisions/0581; docs/design/model/taken-back.pml).
 *
 *     list of the copy:  A ─ B ─ T      replicas:  X (behind T) ─ Y (behind X) ─ … ─ Z, the newest with content
 *     the list becomes   A ─ B ─ T ─ X ─ Y ─ … ─ Z
 *
 * A stream that began after the copy is made anew of its own extents (rule `newStreamsComeBack`): a split or a merge made it. The partition manager puts
 * what its list had from others in front again.
 *
 * Invariants:
 * - Nothing comes back that was deleted before the copy: an extent has a higher number than the list's last, and no lower owner epoch than the
 *   stream (rule `deletedStaysDeleted`).
 * - Nothing comes back that is of another history: the predecessors of the newest extent with content lead to the list's last, and say what counts.
 *   If they lead elsewhere, the list has another history, and nothing comes back. What an earlier restore left behind stays behind (`floor`). Behind a
 *   predecessor that is missing only what has a number so near that no restore was between (rule `oneHistoryComesBack`).
 */
import { type ExtentId, extentId, type Rules } from "@stamp/base";
import type { ExtentRecord } from "../records.ts";
import type { StreamState } from "../state.ts";
import type { ProvenExtent } from "./prove-extent.ts";

/** Extents that may have been under way at once: one with a number so little below the newest known one may still have begun after it. */
const underWayMax = 1_000;

/** A restore raises the numbers of extents by a million above those of its copy. Two that are nearer have no restore between them. */
export const historyApart = 500_000;

export interface LeftExtent {
  readonly extent: ProvenExtent;
  /** Reason why the extent is not taken back, in words. */
  readonly why: string;
  /** True if the restore loses the extent; false: it had been left or deleted before. */
  readonly isLost: boolean;
}

export interface ChosenExtents {
  /** Extents to append to the list of each stream, in order. */
  readonly taken: ReadonlyMap<string, readonly ProvenExtent[]>;
  /** Extents with content that are not taken back. */
  readonly left: readonly LeftExtent[];
  /** Extents that a taken one was made behind, that no node has: truncated since, or lost. */
  readonly missing: readonly { readonly stream: string; readonly id: number }[];
}

/** `floor`: numbers below it were known to an earlier restore, which left them; 0: there was none. */
export function chooseTakenBack(state: StreamState, proven: readonly ProvenExtent[], floor: number, rules: Rules): ChosenExtents {
  const taken = new Map<string, readonly ProvenExtent[]>();
  const left: LeftExtent[] = [];
  const missing: { stream: string; id: number }[] = [];
  const newestKnown = Math.max(floor, newestOf(state));
  const streamOf = new Map(proven.map(({ id, stream }) => [id as number, stream]));
  for (const [stream, extents] of Map.groupBy(proven, (extent) => extent.stream)) {
    const leave = (extent: ProvenExtent, why: string, isLost = false): void => {
      if (extent.hasContent) left.push({ extent, why, isLost });
    };
    const record = state.stream(stream);
    if (record === undefined && !rules.on("newStreamsComeBack")) {
      for (const extent of extents) leave(extent, `the restored metadata do not know the stream ${stream}`, true);
      continue;
    }
    const last = state.list(stream).last ?? 0;
    const older = record === undefined ? newestKnown - underWayMax : last;
    const candidates = new Map<number, ProvenExtent>();
    for (const extent of extents) {
      const around = { last, older, epoch: record?.ownerEpoch ?? 0, floor, known: state.extent(extent.id) };
      const why = whyNoCandidate(extent, around, rules);
      if (why === undefined) candidates.set(extent.id, extent);
      else leave(extent, why);
    }
    const chain = rules.on("oneHistoryComesBack")
      ? followed(candidates, { last, newestKnown, isOfOther: (id) => isOfOther(state, streamOf, stream, id) })
      : { extents: [...candidates.values()].filter(({ hasContent }) => hasContent).toSorted((a, b) => a.id - b.id), gaps: [], why: "" };
    const inChain = new Set(chain.extents);
    for (const extent of candidates.values()) if (!inChain.has(extent)) leave(extent, chain.why, chain.extents.length === 0);
    if (chain.extents.length > 0) taken.set(stream, chain.extents);
    for (const id of chain.gaps) missing.push({ stream, id });
  }
  return { taken, left, missing };
}

/** True if an extent was made for another stream: a stream that began after the copy has it from a parent. */
function isOfOther(state: StreamState, streamOf: ReadonlyMap<number, string>, stream: string, id: number): boolean {
  const other = state.extent(extentId(id))?.stream ?? streamOf.get(id);
  return state.stream(stream) === undefined && other !== undefined && other !== stream;
}

/** Returns the number of the newest extent that the restored metadata know. */
function newestOf(state: StreamState): number {
  let newest = 0;
  for (const { id } of state.extents()) newest = Math.max(newest, id);
  return newest;
}

interface Around {
  /** Last extent of the list; 0: the list is empty. */
  readonly last: number;
  /** Extents with no higher number were there at the copy. */
  readonly older: number;
  /** Owner epoch of the stream; 0: the copy does not know it. */
  readonly epoch: number;
  readonly floor: number;
  readonly known: ExtentRecord | undefined;
}

function whyNoCandidate(
  { id, creation, ownerEpoch }: ProvenExtent,
  { last, older, epoch, floor, known }: Around,
  rules: Rules,
): string | undefined {
  if (known !== undefined && known.creation !== creation) return "the restored metadata have another extent of this number";
  if (rules.on("deletedStaysDeleted") && id <= older)
    return epoch > 0 || last > 0
      ? `it is older than extent ${last}, with which its stream ends: it was deleted`
      : "it is older than the copy, which does not know its stream: it was deleted";
  if (rules.on("deletedStaysDeleted") && ownerEpoch < epoch)
    return `it was made for owner epoch ${ownerEpoch}, before the stream had epoch ${epoch}: it was deleted`;
  if (rules.on("oneHistoryComesBack") && id < floor) return "an earlier restore did not take it back: the stream went on without it";
  return undefined;
}

interface Chain {
  readonly extents: readonly ProvenExtent[];
  /** Numbers of missing predecessors. */
  readonly gaps: readonly number[];
  /** Reason why other candidates of the stream are not in the chain. */
  readonly why: string;
}

/** Follows the predecessors of the newest candidate with content, back to the list's last extent. */
function followed(
  candidates: ReadonlyMap<number, ProvenExtent>,
  { isOfOther, last, newestKnown }: { readonly isOfOther: (id: number) => boolean; readonly last: number; readonly newestKnown: number },
): Chain {
  const descending = [...candidates.values()].toSorted((a, b) => b.id - a.id);
  const newest = descending.find(({ hasContent }) => hasContent);
  const extents: ProvenExtent[] = [];
  const gaps: number[] = [];
  const why = `the stream went on without it, to extent ${newest?.id}`;
  for (let at = newest; at !== undefined; ) {
    extents.push(at);
    const { id, predecessor } = at;
    if (predecessor === last || (predecessor !== undefined && isOfOther(predecessor))) break;
    const before = predecessor === undefined ? undefined : candidates.get(predecessor);
    if (before !== undefined && before.id < id) {
      at = before;
      continue;
    }
    if (predecessor !== undefined && predecessor <= last)
      return { extents: [], gaps: [], why: `extent ${id} was made behind extent ${predecessor}, and the stream ends with extent ${last}` };
    const missing = predecessor ?? id;
    if (predecessor !== undefined) gaps.push(predecessor);
    at = descending.find((one) => one.hasContent && one.id < missing && id - one.id < historyApart);
    if (at === undefined && id - newestKnown >= historyApart)
      return { extents: [], gaps: [], why: `extent ${predecessor}, behind which ${id} was made, is missing, and a restore may be between` };
  }
  return { extents: extents.toReversed(), gaps: gaps.toReversed(), why };
}

/**
 * True if an extent was told after the restore: its streams went on, by a release that takes nothing back. What only a restore took back has a number
 * from before its raise.
 */
export function wentOnSince(state: StreamState): boolean {
  for (const { id, phase } of state.extents()) if (phase !== "allocating" && id >= state.nextId - historyApart) return true;
  return false;
}

/** Returns the extents of which the restored metadata may not know the truth: unknown ones, and those that were being allocated at the copy. */
export function mayComeBack(state: StreamState, id: ExtentId): boolean {
  const phase = state.extent(id)?.phase;
  return phase === undefined || phase === "allocating";
}
