/** What the stream manager knows against what the nodes have, both ways. Pure: two views in, problems out. */

export interface ManagerExtent {
  readonly id: number;
  readonly phase: "allocating" | "open" | "sealing" | "sealed" | "dropped";
  readonly sealedLengthBytes: number | undefined;
  readonly checksum: number | undefined;
  /** Who should have a replica. */
  readonly nodes: readonly string[];
  readonly stream: string;
}

export interface NodeReplica {
  readonly id: number;
  readonly state: "open" | "closed" | "sealed" | "damaged";
  readonly sealedLengthBytes: number | undefined;
  readonly checksum: number | undefined;
  /** Found on the node itself: files, checksums. */
  readonly problems: readonly string[];
  /** This very check found that it is damaged. */
  readonly foundNow: boolean;
}

export interface NodeView {
  readonly node: string;
  /** Why nothing is known of it. */
  readonly unreached: string | undefined;
  readonly replicas: ReadonlyMap<number, NodeReplica>;
  readonly strayFiles: readonly string[];
}

export type ProblemKind =
  | "node"
  | "newer"
  | "identity"
  | "journal"
  | "table"
  | "replica"
  | "strayFile"
  | "missingReplica"
  | "damagedReplica"
  | "wrongLength"
  | "wrongChecksum"
  | "notSealed"
  | "unknownExtent"
  | "leftOver"
  | "lostExtent";

export interface Problem {
  readonly kind: ProblemKind;
  readonly node?: string;
  readonly extent?: number;
  readonly what: string;
  readonly cure: string;
}

export const problemKey = ({ kind, node, extent }: Problem): string => `${kind} ${node ?? ""} ${extent ?? ""}`;

const copied = "the stream manager has it copied anew by itself";

export function compare(extents: readonly ManagerExtent[], nodes: readonly NodeView[]): Problem[] {
  const problems: Problem[] = [];
  const byName = new Map(nodes.map((node) => [node.node, node]));
  const byId = new Map(extents.map((extent) => [extent.id, extent]));
  for (const { node, unreached, strayFiles } of nodes) {
    if (unreached !== undefined) problems.push({ kind: "node", node, what: `nothing is known of it: ${unreached}`, cure: "start it" });
    for (const path of strayFiles)
      problems.push({ kind: "strayFile", node, what: `${path} is no replica's`, cure: "look at it, and move it away" });
  }
  for (const extent of extents) problems.push(...ofExtent(extent, byName));
  for (const node of nodes) {
    for (const replica of node.replicas.values()) problems.push(...ofReplica(node.node, replica, byId.get(replica.id)));
  }
  return problems;
}

function ofExtent(extent: ManagerExtent, nodes: ReadonlyMap<string, NodeView>): Problem[] {
  if (extent.phase === "allocating" || extent.phase === "dropped") return [];
  const problems: Problem[] = [];
  let intact = 0;
  let unknown = 0;
  for (const node of extent.nodes) {
    const view = nodes.get(node);
    if (view === undefined || view.unreached !== undefined) {
      unknown += 1;
      continue;
    }
    const replica = view.replicas.get(extent.id);
    const found = replica === undefined ? undefined : mismatch(extent, replica);
    if (replica === undefined) {
      problems.push({ kind: "missingReplica", node, extent: extent.id, what: "the node does not have its replica", cure: copied });
    } else if (found !== undefined) problems.push({ node, extent: extent.id, ...found });
    else intact += 1;
  }
  if (intact === 0 && unknown === 0 && extent.nodes.length > 0) {
    const what = `no intact replica of an extent of stream ${extent.stream} is left`;
    problems.push({ kind: "lostExtent", extent: extent.id, what, cure: "bring a node or disk that had one back" });
  }
  return problems;
}

function mismatch(extent: ManagerExtent, replica: NodeReplica): Pick<Problem, "kind" | "what" | "cure"> | undefined {
  if (replica.state === "damaged") return { kind: "damagedReplica", what: replica.problems.join("; ") || "it is damaged", cure: copied };
  if (extent.phase !== "sealed") return undefined;
  if (replica.state !== "sealed") {
    return { kind: "notSealed", what: "it was not brought to the sealed length yet", cure: "the stream manager does so by itself" };
  }
  if (replica.sealedLengthBytes !== extent.sealedLengthBytes) {
    const what = `it is sealed at ${replica.sealedLengthBytes}, the stream manager says ${extent.sealedLengthBytes}`;
    return { kind: "wrongLength", what, cure: "a bug: keep all copies and report it" };
  }
  if (extent.checksum !== undefined && replica.checksum !== undefined && replica.checksum !== extent.checksum) {
    const what = `the checksum of its content is ${replica.checksum}, the stream manager recorded ${extent.checksum}`;
    return { kind: "wrongChecksum", what, cure: "a bug: keep all copies and report it" };
  }
  return undefined;
}

function ofReplica(node: string, replica: NodeReplica, extent: ManagerExtent | undefined): Problem[] {
  if (extent === undefined) {
    const cure = "kept until a person decides: `stamp extent quarantine`";
    return [{ kind: "unknownExtent", node, extent: replica.id, what: "the stream manager does not know this extent", cure }];
  }
  if (replica.foundNow && !extent.nodes.includes(node)) {
    const cure = "it was copied anew meanwhile; what is left of it is deleted after the grace period";
    return [{ kind: "damagedReplica", node, extent: replica.id, what: replica.problems.join("; "), cure }];
  }
  if (extent.phase !== "dropped" && !extent.nodes.includes(node)) {
    const what = "the stream manager has other replicas of it instead";
    const cure = "it is deleted after the grace period, or kept in quarantine when no record says so";
    return [{ kind: "leftOver", node, extent: replica.id, what, cure }];
  }
  if (replica.state === "damaged") return [];
  return replica.problems.map((what) => ({ kind: "replica", node, extent: replica.id, what, cure: "see what it says" }));
}
