/**
 * Brings every replica of a sealed extent to the sealed length: longer ones truncate, shorter ones copy what they miss. Retried while a
 * node is away. A client is told a sealed length only when `minCopies` replicas hold the prefix durably (`minCopiesBeforeTelling`): else
 * one answer and one dead disk lose it (model/append.pml FIX 5).
 *
 * Who was seen complete is known here at once and recorded a little later; a new leader asks again for what was not recorded.
 */
import { type ExtentId, WakeUp } from "@stamp/base";
import { jittered, sleep, within } from "@stamp/ports";
import type { ExtentRecord, ReplicaPlace, ReplicaRecord } from "@stamp/stream";
import { planMarkReplicas } from "@stamp/stream";
import { toWire } from "@stamp/wire";
import { StartPace } from "../term/start-pace.ts";
import type { Term } from "../term/term.ts";
import { endIfStale, extentNode } from "../term/term.ts";

const againMinMs = 50;
const againMaxMs = 5_000;

export class Completer {
  readonly #term: Term;
  /** Replicas seen complete and perhaps not recorded yet. */
  readonly #complete = new Map<ExtentId, Set<string>>();
  /** Checksums of whole contents, each from the first replica that told it; not recorded yet. */
  readonly #checksums = new Map<ExtentId, number>();
  /** Replicas that can't be completed in place: repair copies them anew. */
  readonly #broken = new Map<ExtentId, Set<string>>();
  /** Extents of which at least `minCopies` replicas said that they hold the prefix durably when the length was made; they may not be sealed yet. */
  readonly #durable = new Set<ExtentId>();
  readonly #driven = new Set<string>();
  readonly #progress = new WakeUp();
  readonly #pace: StartPace;

  constructor(term: Term) {
    this.#term = term;
    this.#pace = new StartPace(term.world.clock);
  }

  /**
   * Begins to bring every replica that is not known to be complete to the sealed length. `counted`: the nodes whose durable lengths made the
   * sealed length, longest first. Each of them holds the prefix.
   */
  start(id: ExtentId, counted: readonly string[]): void {
    const extent = this.#sealed(id);
    if (extent === undefined) return;
    if (counted.length >= this.#term.config.minCopies) this.#durable.add(id);
    for (const replica of extent.replicas) if (!this.complete(extent, replica)) void this.#drive(id, replica, counted);
  }

  /** Notes that a node reports its replica as not sealed. */
  recheck(id: ExtentId, nodeId: string): void {
    const replica = this.#sealed(id)?.replicas.find((one) => one.nodeId === nodeId);
    if (replica === undefined || this.broken(id, nodeId)) return;
    void this.#drive(id, replica, []);
  }

  complete(extent: ExtentRecord, replica: ReplicaRecord): boolean {
    if (this.broken(extent.id, replica.nodeId)) return false;
    return replica.complete || (this.#complete.get(extent.id)?.has(replica.nodeId) ?? false);
  }

  broken(id: ExtentId, nodeId: string): boolean {
    return this.#broken.get(id)?.has(nodeId) ?? false;
  }

  brokenExtents(): Iterable<ExtentId> {
    return this.#broken.keys();
  }

  completeCount(extent: ExtentRecord): number {
    return extent.replicas.filter((replica) => this.complete(extent, replica)).length;
  }

  /** True if nobody was told the length, and every replica that it was made of is lost for certain: nothing can be brought to it. */
  isLost(extent: ExtentRecord): boolean {
    if (extent.untold === undefined || this.#isHeld(extent)) return false;
    return extent.untold.every((nodeId) => {
      const replica = extent.replicas.find((one) => one.nodeId === nodeId);
      const disk = this.#term.state.node(nodeId)?.diskId;
      return replica !== undefined && ((disk !== undefined && disk !== replica.diskId) || this.broken(extent.id, nodeId));
    });
  }

  /** True if some replica was seen to hold the prefix. */
  #isHeld(extent: ExtentRecord): boolean {
    return extent.replicas.some((replica) => this.complete(extent, replica) && this.#term.nodes.reachable(replica));
  }

  /** Forgets what was seen of an old length, because the extent is sealed again. */
  forget(id: ExtentId): void {
    for (const known of [this.#complete, this.#broken, this.#checksums]) known.delete(id);
    this.#durable.delete(id);
  }

  /** True if a client may be told the extent's sealed length. */
  tellable(extent: ExtentRecord): boolean {
    if (extent.phase !== "sealed") return false;
    // It was told before it was coded, and has no replicas since.
    if (extent.coded !== undefined) return true;
    if (this.#durable.has(extent.id)) return true;
    if (extent.untold !== undefined && this.#term.world.rules.on("minCopiesBeforeTelling")) return false;
    if (this.#isGone(extent)) return true;
    return !this.#term.world.rules.on("minCopiesBeforeTelling") || this.completeCount(extent) >= this.#term.config.minCopies;
  }

  /**
   * True if nothing of a sealed extent is left that could be brought to its length: its nodes have lost it, or deleted it after the copy of the
   * metadata that was restored. Its length is settled, and its stream does not wait for it.
   */
  #isGone({ id, replicas }: ExtentRecord): boolean {
    const { nodes } = this.#term;
    return replicas.length > 0 && replicas.every((replica) => this.broken(id, replica.nodeId) || nodes.hasOtherDisk(replica));
  }

  /**
   * Resolves when all of these may be told, or the term ended; an extent that was dropped meanwhile counts as told, one that is sealed again
   * does not.
   */
  async untilTellable(ids: readonly ExtentId[]): Promise<void> {
    while (!this.allTellable(ids) && !this.#term.ended.aborted) {
      await within(this.#term.world.clock, 1_000, this.#progress.next);
    }
  }

  allTellable(ids: readonly ExtentId[]): boolean {
    return ids.every((id) => {
      const extent = this.#term.state.extent(id);
      return extent === undefined || extent.phase === "dropped" || this.tellable(extent);
    });
  }

  /** Notes that repair made a new replica or replaced one. */
  repaired(id: ExtentId, place: ReplicaPlace): void {
    const broken = this.#broken.get(id);
    broken?.delete(place.nodeId);
    if (broken?.size === 0) this.#broken.delete(id);
    this.#progress.notify();
  }

  /** Tells a length that is not recorded. No seal does so; only with the rule `recordSealBeforeTelling` off in a simulation. */
  async tellUnrecorded(id: ExtentId, sealedLengthBytes: number, counted: readonly string[]): Promise<void> {
    const extent = this.#term.state.extent(id);
    if (extent === undefined || this.#term.world.rules.on("recordSealBeforeTelling")) return;
    await Promise.all(
      extent.replicas.map((replica) => this.#sealOnce({ ...extent, version: extent.version }, replica, sealedLengthBytes, counted)),
    );
  }

  async #drive(id: ExtentId, replica: ReplicaRecord, counted: readonly string[]): Promise<void> {
    const key = `${id} ${replica.nodeId} ${replica.diskId}`;
    if (this.#driven.has(key)) return;
    this.#driven.add(key);
    const { clock, random } = this.#term.world;
    const { ended, nodes } = this.#term;
    let pauseMs = againMinMs;
    for (let first = true; !ended.aborted; first = false) {
      const extent = this.#sealed(id);
      if (
        extent?.sealedLengthBytes === undefined ||
        !extent.replicas.some((one) => one.nodeId === replica.nodeId && one.diskId === replica.diskId)
      )
        break;
      // The first attempt is made even when nothing was heard of the node: it may be only its reports that are late.
      if (!first && !nodes.reachable(replica)) {
        await nodes.changed(againMaxMs);
        pauseMs = againMinMs;
        if (!nodes.reachable(replica)) continue;
      }
      // All extents that waited for the node go on in the turn in which it is heard of.
      const turn = first ? undefined : this.#pace.enter();
      if (turn !== undefined) await turn;
      const result = await this.#sealOnce(extent, replica, extent.sealedLengthBytes, counted);
      if (ended.aborted) break;
      if (typeof result === "number" && this.#agrees(extent, result)) {
        this.#sawComplete(id, replica.nodeId);
        break;
      }
      if (result !== "again") {
        this.#sawBroken(id, replica.nodeId);
        break;
      }
      await sleep(clock, jittered(random, pauseMs), ended);
      pauseMs = Math.min(pauseMs * 2, againMaxMs);
    }
    this.#driven.delete(key);
  }

  async #sealOnce(
    extent: ExtentRecord,
    replica: ReplicaRecord,
    sealedLengthBytes: number,
    counted: readonly string[],
  ): Promise<number | "broken" | "again"> {
    const { config, number, world } = this.#term;
    const node = extentNode(this.#term, replica.nodeId);
    if (node === undefined) return "again";
    const answer = await node.sealExtent(
      {
        smTerm: toWire(number),
        extentId: toWire(extent.id),
        sealedLengthBytes: toWire(sealedLengthBytes),
        version: toWire(extent.version),
        creation: toWire(extent.creation ?? 0),
        diskId: replica.diskId,
        sources: this.#sources(extent, replica.nodeId, counted),
        ...(extent.checksum === undefined ? {} : { checksum: extent.checksum }),
      },
      { timeoutMs: config.sealTimeoutMs },
    );
    if (answer.ok) return answer.value.checksum;
    endIfStale(this.#term, answer.failure);
    const { reason, message } = answer.failure;
    // Until the nodes have reported after a restart with other addresses, another node may answer at this one's: that is no word of its disk.
    if (reason === "wrongDisk" && !this.#term.nodes.hasOtherDisk(replica)) return "again";
    // Sealed elsewhere: at a length that was told to nobody and given up (planUnseal).
    if (reason === "unknownExtent" || reason === "damaged" || reason === "wrongDisk" || reason === "extentSealed") {
      world.logger.warn("a replica must be copied anew", { extent: extent.id, node: replica.nodeId, reason, message });
      return "broken";
    }
    return "again";
  }

  /** True if the checksum equals the first one told. The first is right: every node verified the appends on their way. */
  #agrees({ id, checksum }: ExtentRecord, told: number): boolean {
    const right = checksum ?? this.#checksums.get(id);
    if (right === undefined) this.#checksums.set(id, told);
    if (right === undefined || right === told) return true;
    this.#term.world.logger.error("a sealed replica has another checksum than the others", { extent: id, right, told });
    return false;
  }

  /** Returns the nodes to copy from: replicas seen complete, then those whose length counted, then the others. */
  #sources(extent: ExtentRecord, except: string, counted: readonly string[]): string[] {
    const others = extent.replicas.filter((one) => one.nodeId !== except && !this.broken(extent.id, one.nodeId));
    const rank = (one: ReplicaRecord): number => {
      if (this.complete(extent, one)) return -1;
      const at = counted.indexOf(one.nodeId);
      return at < 0 ? counted.length : at;
    };
    const sorted = others.toSorted((a, b) => rank(a) - rank(b));
    return sorted.map((one) => this.#term.nodes.address(one.nodeId)).filter((address) => address !== undefined);
  }

  #sawComplete(id: ExtentId, nodeId: string): void {
    const seen = this.#complete.get(id) ?? new Set();
    this.#complete.set(id, seen.add(nodeId));
    this.#progress.notify();
    void this.#record(id);
  }

  #sawBroken(id: ExtentId, nodeId: string): void {
    const broken = this.#broken.get(id) ?? new Set();
    this.#broken.set(id, broken.add(nodeId));
    this.#durable.delete(id);
    this.#complete.get(id)?.delete(nodeId);
    void this.#term.ledger.commit((state) => planMarkReplicas(state, id, new Set([nodeId]), false));
  }

  /** Records several changes that come close together at once; nobody waits for it. */
  async #record(id: ExtentId): Promise<void> {
    const { ended, ledger, world } = this.#term;
    await sleep(world.clock, 20, ended);
    const seen = this.#complete.get(id);
    if (seen === undefined || seen.size === 0) return;
    const taken = new Set(seen);
    const recorded = await ledger.commit((state) =>
      planMarkReplicas(state, id, taken, true, { checksum: this.#checksums.get(id), minCopies: this.#term.config.minCopies }),
    );
    if (!recorded.ok) return;
    this.#progress.notify();
    this.#checksums.delete(id);
    for (const nodeId of taken) seen.delete(nodeId);
    if (seen.size === 0) this.#complete.delete(id);
    const extent = this.#sealed(id);
    if (extent === undefined || this.completeCount(extent) >= this.#term.config.minCopies) this.#durable.delete(id);
  }

  #sealed(id: ExtentId): ExtentRecord | undefined {
    const extent = this.#term.state.extent(id);
    return extent?.phase === "sealed" ? extent : undefined;
  }
}
