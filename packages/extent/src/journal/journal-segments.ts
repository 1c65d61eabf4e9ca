/**
 * Judges the segment files found on a disk by their headers, before any record is looked at. Each way to be wrong has its own end:
 *
 *   none at all, where there was a journal before   `absent`: nobody starts on that by himself (an empty mount looks the same)
 *   the newest is missing                           `lostNewest`: records of which nothing is known; what was not sealed is suspect
 *   others are missing                              `lostOldest`, or a gap that `judgeSegment` finds: the same
 *   one is there twice                              its copies stand in one group: the one with more records counts
 *   two of one generation that are not copies       `mixed`: two journals in one folder, nobody starts
 */
import type { SegmentHeader } from "./journal-segment.ts";

export interface FoundSegment {
  readonly name: string;
  readonly header: SegmentHeader;
}

export type SegmentPlan =
  | {
      readonly kind: "replay";
      /** Oldest first; each group is one segment, more than one name when there are copies of it. */
      readonly groups: readonly (readonly FoundSegment[])[];
      readonly checkpointLsn: number;
      /** LSNs right after the checkpoint that no segment holds. */
      readonly lostOldest: { readonly fromLsn: number; readonly toLsn: number } | undefined;
      readonly lostNewest: boolean;
    }
  | { readonly kind: "absent" }
  | { readonly kind: "mixed"; readonly names: readonly string[]; readonly generation: number };

/** `begun`: generation that is known to have been begun last (0: not known). */
export function planSegments(found: readonly FoundSegment[], begun: number): SegmentPlan {
  const sorted = found.toSorted((a, b) => a.header.generation - b.header.generation);
  const groups: FoundSegment[][] = [];
  for (const segment of sorted) {
    const group = groups.at(-1);
    const first = group?.[0]?.header;
    if (group === undefined || first?.generation !== segment.header.generation) {
      groups.push([segment]);
      continue;
    }
    group.push(segment);
    if (first.salt !== segment.header.salt || first.firstLsn !== segment.header.firstLsn) {
      return { kind: "mixed", names: group.map((each) => each.name), generation: first.generation };
    }
  }
  const newest = groups.at(-1)?.[0]?.header;
  if (newest === undefined && begun > 0) return { kind: "absent" };
  const checkpointLsn = newest?.checkpointLsn ?? 0;
  const firstOf = (i: number): number => groups[i]?.[0]?.header.firstLsn ?? Number.POSITIVE_INFINITY;
  const needed = groups.filter((_, i) => firstOf(i + 1) > checkpointLsn + 1);
  const oldestLsn = needed[0]?.[0]?.header.firstLsn ?? checkpointLsn + 1;
  const lostOldest = oldestLsn > checkpointLsn + 1 ? { fromLsn: checkpointLsn + 1, toLsn: oldestLsn - 1 } : undefined;
  return { kind: "replay", groups: needed, checkpointLsn, lostOldest, lostNewest: newest !== undefined && newest.generation < begun };
}
