/**
 * Compares what a node holds with what the records say, page by page: when it is first heard of in a term, after every restart or new
 * disk, and now and then. A replica that is missing, damaged or sealed elsewhere is brought to the sealed length or made anew; one that
 * no record explains is quarantined: reported, and deleted only by a person.
 */
import type { ExtentId } from "@stamp/base";
import { extentId } from "@stamp/base";
import { sleep, Turns } from "@stamp/ports";
import type { ReplicaPlace } from "@stamp/stream";
import { samePlace } from "@stamp/stream";
import type { ExtentReplica } from "@stamp/wire";
import { fromWire, ReplicaState, toWire } from "@stamp/wire";
import type { Completer } from "../seal/completer.ts";
import type { Sealer } from "../seal/sealer.ts";
import type { Term } from "../term/term.ts";
import { extentNode } from "../term/term.ts";
import { Comparisons, nextAfter, type ToCompare } from "./comparisons.ts";
import { whyLater } from "./later-replicas.ts";

const pageReplicas = 1_000;
const pageTimeoutMs = 5_000;
const pagePauseMs = 5;
const lookTimeoutMs = 1_000;

export class NodeSync {
  readonly #term: Term;
  readonly #sealer: Sealer;
  readonly #completer: Completer;
  readonly #comparisons: Comparisons<ToCompare>;

  constructor(term: Term, sealer: Sealer, completer: Completer) {
    this.#term = term;
    this.#sealer = sealer;
    this.#completer = completer;
    this.#comparisons = new Comparisons(term, "replicas", ({ place }) => this.#compare(place));
  }

  /** Takes note of a node's report. */
  heard(place: ReplicaPlace, incarnation: number): void {
    this.#comparisons.heard({ place, as: `${place.diskId} ${incarnation}` });
  }

  /** Looks at a replica that a report named and no record explains. */
  async lookAgain(place: ReplicaPlace, id: ExtentId): Promise<void> {
    const answer = await extentNode(this.#term, place.nodeId)?.getExtentReplica({ extentId: toWire(id) }, { timeoutMs: lookTimeoutMs });
    if (this.#term.ended.aborted || !answer?.ok) return;
    try {
      const why = this.#unexplained(place, id, answer.value);
      if (why === undefined) return;
      this.#quarantine(place, answer.value, why);
    } catch (error) {
      // Numbers that no replica has. What it is asked for at the next comparison may be true.
      this.#term.world.logger.error("a node answered with numbers that no replica can have", {
        node: place.nodeId,
        extent: id,
        why: String(error),
      });
    }
  }

  /** Returns why no record explains that this replica is there; undefined: one does. */
  #unexplained(place: ReplicaPlace, id: ExtentId, replica: ExtentReplica): string | undefined {
    const extent = this.#term.state.extent(id);
    if (extent === undefined) return "the stream manager does not know the extent";
    // A replica whose header can't be read has version 0, and tells no creation.
    const isOther = fromWire(replica.creation) !== (extent.creation ?? 0) && replica.version > 0n;
    if (isOther) return "it is of another extent that had the same number";
    const places: readonly ReplicaPlace[] = [
      ...extent.replicas,
      ...extent.removed,
      ...(extent.repair === undefined ? [] : [extent.repair]),
    ];
    return places.some((one) => samePlace(one, place)) ? undefined : "the extent has its replicas elsewhere";
  }

  #quarantine(place: ReplicaPlace, replica: ExtentReplica, why: string): void {
    const { creation, durableBytes, version } = replica;
    this.#term.nodes.quarantine(place.nodeId, extentId(fromWire(replica.extentId)), {
      creation: fromWire(creation),
      durableBytes: fromWire(durableBytes),
      version: fromWire(version),
      why,
    });
  }

  /** Resolves to false if the node did not answer to the end. Throws if its listing can't be true. */
  async #compare(place: ReplicaPlace): Promise<boolean> {
    const { ended, nodes, world } = this.#term;
    const expected = await this.#expectedOn(place);
    const stale = new Set(nodes.quarantined(place.nodeId).keys());
    const staleLater = new Set(nodes.later.of(place.nodeId));
    let at = 0;
    let after = 0n;
    for (let more = true; more; ) {
      const answer = await extentNode(this.#term, place.nodeId)?.listExtentReplicas(
        { afterExtentId: after, limit: pageReplicas },
        { timeoutMs: pageTimeoutMs },
      );
      if (ended.aborted || !answer?.ok || !nodes.reachable(place)) return false;
      more = answer.value.more;
      after = nextAfter(after, answer.value.replicas, more);
      for (const replica of answer.value.replicas) {
        const id = extentId(fromWire(replica.extentId));
        for (; at < expected.length && (expected[at] as ExtentId) < id; at++) this.#missing(place, expected[at] as ExtentId);
        if (expected[at] === id) at += 1;
        stale.delete(id);
        staleLater.delete(id);
        this.#found(place, id, replica);
      }
      await sleep(world.clock, pagePauseMs, ended);
    }
    const turns = new Turns(world.clock);
    for (; at < expected.length && !ended.aborted; at++) {
      this.#missing(place, expected[at] as ExtentId);
      if (turns.over) await turns.next();
    }
    for (const id of stale) nodes.release(place.nodeId, id);
    for (const id of staleLater) nodes.later.release(place.nodeId, id);
    return true;
  }

  /** Returns the extents of which this disk should hold a replica, in order. */
  async #expectedOn(place: ReplicaPlace): Promise<ExtentId[]> {
    const { ended, state, world } = this.#term;
    const ids: ExtentId[] = [];
    const turns = new Turns(world.clock);
    for (const { id, phase, replicas } of state.extents()) {
      if (phase !== "dropped" && phase !== "allocating" && replicas.some((replica) => samePlace(replica, place))) ids.push(id);
      if (turns.over) await turns.next();
      if (ended.aborted) break;
    }
    return ids.sort((a, b) => a - b);
  }

  #missing(place: ReplicaPlace, id: ExtentId): void {
    this.#bringToEnd(place, id, true);
  }

  #found(place: ReplicaPlace, id: ExtentId, replica: ExtentReplica): void {
    const { nodes, state } = this.#term;
    if (this.#unexplained(place, id, replica) !== undefined) {
      void this.lookAgain(place, id);
      return;
    }
    nodes.release(place.nodeId, id);
    const extent = state.extent(id);
    const later = whyLater(extent, place, replica);
    if (later !== undefined) nodes.later.note(place.nodeId, id, later);
    const otherwise = replica.sealedLengthBytes !== undefined && fromWire(replica.sealedLengthBytes) !== extent?.sealedLengthBytes;
    const over = replica.restarted || replica.state !== ReplicaState.OPEN;
    const sealed = replica.state === ReplicaState.SEALED && !(extent?.phase === "sealed" && otherwise);
    this.#bringToEnd(place, id, extent?.phase === "sealed" ? !sealed : over);
  }

  /** Asks the node again under the records: what it answers makes the replica complete or broken. */
  #bringToEnd(place: ReplicaPlace, id: ExtentId, needed: boolean): void {
    if (!needed) return;
    const extent = this.#term.state.extent(id);
    if (extent?.phase === "open") void this.#sealer.seal(id, 0);
    if (extent?.phase === "sealed") this.#completer.recheck(id, place.nodeId);
  }
}
