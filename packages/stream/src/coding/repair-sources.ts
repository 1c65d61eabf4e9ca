/**
 * How many fragments are read to make one anew. The answer depends on the code, the fragment and which others are there, and is the same for
 * thousands of extents that a lost node had a part of: it is computed once for each such pattern.
 */
import { type Profile, repairPlan } from "@stamp/erasure";

/** Patterns that are remembered; beyond, all are forgotten. A code of 16 fragments with up to two lost has 1,936. */
const patternsMax = 10_000;
const known = new Map<string, number | undefined>();

/** Returns the number of fragments that the cheapest plan reads to make fragment `index` anew from those of `live`; undefined: they do not determine it. */
export function repairSources(profile: Profile, index: number, live: readonly number[]): number | undefined {
  const mask = live.reduce((bits, each) => bits | (1 << each), 0);
  const pattern = `${profile.name} ${index} ${mask}`;
  if (known.has(pattern)) return known.get(pattern);
  if (known.size >= patternsMax) known.clear();
  const inOrder = Array.from({ length: profile.fragments }, (_, each) => each).filter((each) => (mask & (1 << each)) !== 0);
  const sources = repairPlan(profile, [index], inOrder)?.sources.length;
  known.set(pattern, sources);
  return sources;
}
