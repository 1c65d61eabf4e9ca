/**
 * Where to split a range: between PartitionNames, so that what changes together stays together; and so that something inside of containers,
 * tables or queues is on both sides. A range of one busy queue is not split between its row and its messages: each request asks for both.
 */
import { compareBytes, type Outcome, ok, prefixEnd } from "@stamp/base";
import { belongingOf, partitionStart, type RowEntry, type RowParent } from "@stamp/objects";
import { type Range, rangeEnd } from "@stamp/partition-map";
import type { ServingRange } from "./holdings.ts";

/** Fewer recent requests than this say nothing about where the load is. */
const samplesMin = 200;
/** Most PartitionNames that are looked at where nothing else says where to split. */
const namesMax = 1_000;

/** Suggests a key by load when there is some, else by bytes; for a small and quiet range by the little that was asked of it. */
export function suggestSplitKey({ range, load, engine }: Pick<ServingRange, "range" | "load" | "engine">): Uint8Array | undefined {
  const asked = load.partitionStarts();
  const busy = divisible(asked);
  const byLoad = asked.length >= samplesMin ? middleOf(busy, range) : undefined;
  if (byLoad) return byLoad;
  const starts = divisible(engine.keySamples().flatMap((key) => partitionStart(key) ?? []));
  return middleOf(starts, range) ?? middleOf(busy, range);
}

/**
 * Returns the suggested key; else one between the PartitionNames that exist: for a new range whose rows all lie in one
 * block, neither requests nor checkpoints say where its middle is.
 */
export async function findSplitKey(held: Pick<ServingRange, "range" | "load" | "engine">): Promise<Outcome<Uint8Array | undefined>> {
  const suggested = suggestSplitKey(held);
  if (suggested !== undefined) return ok(suggested);
  const { range, engine } = held;
  const starts: Uint8Array[] = [];
  const visit = ({ key }: RowEntry): Uint8Array | undefined => {
    const start = partitionStart(key);
    if (start !== undefined) starts.push(start);
    return starts.length < namesMax ? prefixEnd(start ?? key) : undefined;
  };
  const walked = await engine.read((view) => view.walk(range.low, rangeEnd(range), visit), { background: true });
  return walked.ok ? ok(middleOf(divisible(starts), range)) : walked;
}

/** Returns keys at which rows can be divided, without containers that have something inside among them. */
function divisible(starts: readonly Uint8Array[]): readonly Uint8Array[] {
  const nameOf = ({ account, name }: RowParent): string => `${account}/${name}`;
  const all = starts.map((start) => ({ start, belonging: belongingOf(start) }));
  const entered = new Set(all.flatMap(({ belonging }) => (belonging?.inside ? [nameOf(belonging)] : [])));
  return all.filter(({ belonging }) => !belonging || belonging.inside || !entered.has(nameOf(belonging))).map(({ start }) => start);
}

/** Returns the start nearest to the middle at which something lies on both sides. */
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
