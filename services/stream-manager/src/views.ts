/** What callers see of streams, extents and nodes: the state in the words of stream_manager.proto. */
import type { ExtentId } from "@stamp/base";
import type { ExtentPhase, ExtentRecord } from "@stamp/stream";
import { ExtentState, toWire } from "@stamp/wire";
import type { Completer } from "./completer.ts";
import type { Term } from "./term.ts";

const extentStates: Readonly<Record<ExtentPhase, ExtentState>> = {
  allocating: ExtentState.ALLOCATING,
  open: ExtentState.OPEN,
  sealing: ExtentState.SEALING,
  sealed: ExtentState.SEALED,
  dropped: ExtentState.DROPPED,
};

export class Views {
  readonly #term: Term;
  readonly #completer: Completer;

  constructor(term: Term, completer: Completer) {
    this.#term = term;
    this.#completer = completer;
  }

  stream(name: string, extents: readonly ExtentId[]) {
    const locations = extents.map((id) => this.#term.state.extent(id)).filter((extent) => extent !== undefined);
    return {
      name,
      ownerEpoch: toWire(this.#term.state.stream(name)?.ownerEpoch ?? 0),
      extents: locations.map((extent) => this.location(extent)),
    };
  }

  /** Unsealed: the primary first. Sealed: complete replicas on nodes that are up first. The length only when it may be told. */
  location(extent: ExtentRecord) {
    const replicas = this.#ordered(extent);
    const sealed = this.#completer.tellable(extent) ? extent.sealedLengthBytes : undefined;
    return {
      extentId: toWire(extent.id),
      version: toWire(extent.version),
      addresses: replicas.map((replica) => this.#term.nodes.address(replica.nodeId) ?? ""),
      ...(sealed === undefined ? {} : { sealedLengthBytes: toWire(sealed) }),
    };
  }

  extent(extent: ExtentRecord) {
    return {
      location: this.location(extent),
      state: extentStates[extent.phase],
      ownerEpoch: toWire(extent.ownerEpoch),
      nodeIds: this.#ordered(extent).map((replica) => replica.nodeId),
      intactCopies: extent.phase === "sealed" ? this.#completer.completeCount(extent) : 0,
      stream: extent.stream,
    };
  }

  nodes() {
    const { nodes, state, world } = this.#term;
    return [...state.nodes()].map((record) => {
      const load = nodes.load(record.nodeId);
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
        extentCount: load?.extentCount ?? 0,
      };
    });
  }

  #ordered(extent: ExtentRecord) {
    if (extent.phase !== "sealed") return extent.replicas;
    const rank = (nodeId: string, complete: boolean): number => (complete ? 0 : 2) + (this.#term.nodes.up(nodeId) ? 0 : 1);
    const ranked = extent.replicas.map((replica) => ({ replica, rank: rank(replica.nodeId, this.#completer.complete(extent, replica)) }));
    return ranked.toSorted((a, b) => a.rank - b.rank).map(({ replica }) => replica);
  }
}
