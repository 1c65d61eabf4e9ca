/** Streams, extents and nodes in the messages of stream_manager.proto. */
import type { ExtentId } from "@stamp/base";
import type {
  AcceptedLoss,
  CodedRecord,
  ExtentList,
  ExtentPhase,
  ExtentRecord,
  NodeDuty as RecordedDuty,
  ReplicaRecord,
} from "@stamp/stream";
import { streamKey } from "@stamp/stream";
import { ExtentState, NodeDuty, toWire } from "@stamp/wire";
import type { Coder } from "../coding/coder.ts";
import { isNeverOpened } from "../nodes/later-replicas.ts";
import { addTo } from "../repair/blocked-copies.ts";
import type { Repairer } from "../repair/repairer.ts";
import type { Completer } from "../seal/completer.ts";
import type { Term } from "../term/term.ts";

const dutyOnWire: Readonly<Record<RecordedDuty, NodeDuty>> = {
  serving: NodeDuty.SERVING,
  draining: NodeDuty.DRAINING,
  decommissioned: NodeDuty.DECOMMISSIONED,
};

/** Extents in one answer: about 5 ms of work here, and 15 ms of who reads it. */
export const listPageMax = 2_500;
const summaryEnds = 5;

const extentStates: Readonly<Record<ExtentPhase, ExtentState>> = {
  allocating: ExtentState.ALLOCATING,
  open: ExtentState.OPEN,
  sealing: ExtentState.SEALING,
  sealed: ExtentState.SEALED,
  dropped: ExtentState.DROPPED,
};

const lossOnWire = ({ knownCommittedBytes, wallMs, note }: AcceptedLoss) => ({
  knownCommittedBytes: toWire(knownCommittedBytes),
  wallMs: toWire(wallMs),
  note,
});

/** The coder's knowledge of fragments. */
type FragmentKnowledge = Pick<Coder, "isIntact" | "newerThan" | "repairs" | "waitsToDecode">;

export class Views {
  readonly #term: Term;
  readonly #completer: Completer;
  readonly #repairer: Repairer;

  readonly #fragments: () => FragmentKnowledge;

  /** `fragments`: knowledge about fragments, which is made after this object. */
  constructor(term: Term, completer: Completer, repairer: Repairer, fragments: () => FragmentKnowledge) {
    this.#fragments = fragments;
    this.#term = term;
    this.#completer = completer;
    this.#repairer = repairer;
  }

  /** Returns a page of the list. */
  stream(name: string, list: ExtentList, from = 0, limit = listPageMax) {
    const page = list.slice(from, from + Math.min(limit, listPageMax));
    return { ...this.#streamInfo(name, list), extents: this.#locations(page), more: from + page.length < list.length };
  }

  /** Returns the ends of the list. */
  streamSummary(name: string) {
    const list = this.#term.state.list(name);
    const shown =
      list.length <= 2 * summaryEnds ? list.slice(0) : [...list.slice(0, summaryEnds), ...list.slice(list.length - summaryEnds)];
    return { ...this.#streamInfo(name, list), extents: this.#locations(shown), more: shown.length < list.length };
  }

  stat(name: string) {
    const { state } = this.#term;
    const list = state.list(name);
    return {
      name,
      ownerEpoch: toWire(state.stream(name)?.ownerEpoch ?? 0),
      listVersion: toWire(state.versionOf(streamKey(name))),
      extentCount: toWire(list.length),
      sealedBytes: toWire(state.sealedBytes(name)),
      firstExtentId: toWire(list.first ?? 0),
      lastExtentId: toWire(list.last ?? 0),
      open: list.last !== undefined && state.extent(list.last)?.phase === "open",
    };
  }

  #streamInfo(name: string, list: ExtentList) {
    const { state } = this.#term;
    return {
      name,
      ownerEpoch: toWire(state.stream(name)?.ownerEpoch ?? 0),
      listVersion: toWire(state.versionOf(streamKey(name))),
      extentCount: toWire(list.length),
      lineage: toWire(this.#term.lineage),
    };
  }

  #locations(ids: readonly ExtentId[]) {
    const extents = ids.map((id) => this.#term.state.extent(id)).filter((extent) => extent !== undefined);
    return extents.map((extent) => this.location(extent));
  }

  #coded({ profile, fragments, checksums }: CodedRecord, checksum: number | undefined) {
    const { nodes } = this.#term;
    return {
      profile,
      fragments: fragments.map(({ nodeId, version }, index) => {
        const recorded = checksums?.[index];
        const place = { version: toWire(version), address: nodes.address(nodeId) ?? "" };
        return recorded === undefined ? place : { ...place, checksum: recorded };
      }),
      ...(checksum === undefined ? {} : { checksum }),
    };
  }

  /** Returns an extent's location. Unsealed: the primary first. Sealed: complete replicas on live nodes first. The length only if it may be told. */
  location(extent: ExtentRecord, withFragments = false) {
    const replicas = this.#ordered(extent);
    const sealed = this.#completer.tellable(extent) ? extent.sealedLengthBytes : undefined;
    return {
      extentId: toWire(extent.id),
      version: toWire(extent.version),
      addresses: replicas.map((replica) => this.#term.nodes.address(replica.nodeId) ?? ""),
      ...(sealed === undefined ? {} : { sealedLengthBytes: toWire(sealed) }),
      ...(withFragments && extent.coded !== undefined ? { coded: this.#coded(extent.coded, extent.checksum) } : {}),
    };
  }

  extent(extent: ExtentRecord) {
    return {
      location: this.location(extent),
      state: extentStates[extent.phase],
      ownerEpoch: toWire(extent.ownerEpoch),
      nodeIds: this.#ordered(extent).map((replica) => replica.nodeId),
      intactCopies: extent.phase === "sealed" ? extent.replicas.filter((replica) => this.#intact(extent, replica)).length : 0,
      stream: extent.stream,
      references: this.#term.state.references(extent.id),
      ...(extent.checksum === undefined ? {} : { checksum: extent.checksum }),
      ...(extent.loss === undefined ? {} : { loss: lossOnWire(extent.loss) }),
      ...(extent.coded === undefined
        ? {}
        : {
            coded: this.#coded(extent.coded, extent.checksum),
            fragmentNodeIds: extent.coded.fragments.map(({ nodeId }) => nodeId),
            intactFragments: extent.coded.fragments.filter((place) => this.#fragments().isIntact(extent.id, place)).length,
          }),
      attempt: extent.attempt?.kind ?? (this.#fragments().waitsToDecode(extent.id) ? "decode (waiting)" : ""),
      newerFragments: this.#fragments().newerThan(extent),
      neverOpened: isNeverOpened(extent),
    };
  }

  /** True if the replica is intact. On a disk that its node has no more it is lost, whatever was seen before. */
  #intact(extent: ExtentRecord, replica: ReplicaRecord): boolean {
    const diskId = this.#term.state.node(replica.nodeId)?.diskId;
    return (diskId === undefined || diskId === replica.diskId) && this.#completer.complete(extent, replica);
  }

  nodes() {
    const { nodes, state, world } = this.#term;
    const records = [...state.nodes()].sort((a, b) => (a.nodeId < b.nodeId ? -1 : 1));
    return records.map((record) => {
      const load = nodes.load(record.nodeId);
      const replicas = state.replicasOn(record.nodeId);
      return {
        nodeId: record.nodeId,
        address: record.address,
        diskId: record.diskId,
        faultDomain: record.faultDomain,
        incarnation: toWire(record.incarnation),
        up: nodes.up(record.nodeId),
        lastSeenMsAgo: toWire(Math.floor(world.clock.monotonicMs() - nodes.lastSeenMs(record.nodeId))),
        freeBytes: toWire(load?.freeBytes ?? 0),
        totalBytes: toWire(load?.totalBytes ?? 0),
        ...(load?.freeFiles === undefined ? {} : { freeFiles: toWire(load.freeFiles), totalFiles: toWire(load.totalFiles ?? 0) }),
        extentCount: load?.extentCount ?? 0,
        duty: dutyOnWire[record.duty ?? "serving"],
        replicas: toWire(replicas),
        blocked: record.duty === "draining" && replicas > 0 ? this.#blockedOn(record.nodeId) : [],
      };
    });
  }

  /** Returns the reasons that keep a node from being empty, in words. */
  #blockedOn(nodeId: string): string[] {
    const { state } = this.#term;
    const reasons = new Map(this.#repairer.blocked.reasonsOn(nodeId));
    for (const id of state.unsealed()) {
      const extent = state.extent(id);
      if (extent?.replicas.some((replica) => replica.nodeId === nodeId)) addTo(reasons, `is ${extent.phase}`, 1);
    }
    for (const [why, count] of this.#fragments().repairs.blockedOn(nodeId)) addTo(reasons, why, count);
    let waiting = state.replicasOn(nodeId);
    for (const count of reasons.values()) waiting -= count;
    if (waiting > 0) addTo(reasons, "waits for its copy", waiting);
    return [...reasons].map(([why, count]) => `${count} extents: ${why}`);
  }

  #ordered(extent: ExtentRecord) {
    if (extent.phase !== "sealed") return extent.replicas;
    const rank = (nodeId: string, complete: boolean): number => (complete ? 0 : 2) + (this.#term.nodes.up(nodeId) ? 0 : 1);
    const ranked = extent.replicas.map((replica) => ({ replica, rank: rank(replica.nodeId, this.#completer.complete(extent, replica)) }));
    return ranked.toSorted((a, b) => a.rank - b.rank).map(({ replica }) => replica);
  }
}
