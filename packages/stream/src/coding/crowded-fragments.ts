/** Finds fragments that share a fault domain although another domain has room. Pure: places come in. */
import type { PlacementNode } from "../placement.ts";
import type { FragmentPlace } from "../records.ts";

/**
 * Returns the index of a fragment whose move to one of `takers` makes the fragments lie in their fault domains more evenly, in the domain that has
 * most; undefined if no move does. `takers`: nodes that take a fragment now. One move after another ends: each makes the sum of the squares smaller.
 */
export function crowdedFragment(
  fragments: readonly FragmentPlace[],
  domainOf: (nodeId: string) => string,
  takers: readonly PlacementNode[],
): number | undefined {
  const counts = new Map<string, number>();
  for (const { nodeId } of fragments) counts.set(domainOf(nodeId), (counts.get(domainOf(nodeId)) ?? 0) + 1);
  const most = Math.max(...counts.values());
  if (most < 2) return undefined;
  const holders = new Set(fragments.map(({ nodeId }) => nodeId));
  const hasRoom = takers.some(({ nodeId, faultDomain }) => !holders.has(nodeId) && (counts.get(faultDomain) ?? 0) <= most - 2);
  return hasRoom ? fragments.findLastIndex(({ nodeId }) => counts.get(domainOf(nodeId)) === most) : undefined;
}
