/** Where to split a range: between PartitionNames, so that what changes together stays together. */
import { compareBytes } from "@stamp/base";
import { partitionStart } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import type { Serving } from "./holdings.ts";

/** Fewer recent requests than this say nothing about where the load is. */
const samplesMin = 200;

/** By load when there is some, else by bytes; a small and quiet range by the little that was asked of it. */
export function suggestSplitKey({ range, load, engine }: Pick<Serving, "range" | "load" | "engine">): Uint8Array | undefined {
  const busy = load.partitionStarts();
  const byLoad = busy.length >= samplesMin ? middleOf(busy, range) : undefined;
  if (byLoad) return byLoad;
  const starts = engine
    .keySamples()
    .map((key) => partitionStart(key))
    .filter((start) => start !== undefined);
  return middleOf(starts, range) ?? middleOf(busy, range);
}

/** The start nearest to the middle at which something lies on both sides. */
export function middleOf(starts: readonly Uint8Array[], { low, high }: Pick<Range, "low" | "high">): Uint8Array | undefined {
  const sorted = [...starts].sort(compareBytes);
  const middle = sorted.length / 2;
  let best: Uint8Array | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const [i, start] of sorted.entries()) {
    const first = i === 0 || compareBytes(sorted[i - 1] as Uint8Array, start) !== 0;
    const inside = compareBytes(start, low) > 0 && (high.length === 0 || compareBytes(start, high) < 0);
    const distance = Math.abs(i - middle);
    if (!first || i === 0 || !inside || distance >= bestDistance) continue;
    best = start;
    bestDistance = distance;
  }
  return best;
}
