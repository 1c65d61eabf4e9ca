/**
 * Where the fragments of an extent go. No node gets two. Fragments are spread evenly over fault domains, and no domain gets more than the code can
 * lose. Among nodes and domains that are equally good, more free space is more likely.
 */
import type { Profile } from "@stamp/erasure";
import { type PlacementNode, weighted } from "../placement.ts";

/** Fragments that an extent has in each fault domain. */
type Domains = Map<string, number>;

/** Returns a node for each fragment by its index, or why there are too few. `random` is uniform in [0, 1). */
export function placeFragments(profile: Profile, nodes: readonly PlacementNode[], random: () => number): PlacementNode[] | string {
  const chosen: PlacementNode[] = [];
  const domains: Domains = new Map();
  while (chosen.length < profile.fragments) {
    const next = nextNode(
      profile,
      nodes.filter((node) => !chosen.includes(node)),
      domains,
      random,
    );
    if (next === undefined)
      return `${profile.name} needs ${profile.fragments} nodes, at most ${profile.losses} of them in one fault domain: ${nodes.length} take fragments now`;
    chosen.push(next);
    domains.set(next.faultDomain, (domains.get(next.faultDomain) ?? 0) + 1);
  }
  return chosen;
}

/**
 * Returns a node for one fragment, or undefined if none will do. `nodes` are those without a fragment of the extent; `used` are the fault domains of
 * its other fragments, each as often as it has one.
 */
export function placeFragment(
  profile: Profile,
  nodes: readonly PlacementNode[],
  used: readonly string[],
  random: () => number,
): PlacementNode | undefined {
  const domains: Domains = new Map();
  for (const domain of used) domains.set(domain, (domains.get(domain) ?? 0) + 1);
  return nextNode(profile, nodes, domains, random);
}

function nextNode(profile: Profile, nodes: readonly PlacementNode[], domains: Domains, random: () => number): PlacementNode | undefined {
  const count = (node: PlacementNode): number => domains.get(node.faultDomain) ?? 0;
  const fewest = Math.min(...nodes.map(count));
  if (fewest >= profile.losses) return undefined;
  return weighted(
    nodes.filter((node) => count(node) === fewest),
    random,
  );
}
