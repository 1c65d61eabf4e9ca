/** Compares the stream manager's records with what the nodes have, both ways. Pure: two views in, problems out. */
import { givesBack } from "@stamp/stream";

export interface ManagerExtent {
  readonly id: number;
  readonly phase: "allocating" | "open" | "sealing" | "sealed" | "dropped";
  readonly sealedLengthBytes: number | undefined;
  readonly checksum: number | undefined;
  /** True if it was dropped before it was opened: no acknowledged byte can be in it. Undefined if that is not known. */
  readonly neverOpened?: boolean;
  /** Version of the record; undefined if it is not known. */
  readonly version?: number;
  /** Nodes that should have a replica. */
  readonly nodes: readonly string[];
  readonly stream: string;
  /** Places of the fragments, if the extent is coded; `nodes` is empty then. */
  readonly coded?: CodedPlaces | undefined;
}

export interface CodedPlaces {
  /** Name of the code. */
  readonly profile: string;
  /** Node and version of each fragment, by its index. */
  readonly fragments: readonly { readonly node: string; readonly version: number }[];
}

export interface NodeFragment {
  readonly id: number;
  readonly version: number;
  readonly index: number;
  /** Damage of the replica, in words; empty if none. */
  readonly damage: string;
}

export interface NodeReplica {
  readonly id: number;
  readonly state: "open" | "closed" | "sealed" | "damaged";
  readonly sealedLengthBytes: number | undefined;
  readonly checksum: number | undefined;
  /** Content of the replica in bytes; undefined: not known. */
  readonly contentBytes?: number;
  /** Version of the extent that the node knows; undefined if that is not known. */
  readonly version?: number;
  /** Found on the node itself: files, checksums. */
  readonly problems: readonly string[];
  /** True if this check found the damage itself. */
  readonly foundNow: boolean;
}

export interface NodeView {
  readonly node: string;
  /** Reason why the node's replicas are not known. */
  readonly unreached: string | undefined;
  readonly replicas: ReadonlyMap<number, NodeReplica>;
  readonly fragments: readonly NodeFragment[];
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
  | "olderMetadata"
  | "leftOver"
  | "missingFragment"
  | "damagedFragment"
  | "wrongFragment"
  | "unknownFragment"
  | "lostExtent";

export interface Problem {
  readonly kind: ProblemKind;
  readonly node?: string;
  readonly extent?: number;
  readonly what: string;
  readonly cure: string;
}

export const problemKey = ({ kind, node, extent }: Problem): string => `${kind} ${node ?? ""} ${extent ?? ""}`;

const madeAgain = "the stream manager has it made anew from the others by itself";
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
  const fragments = new Map(
    nodes.map(({ node, fragments: held }) => [node, new Map(held.map((each) => [`${each.id} ${each.version}`, each]))]),
  );
  for (const extent of extents) {
    problems.push(...ofExtent(extent, byName));
    if (extent.coded !== undefined && extent.phase === "sealed") problems.push(...ofCoded(extent, extent.coded, byName, fragments));
  }
  for (const node of nodes) {
    for (const fragment of node.fragments) problems.push(...ofFragment(node.node, fragment, byId.get(fragment.id)));
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

type FragmentsByNode = ReadonlyMap<string, ReadonlyMap<string, NodeFragment>>;

function ofCoded(
  { id, stream }: ManagerExtent,
  { profile, fragments: places }: CodedPlaces,
  nodes: ReadonlyMap<string, NodeView>,
  fragments: FragmentsByNode,
): Problem[] {
  const problems: Problem[] = [];
  /** Indexes of fragments that are intact or lie on nodes of which nothing is known. */
  const left: number[] = [];
  places.forEach(({ node, version }, index) => {
    const view = nodes.get(node);
    if (view === undefined || view.unreached !== undefined) {
      left.push(index);
      return;
    }
    const held = fragments.get(node)?.get(`${id} ${version}`);
    if (held === undefined)
      problems.push({ kind: "missingFragment", node, extent: id, what: `the node does not have fragment ${index}`, cure: madeAgain });
    else if (held.index !== index)
      problems.push({
        kind: "wrongFragment",
        node,
        extent: id,
        what: `version ${version} there is fragment ${held.index}, the stream manager says ${index}`,
        cure: "a bug: keep all copies and report it",
      });
    else if (held.damage !== "")
      problems.push({ kind: "damagedFragment", node, extent: id, what: `fragment ${index}: ${held.damage}`, cure: madeAgain });
    else left.push(index);
  });
  if (!givesBack(profile, left)) {
    const what = `too few fragments of an extent of stream ${stream} are left: ${left.length} of ${places.length}, ${profile}`;
    problems.push({ kind: "lostExtent", extent: id, what, cure: "bring a node or disk that had one back" });
  }
  return problems;
}

function ofFragment(node: string, { id, version, index }: NodeFragment, extent: ManagerExtent | undefined): Problem[] {
  if (extent?.phase === "dropped" || extent?.coded?.fragments.some((each) => each.node === node && each.version === version)) return [];
  if (extent === undefined) {
    const cure = "left alone; if no copy of the metadata knows the extent: `stamp coding strays`";
    return [{ kind: "unknownFragment", node, extent: id, what: `the stream manager does not know the extent of fragment ${index}`, cure }];
  }
  const what = `fragment ${index}, version ${version}, is not one that the extent is stored in`;
  const cure = "it is being made, is deleted after the grace period, or no record explains it: `stamp coding strays`";
  return [{ kind: "leftOver", node, extent: id, what, cure }];
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

const putBack =
  "the metadata store was put back from an older copy: acknowledged data may be missing. Write nothing more, and put the newest copy back (docs/guides/metadata.md)";

/** Returns why the node must have heard from a later metadata store than the present one; undefined: nothing says so. */
function whyOlder({ state, sealedLengthBytes = 0, contentBytes = 0, version = 0 }: NodeReplica, extent: ManagerExtent): string | undefined {
  const bytes = Math.max(sealedLengthBytes, contentBytes);
  if (extent.neverOpened === true && bytes > 0 && state !== "damaged")
    return `it holds ${bytes} bytes, and the stream manager says that the extent was never opened`;
  if (extent.version !== undefined && version > extent.version && extent.phase !== "dropped")
    return `it knows version ${version} of the extent, and the stream manager only version ${extent.version}`;
  return undefined;
}

function ofReplica(node: string, replica: NodeReplica, extent: ManagerExtent | undefined): Problem[] {
  if (extent === undefined) {
    const cure = "kept until a person decides: `stamp extent quarantine`";
    return [{ kind: "unknownExtent", node, extent: replica.id, what: "the stream manager does not know this extent", cure }];
  }
  const older = whyOlder(replica, extent);
  if (older !== undefined) return [{ kind: "olderMetadata", node, extent: replica.id, what: older, cure: putBack }];
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
