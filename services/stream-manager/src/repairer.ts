/**
 * Makes replicas of sealed extents anew: of nodes that are away for too long, of disks that are gone, of replicas that are damaged, and
 * the third one of extents that were made with fewer. One at a time, those with the fewest copies left first. The new version and the
 * target are recorded before the copy is made, the list afterwards; a new leader goes on with what it finds begun.
 */
import { sleep } from "@stamp/ports";
import type { ExtentRecord, ReplicaPlace, ReplicaRecord } from "@stamp/stream";
import { place, planAbandonRepair, planBeginRepair, planFinishRepair, samePlace } from "@stamp/stream";
import { toWire } from "@stamp/wire";
import type { Completer } from "./completer.ts";
import type { Term } from "./term.ts";
import { endIfStale, extentNode } from "./term.ts";

interface Candidate {
  readonly extent: ExtentRecord;
  /** Whose place the copy takes; undefined: it is one more. */
  readonly replaced: ReplicaRecord | undefined;
  readonly copiesLeft: number;
}

const attemptsMax = 3;
const scanMs = 10_000;
const scanTroubledMs = 2_000;

export class Repairer {
  readonly #term: Term;
  readonly #completer: Completer;
  #busy = false;
  #repaired = 0;
  #nextScanMs = 0;

  constructor(term: Term, completer: Completer) {
    this.#term = term;
    this.#completer = completer;
  }

  get repairedCount(): number {
    return this.#repaired;
  }

  /** Extents with fewer replicas on nodes that are up than there should be. */
  underReplicated(): number {
    let count = 0;
    for (const extent of this.#term.state.extents()) {
      if (extent.phase === "sealed" && this.#live(extent).length < this.#term.config.copies) count += 1;
    }
    return count;
  }

  /** Called every tick. */
  async tick(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    try {
      const candidate = this.#choose();
      if (candidate !== undefined) await this.#repair(candidate);
    } finally {
      this.#busy = false;
    }
  }

  #choose(): Candidate | undefined {
    const { state, nodes } = this.#term;
    const troubled = [...state.nodes()].some((node) => !nodes.up(node.nodeId));
    let best: Candidate | undefined;
    const consider = (extent: ExtentRecord | undefined): void => {
      const candidate = extent && this.#candidate(extent);
      if (candidate !== undefined && (best === undefined || candidate.copiesLeft < best.copiesLeft)) best = candidate;
    };
    for (const id of this.#completer.brokenExtents()) consider(state.extent(id));
    for (const id of state.incomplete()) consider(state.extent(id));
    if (best !== undefined) return best;
    // All of them are looked at only now and then while nothing is found.
    const nowMs = this.#term.world.clock.monotonicMs();
    if (nowMs < this.#nextScanMs) return undefined;
    for (const extent of state.extents()) consider(extent);
    if (best === undefined) this.#nextScanMs = nowMs + (troubled ? scanTroubledMs : scanMs);
    return best;
  }

  #candidate(extent: ExtentRecord): Candidate | undefined {
    const { config, nodes } = this.#term;
    if (extent.phase !== "sealed") return undefined;
    const live = this.#live(extent);
    if (live.length === 0) return undefined;
    const copiesLeft = live.length;
    // A client may wait for the second copy: it is not kept waiting for as long as a third one.
    const afterMs = this.#completer.tellable(extent) ? config.repairAfterMs : Math.min(config.repairAfterMs, config.nodeDownAfterMs);
    const bad = extent.replicas.find((replica) => this.#completer.broken(extent.id, replica.nodeId) || nodes.gone(replica, afterMs));
    if (extent.repair !== undefined || bad !== undefined) return { extent, replaced: bad, copiesLeft };
    if (extent.replicas.length < config.copies) return { extent, replaced: undefined, copiesLeft };
    return undefined;
  }

  #live(extent: ExtentRecord): ReplicaRecord[] {
    return extent.replicas.filter((replica) => this.#completer.complete(extent, replica) && this.#term.nodes.reachable(replica));
  }

  async #repair({ extent: { id }, replaced }: Candidate): Promise<void> {
    const { ended, ledger, state, world } = this.#term;
    const begun = state.extent(id);
    if (begun === undefined) return;
    const { repair: pending, replicas } = begun;
    if (pending !== undefined && replaced === undefined && replicas.length >= this.#term.config.copies) {
      // What it was begun for came back meanwhile. A copy in the place of a replica of the same node goes on.
      if (!replicas.some((replica) => replica.nodeId === pending.nodeId)) {
        await ledger.commit((current) => planAbandonRepair(current, id));
        return;
      }
    }
    if (begun.repair === undefined) {
      const target = this.#target(begun, replaced);
      if (target === undefined) return;
      const recorded = await ledger.commit((current) => planBeginRepair(current, id, target));
      if (!recorded.ok) return;
    }
    const extent = state.extent(id);
    if (extent?.repair === undefined || extent.sealedLengthBytes === undefined) return;
    const target = extent.repair;
    for (let attempt = 0; attempt < attemptsMax && this.#term.nodes.reachable(target); attempt++) {
      const copied = await this.#copy(extent, extent.sealedLengthBytes, target);
      if (ended.aborted) return;
      if (copied) {
        const finished = await ledger.commit((current) => planFinishRepair(current, id, replaced));
        if (!finished.ok) return;
        this.#repaired += 1;
        this.#completer.repaired(id, target);
        if (replaced !== undefined) this.#completer.repaired(id, replaced);
        world.logger.info("replica made anew", { extent: id, node: target.nodeId, insteadOf: replaced?.nodeId });
        return;
      }
      await sleep(world.clock, 500, ended);
    }
    await ledger.commit((current) => planAbandonRepair(current, id));
  }

  /** Another node; or the same one, when it is its replica that is broken and no other will do. */
  #target(extent: ExtentRecord, replaced: ReplicaRecord | undefined): ReplicaPlace | undefined {
    const { nodes, world } = this.#term;
    const holders = new Set(extent.replicas.map((replica) => replica.nodeId));
    const placeable = nodes.placeable();
    const usedDomains = new Set(
      placeable.filter((node) => holders.has(node.nodeId) && node.nodeId !== replaced?.nodeId).map((node) => node.faultDomain),
    );
    const others = placeable.filter((node) => !holders.has(node.nodeId));
    const request = { copies: 1, minCopies: 1, avoid: nodes.distrusted(), usedDomains, random: () => world.random.float() };
    const chosen = place({ ...request, nodes: others })[0] ?? placeable.find((node) => node.nodeId === replaced?.nodeId);
    return chosen && { nodeId: chosen.nodeId, diskId: chosen.diskId };
  }

  async #copy(extent: ExtentRecord, sealedLengthBytes: number, target: ReplicaPlace): Promise<boolean> {
    const { config, nodes, number, stampId, world } = this.#term;
    const sources = this.#live(extent)
      .filter((replica) => !samePlace(replica, target))
      .map((replica) => nodes.address(replica.nodeId))
      .filter((address) => address !== undefined);
    if (sources.length === 0) return false;
    const answer = await extentNode(this.#term, target.nodeId)?.copyExtent(
      {
        smTerm: toWire(number),
        extentId: toWire(extent.id),
        sealedLengthBytes: toWire(sealedLengthBytes),
        version: toWire(extent.version),
        ownerEpoch: toWire(extent.ownerEpoch),
        diskId: target.diskId,
        sources,
        stampId,
      },
      { timeoutMs: config.copyTimeoutMs },
    );
    if (answer === undefined || answer.ok) return answer !== undefined;
    endIfStale(this.#term, answer.failure);
    nodes.distrust(target.nodeId);
    world.logger.warn("a copy failed", {
      extent: extent.id,
      node: target.nodeId,
      reason: answer.failure.reason,
      message: answer.failure.message,
    });
    return false;
  }
}
