/**
 * Where the replicas of a new extent go: different fault domains first, then weighted by free space and load, random among the good.
 * Nodes to spare are taken when fewer than `copies` others are there: a copy more counts for more than a little time. Nodes to avoid are
 * taken only when fewer than `minCopies` others are there.
 */
import { assert } from "@stamp/base";

export interface PlacementNode {
  readonly nodeId: string;
  readonly diskId: string;
  readonly faultDomain: string;
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** Files (inodes) that can still be made on its disk, and that it can hold; undefined: no fixed number, or not told. */
  readonly freeFiles?: number | undefined;
  readonly totalFiles?: number | undefined;
  /** Number of replicas of open extents on the node. */
  readonly openReplicas: number;
}

export interface PlacementRequest {
  readonly nodes: readonly PlacementNode[];
  readonly copies: number;
  readonly minCopies: number;
  /** Node ids that the caller could not reach. */
  readonly avoid: ReadonlySet<string>;
  /** Node ids that were slow, or that the caller would rather not use. */
  readonly spare?: ReadonlySet<string>;
  /** Fault domains that hold a copy already (repair). */
  readonly usedDomains?: ReadonlySet<string>;
  /** Returns a random number, uniform in [0, 1). */
  readonly random: () => number;
}

/** Returns the chosen nodes, the primary first; fewer than `minCopies` when there are no more. */
export function place(request: PlacementRequest): PlacementNode[] {
  const { nodes, copies, minCopies, avoid } = request;
  assert(minCopies >= 1 && copies >= minCopies, "copies and minCopies");
  const chosen: PlacementNode[] = [];
  const domains = new Set(request.usedDomains);
  const take = (wanted: number, usable: (node: PlacementNode) => boolean): void => {
    while (chosen.length < wanted) {
      const candidates = nodes.filter((node) => usable(node) && !chosen.includes(node));
      const next = weighted(candidates, request.random);
      if (next === undefined) return;
      chosen.push(next);
      domains.add(next.faultDomain);
    }
  };
  const fresh = (node: PlacementNode): boolean => !domains.has(node.faultDomain);
  const good = (node: PlacementNode): boolean => !avoid.has(node.nodeId) && request.spare?.has(node.nodeId) !== true;
  take(copies, (node) => good(node) && fresh(node));
  take(copies, (node) => !avoid.has(node.nodeId) && fresh(node));
  take(copies, good);
  take(copies, (node) => !avoid.has(node.nodeId));
  take(minCopies, (node) => fresh(node));
  take(minCopies, () => true);
  return chosen;
}

/** Returns the free share of the disk, in bytes or in files, whichever is smaller. */
function freeShare({ freeBytes, totalBytes, freeFiles = 0, totalFiles = 0 }: PlacementNode): number {
  const ofBytes = totalBytes > 0 ? freeBytes / totalBytes : 0;
  return totalFiles > 0 ? Math.min(ofBytes, freeFiles / totalFiles) : ofBytes;
}

/** Draws a node: more free space and fewer open replicas make it more likely. */
export function weighted(nodes: readonly PlacementNode[], random: () => number): PlacementNode | undefined {
  const weights = nodes.map((node) => (0.05 + freeShare(node)) / (1 + node.openReplicas / 16));
  let at = random() * weights.reduce((sum, weight) => sum + weight, 0);
  for (const [i, node] of nodes.entries()) {
    at -= weights[i] as number;
    if (at < 0) return node;
  }
  return nodes.at(-1);
}
