/** Computes the parts of a list that stay when extents are taken out of it. Pure. */
import type { KeptRange } from "./manager-calls.ts";
import type { StreamExtent } from "./types.ts";

/** Ranges in one change of the list at most (stream manager: rangesMax). */
const rangesMax = 256;

/** `gone`: extents to drop, sealed ones and never the last, as many as one change allows. `kept`: the rest of the list. */
export function keptRanges(
  extents: readonly StreamExtent[],
  extentIds: ReadonlySet<number>,
): { readonly gone: readonly number[]; readonly kept: readonly KeptRange[] } {
  const gone: number[] = [];
  const kept: KeptRange[] = [];
  const last = extents.at(-1)?.extentId;
  let firstExtentId: number | undefined;
  for (const { extentId, sealedLengthBytes } of extents) {
    const goes = extentIds.has(extentId) && extentId !== last && sealedLengthBytes !== undefined && kept.length < rangesMax - 1;
    if (!goes) {
      firstExtentId ??= extentId;
      continue;
    }
    if (firstExtentId !== undefined) kept.push({ firstExtentId, beforeExtentId: extentId });
    firstExtentId = undefined;
    gone.push(extentId);
  }
  if (firstExtentId !== undefined) kept.push({ firstExtentId, beforeExtentId: 0 });
  return { gone, kept };
}
