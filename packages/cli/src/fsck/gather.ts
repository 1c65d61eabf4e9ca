/** Both views that fsck compares: asked of a running stamp, or read from the data folders of one that is stopped. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { unwrap } from "@stamp/base";
import { type ClusterConfig, metadataStoreOf, planCluster, readClusterRecord, type StampInspector } from "@stamp/cluster";
import { checkDisk, rebuildDisk } from "@stamp/extent-node";
import { metadataOffline, newestMetadata, type OfflineMetadata } from "@stamp/lock-service";
import { type Client, silentLogger, type Transport, type World } from "@stamp/ports";
import { NodeDigest, NodeDisk, nodeWorld } from "@stamp/ports-node";
import { StreamState } from "@stamp/stream";
import { ExtentFragments, ExtentNode, ExtentState, ReplicaState } from "@stamp/wire";
import { CommandError, closeNewFiles } from "../context.ts";
import { nodesToAsk } from "../running.ts";
import type { ManagerExtent, NodeFragment, NodeReplica, NodeView, Problem } from "./compare.ts";

export interface FsckFacts {
  readonly extents: readonly ManagerExtent[];
  readonly nodes: readonly NodeView[];
  /** Problems of single disks, which no comparison finds. */
  readonly problems: readonly Problem[];
  readonly notes: readonly string[];
}

const pageTimeoutMs = 60_000;
/** A fragment's length is a multiple of this. */
const fragmentChunkBytes = 64 * 1024;
/** Largest piece that is read of a fragment at once. */
const fragmentPieceBytes = 16 * fragmentChunkBytes;

const phases: Readonly<Record<number, ManagerExtent["phase"]>> = {
  [ExtentState.ALLOCATING]: "allocating",
  [ExtentState.OPEN]: "open",
  [ExtentState.SEALING]: "sealing",
  [ExtentState.SEALED]: "sealed",
  [ExtentState.DROPPED]: "dropped",
};
const states: Readonly<Record<number, NodeReplica["state"]>> = {
  [ReplicaState.OPEN]: "open",
  [ReplicaState.CLOSED]: "closed",
  [ReplicaState.SEALED]: "sealed",
  [ReplicaState.DAMAGED]: "damaged",
};
const optional = (value: bigint | undefined): number | undefined => (value === undefined ? undefined : Number(value));

/** Gathers facts, from the nodes first: the stream manager's later answer then knows all that they had. `tell` gets the progress. */
export async function gatherRunning(
  inspector: StampInspector,
  transport: Transport,
  deep: boolean,
  tell: (what: string) => void = () => {},
): Promise<FsckFacts> {
  const nodes: NodeView[] = [];
  for (const { nodeId, address, extentCount } of await nodesToAsk(inspector)) {
    const looked = (count: number): void =>
      tell(`${nodeId}: ${count} of ${Math.max(count, extentCount)} replicas ${deep ? "read" : "looked at"}`);
    const view = await askNode(transport, { node: nodeId, address }, deep, looked);
    nodes.push(view.unreached === undefined ? await withFragments(transport, address, view, deep, tell) : view);
  }
  const extents = (await inspector.extents()).map(
    (extent): ManagerExtent => ({
      id: Number(extent.location?.extentId ?? 0n),
      phase: phases[extent.state] ?? "allocating",
      sealedLengthBytes: optional(extent.location?.sealedLengthBytes),
      neverOpened: extent.neverOpened,
      version: Number(extent.location?.version ?? 0n),
      checksum: extent.checksum,
      nodes: extent.nodeIds,
      stream: extent.stream,
      coded: extent.coded && {
        profile: extent.coded.profile,
        fragments: extent.coded.fragments.map(({ version }, index) => ({
          node: extent.fragmentNodeIds[index] ?? "",
          version: Number(version),
        })),
      },
    }),
  );
  return { extents, nodes, problems: [], notes: [] };
}

/** Adds the fragments of a node to its view. With `deep` all their bytes are read: a node sends none whose checksum it has not verified. */
async function withFragments(
  transport: Transport,
  address: string,
  view: NodeView,
  deep: boolean,
  tell: (what: string) => void,
): Promise<NodeView> {
  const client = transport.client(address, ExtentFragments);
  const fragments: NodeFragment[] = [];
  for (let after = 0n; ; ) {
    const page = await client.listFragments({ afterExtentId: after, limit: deep ? 20 : 500 }, { timeoutMs: pageTimeoutMs });
    // A node of a release before fragments has none.
    if (!page.ok) return page.failure.reason === "unknownMethod" ? view : { ...view, unreached: page.failure.message };
    for (const { extentId, version, index, damage } of page.value.fragments) {
      const found = deep && damage === "" ? await readWhole(client, { extentId, version, index }) : damage;
      fragments.push({ id: Number(extentId), version: Number(version), index, damage: found });
      after = extentId;
    }
    tell(`${view.node}: ${fragments.length} fragments ${deep ? "read" : "looked at"}`);
    if (!page.value.more || page.value.fragments.length === 0) return { ...view, fragments };
  }
}

/** Reads a whole fragment. Returns its damage as text; empty: none. */
async function readWhole(
  client: Client<typeof ExtentFragments>,
  name: { readonly extentId: bigint; readonly version: bigint; readonly index: number },
): Promise<string> {
  // The end is not known: a piece that lies beyond it is refused, and is asked for again by halves.
  let piece = fragmentPieceBytes;
  for (let at = 0; ; ) {
    const request = { ...name, offsetBytes: BigInt(at), lengthBytes: piece, background: true };
    const answer = await client.readFragment(request, { timeoutMs: pageTimeoutMs });
    if (answer.ok) at += piece;
    else if (answer.failure.reason === "badRequest") {
      if (piece === fragmentChunkBytes) return "";
      piece /= 2;
    } else if (answer.failure.reason === "unknownExtent") return "";
    else return answer.failure.message;
  }
}

async function askNode(
  transport: Transport,
  { node, address }: { readonly node: string; readonly address: string },
  deep: boolean,
  looked: (count: number) => void,
): Promise<NodeView> {
  const replicas = new Map<number, NodeReplica>();
  const strayFiles: string[] = [];
  const fragments: NodeFragment[] = [];
  let after = 0n;
  for (;;) {
    const client = transport.client(address, ExtentNode);
    const page = await client.checkReplicas({ afterExtentId: after, limit: deep ? 20 : 500, deep }, { timeoutMs: pageTimeoutMs });
    if (!page.ok) return { node, unreached: page.failure.message, replicas, fragments, strayFiles };
    strayFiles.push(...page.value.strayFiles);
    for (const { replica, checksum, problems, foundNow } of page.value.replicas) {
      if (replica === undefined) continue;
      const id = Number(replica.extentId);
      after = replica.extentId;
      const state = states[replica.state] ?? "damaged";
      const held = { contentBytes: Number(replica.durableBytes), version: Number(replica.version) };
      replicas.set(id, { id, state, sealedLengthBytes: optional(replica.sealedLengthBytes), checksum, problems, foundNow, ...held });
    }
    looked(replicas.size);
    if (!page.value.more) return { node, unreached: undefined, replicas, fragments, strayFiles };
    if (page.value.replicas.length === 0) return { node, unreached: "it gave an empty page", replicas, fragments, strayFiles };
  }
}

interface StoppedNode {
  readonly name: string;
  readonly world: World;
  readonly journalDisk: NodeDisk | undefined;
}

export function stoppedNodes(config: ClusterConfig): StoppedNode[] {
  closeNewFiles();
  if (!existsSync(config.dataDir)) throw new CommandError(`there is no data folder ${config.dataDir}`);
  const names = readdirSync(config.dataDir).filter((name) => /^extent-node-\d+$/.test(name));
  if (names.length === 0) throw new CommandError(`${config.dataDir} holds no extent nodes`);
  // Every node of the folder has the settings of the role, also one that is not started any more.
  const journalDir = planCluster(config).processes.find(({ role }) => role === "extent-node")?.environment.STAMP_JOURNAL_DIR;
  return names.sort().map((name) => {
    const world = nodeWorld({ dataDir: join(config.dataDir, name), name, logger: silentLogger });
    return { name, world, journalDisk: journalDir === undefined ? undefined : new NodeDisk(join(journalDir, name)) };
  });
}

export const partsOf = ({ name, world, journalDisk }: StoppedNode) => ({
  world,
  nodeId: name,
  ...(journalDisk === undefined ? {} : { journalDisk }),
});

export async function gatherStopped(config: ClusterConfig, deep: boolean, tell: (what: string) => void): Promise<FsckFacts> {
  const nodes: NodeView[] = [];
  const problems: Problem[] = [];
  const notes: string[] = [];
  for (const stopped of stoppedNodes(config)) {
    tell(`reading the disk of ${stopped.name}`);
    const checked = await checkDisk(partsOf(stopped), deep);
    const replicas = new Map<number, NodeReplica>();
    for (const { extentId: id, state, sealedLengthBytes, checksum, damage, durableBytes: contentBytes, version } of checked.replicas) {
      replicas.set(id, {
        id,
        state,
        sealedLengthBytes,
        checksum,
        problems: damage === "" ? [] : [damage],
        foundNow: false,
        contentBytes,
        version,
      });
    }
    for (const { extentId, ...problem } of checked.problems) {
      problems.push({ ...problem, node: stopped.name, ...(extentId === undefined ? {} : { extent: extentId }) });
    }
    notes.push(...checked.notes.map((note) => `${stopped.name}: ${note}`));
    const unreached = checked.identity === undefined ? (checked.problems[0]?.what ?? "its disk is empty") : undefined;
    const fragments = checked.fragments.map(({ extentId: id, version, index, damage }) => ({ id, version, index, damage }));
    nodes.push({ node: stopped.name, unreached, replicas, fragments, strayFiles: [] });
  }
  return { extents: await storedExtents(config), nodes, problems, notes };
}

/** Returns the newest metadata that the folders of lock services hold; of a lock service with a store alone, that store's. */
async function storedMetadata(config: ClusterConfig): Promise<OfflineMetadata["entries"]> {
  const names = planCluster(config, readClusterRecord(config.dataDir)).processes.flatMap(({ role, name }) =>
    role === "lock-service" && existsSync(join(config.dataDir, name, "stores")) ? [name] : [],
  );
  if (names.length === 0) throw new CommandError(`the metadata store is not below ${config.dataDir}: nothing to compare the nodes with`);
  const replicated = metadataStoreOf(config) === "replicated";
  const read = await Promise.all(
    names.map((name) => metadataOffline(nodeWorld({ dataDir: join(config.dataDir, name), name, logger: silentLogger }), "sm/", replicated)),
  );
  const newest = newestMetadata(read.flatMap((each) => (each.ok ? [each.value] : [])));
  return (newest ?? unwrap(read[0] as (typeof read)[number])).entries;
}

async function storedExtents(config: ClusterConfig): Promise<ManagerExtent[]> {
  const entries = await storedMetadata(config);
  const digest = new NodeDigest();
  const state = unwrap(StreamState.load(entries, (bytes) => digest.crc32c(bytes)));
  return [...state.extents()].map(({ id, phase, sealedLengthBytes, checksum, replicas, stream, coded, droppedAtMs, version }) => ({
    id,
    phase,
    neverOpened: phase === "dropped" && droppedAtMs === undefined && sealedLengthBytes === undefined,
    version,
    sealedLengthBytes,
    checksum,
    nodes: replicas.map((replica) => replica.nodeId),
    stream,
    coded: coded && { profile: coded.profile, fragments: coded.fragments.map(({ nodeId: node, version }) => ({ node, version })) },
  }));
}

export interface RebuiltTable {
  readonly node: string;
  readonly extents: number;
  readonly damaged: number;
  readonly replayedRecords: number;
  readonly problem: string;
}

export async function rebuildStopped(config: ClusterConfig, only: string | undefined): Promise<RebuiltTable[]> {
  const rebuilt: RebuiltTable[] = [];
  for (const stopped of stoppedNodes(config)) {
    if (only !== undefined && stopped.name !== only) continue;
    const outcome = await rebuildDisk(partsOf(stopped));
    if (outcome.ok) rebuilt.push({ node: stopped.name, ...outcome.value, problem: "" });
    else rebuilt.push({ node: stopped.name, extents: 0, damaged: 0, replayedRecords: 0, problem: outcome.failure.message });
  }
  if (rebuilt.length === 0) throw new CommandError(`there is no extent node ${only} below ${config.dataDir}`);
  return rebuilt;
}
