/**
 * Makes replicas of sealed extents anew: of nodes that are away for too long or are to be emptied, of disks that are gone, of replicas
 * that are damaged, and the third one of extents that were made with fewer. In order of danger (`@stamp/stream` repair), a few at a time,
 * not faster than a given rate. The new version and the target are recorded before the copy is made, the list afterwards; a new leader
 * goes on with what it finds begun.
 */
import type { ExtentId } from "@stamp/base";
import { sleep, Turns } from "@stamp/ports";
import type { Assessment, ExtentRecord, ReplicaPlace, ReplicaRecord } from "@stamp/stream";
import { assess, holds, place, planAbandonRepair, planBeginRepair, planFinishRepair, RepairQueue, samePlace } from "@stamp/stream";
import { toWire } from "@stamp/wire";
import type { Completer } from "../seal/completer.ts";
import { Rounds } from "../term/rounds.ts";
import type { Term } from "../term/term.ts";
import { endIfStale, extentNode } from "../term/term.ts";
import { BlockedCopies } from "./blocked-copies.ts";
import type { RepairPace } from "./repair-pace.ts";

const attemptsMax = 3;
const attemptPauseMs = 500;
/** Rate in bytes per second from which on a copy is not given up: beside clients it goes slowly. */
const copyBytesPerSecondMin = 2 * 1024 * 1024;
const scanEveryMs = 10_000;
const scanTroubledEveryMs = 2_000;
/** The rate is judged when this part of everything is done. */
const etaPart = 20;
/** Extents that are known to lack something, looked at in one tick; the others wait for the next one. */
const looksPerTickMax = 1_000;
/** Extents that can't be copied now and are taken from the queue at once, at most. */
const startAtOnce = 1_000;

/** Numbers of the last whole look at all extents. */
interface Survey {
  unreachable: number;
  inGrace: number;
}

export class Repairer {
  readonly #term: Term;
  readonly #completer: Completer;
  readonly #broken: Rounds<ExtentId>;
  readonly #incomplete: Rounds<ExtentId>;
  readonly #queue = new RepairQueue();
  readonly #running = new Set<ExtentId>();
  /** Looked at again by the next scan. */
  readonly blocked = new BlockedCopies();
  #survey: Survey = { unreachable: 0, inGrace: 0 };
  readonly #begunMs: number;
  #scanning = false;
  #nextScanMs = 0;
  readonly #pace: RepairPace;
  #waking = false;
  #madeAnew = 0;
  #episode = { startedMs: 0, replicas: 0, bytes: 0 };

  constructor(term: Term, completer: Completer, pace: RepairPace) {
    this.#pace = pace;
    this.#term = term;
    this.#completer = completer;
    this.#begunMs = term.world.clock.monotonicMs();
    this.#broken = new Rounds(() => completer.brokenExtents(), looksPerTickMax);
    this.#incomplete = new Rounds(() => term.state.incomplete(), looksPerTickMax);
  }

  /** Number of replicas that were made again in this term. */
  get repairedCount(): number {
    return this.#madeAnew;
  }

  /** Returns the extents with fewer replicas on nodes that are up than there should be, as of the last look. */
  underReplicated(): number {
    return this.#queue.size + this.#running.size + this.blocked.size + this.#survey.inGrace + this.#survey.unreachable;
  }

  /** True if a lost replica waits to be made anew, or is being made. */
  get mustCopy(): boolean {
    return this.#queue.size + this.#running.size > 0;
  }

  /** Returns the facts, without counts since a time. */
  figures() {
    return {
      waiting: this.#queue.size + this.#running.size + this.blocked.size,
      blocked: this.blocked.size,
      inGrace: this.#survey.inGrace,
      endangered: this.#queue.endangered,
      unreachable: this.#survey.unreachable,
    };
  }

  status() {
    const { clock } = this.#term.world;
    const { config } = this.#term;
    const idle = this.#queue.size === 0 && this.#running.size === 0;
    const runningMs = idle ? 0 : Math.floor(clock.monotonicMs() - this.#episode.startedMs);
    const waitingBytes = this.#queue.bytes + this.#sum(this.#running);
    const { replicas, bytes } = this.#episode;
    return {
      replicasWaiting: toWire(this.#queue.size + this.#running.size + this.blocked.size),
      bytesWaiting: toWire(waitingBytes + this.blocked.bytes),
      endangered: toWire(this.#queue.endangered),
      unreachable: toWire(this.#survey.unreachable),
      copiesRunning: this.#running.size,
      replicasDone: toWire(replicas),
      bytesDone: toWire(bytes),
      runningMs: toWire(runningMs),
      ...(idle ? {} : { etaMs: toWire(this.#etaMs(waitingBytes, runningMs)) }),
      blocked: [...this.blocked.reasons].map(([why, count]) => `${count} extents: ${why}`),
      replicasInGrace: toWire(this.#survey.inGrace),
      bytesPerSecondMax: toWire(config.repairBytesPerSecond),
    };
  }

  /** Estimates the time that is left, by the rate of this episode or, before there is one, by the allowed rate. */
  #etaMs(waitingBytes: number, runningMs: number): number {
    const { bytes } = this.#episode;
    const fastestMs = (waitingBytes * 1_000) / this.#term.config.repairBytesPerSecond;
    const isEarly = bytes < (bytes + waitingBytes) / etaPart;
    return Math.ceil(isEarly ? fastestMs : Math.max(fastestMs, (waitingBytes * runningMs) / bytes));
  }

  /** Takes the next step. Called every tick. */
  tick(): void {
    for (const id of this.#broken.next()) this.#offer(id);
    for (const id of this.#incomplete.next()) this.#offer(id);
    if (!this.#scanning && this.#term.world.clock.monotonicMs() >= this.#nextScanMs) void this.#scan();
    this.#start();
  }

  /** Looks at everything soon: something changed for many extents. */
  rescan(): void {
    this.#nextScanMs = 0;
  }

  async #scan(): Promise<void> {
    const { config, ended, nodes, state, world } = this.#term;
    this.#scanning = true;
    this.blocked.clear();
    const survey: Survey = { unreachable: 0, inGrace: 0 };
    const turns = new Turns(world.clock);
    for (const extent of state.extents()) {
      const assessment = this.#offer(extent.id);
      if (assessment === "unreachable") survey.unreachable += 1;
      if (assessment === "grace") survey.inGrace += 1;
      if (turns.over) await turns.next();
      if (ended.aborted) return;
    }
    const isAway = [...state.nodes()].some((node) => !nodes.up(node.nodeId));
    // A term that has begun just now has not heard of every node yet, and nobody is to act because of that.
    if (isAway && world.clock.monotonicMs() - this.#begunMs < config.nodeDownAfterMs) survey.unreachable = 0;
    this.#survey = survey;
    const troubled = this.#queue.size > 0 || isAway || [...state.nodes()].some((node) => node.duty === "draining");
    this.#nextScanMs = world.clock.monotonicMs() + (troubled ? scanTroubledEveryMs : scanEveryMs);
    this.#scanning = false;
    this.#start();
  }

  #offer(id: ExtentId): Assessment["kind"] {
    const extent = this.#term.state.extent(id);
    if (extent === undefined || this.#running.has(id)) return "fine";
    const assessment = this.#assess(extent);
    if (assessment.kind !== "repair") this.#queue.drop(id);
    else if (!this.blocked.has(id)) {
      if (this.#queue.size === 0 && this.#running.size === 0) {
        this.#episode = { startedMs: this.#term.world.clock.monotonicMs(), replicas: 0, bytes: 0 };
      }
      this.#queue.offer(id, assessment.copiesLeft, extent.sealedLengthBytes ?? 0);
    }
    return assessment.kind;
  }

  #assess(extent: ExtentRecord): Assessment {
    const { config, nodes, state } = this.#term;
    // A client may wait for the second copy: it is not kept waiting for as long as a third one.
    const afterMs = this.#completer.tellable(extent) ? config.repairAfterMs : Math.min(config.repairAfterMs, config.nodeDownAfterMs);
    const crowded = this.#crowded(extent);
    return assess(extent, config.copies, (replica) => ({
      live: this.#isLive(extent, replica),
      lost: this.#completer.broken(extent.id, replica.nodeId) || nodes.gone(replica, afterMs),
      leaving: state.node(replica.nodeId)?.duty === "draining" || replica === crowded,
    }));
  }

  /**
   * Returns a replica that shares its fault domain with an earlier one, if a node of a domain without any can take a copy now; undefined if there is
   * none. Extents get such replicas while hosts are away.
   */
  #crowded(extent: ExtentRecord): ReplicaRecord | undefined {
    const { nodes, state } = this.#term;
    const domains = new Set<string>();
    let second: ReplicaRecord | undefined;
    for (const replica of extent.replicas) {
      const domain = state.node(replica.nodeId)?.faultDomain ?? replica.nodeId;
      if (domains.has(domain)) second = replica;
      domains.add(domain);
    }
    if (second === undefined || !this.#term.world.rules.on("replicasApart")) return undefined;
    const distrusted = nodes.distrusted();
    const takes = nodes.placeable().some((node) => !domains.has(node.faultDomain) && !distrusted.has(node.nodeId));
    return takes ? second : undefined;
  }

  /**
   * Returns whose place one more replica on a node takes, `replaced` undefined if it is one more; undefined if the extent lacks none. A replica on
   * a node that may come back is replaced only if no other can be reached.
   */
  vacancy(extent: ExtentRecord, nodeId: string): { readonly replaced: ReplicaRecord | undefined } | undefined {
    if (this.#running.has(extent.id)) return undefined;
    const own = extent.replicas.find((replica) => replica.nodeId === nodeId);
    const away = extent.replicas.filter((replica) => !this.#isLive(extent, replica));
    const assessment = this.#assess(extent);
    if (own !== undefined) return away.includes(own) ? { replaced: own } : undefined;
    if (assessment.kind === "repair") return { replaced: assessment.replaced };
    if (assessment.kind !== "unreachable") return undefined;
    return { replaced: extent.replicas.length < this.#term.config.copies ? undefined : away[0] };
  }

  #isLive(extent: ExtentRecord, replica: ReplicaRecord): boolean {
    return this.#completer.complete(extent, replica) && this.#term.nodes.reachable(replica);
  }

  /** Begins copies as far as the number and the rate allow. What can't be copied now takes nothing of the rate. */
  #start(): void {
    const { config, ended } = this.#term;
    for (let looked = 0; this.#running.size < config.repairCopiesMax && !ended.aborted; looked++) {
      if (looked >= startAtOnce) {
        this.#wakeAfter(1);
        return;
      }
      if (this.#queue.size === 0) return;
      const waitMs = this.#pace.waitMs("replicas");
      if (waitMs > 0) {
        this.#wakeAfter(waitMs);
        return;
      }
      const id = this.#queue.take();
      if (id === undefined) return;
      const extent = this.#term.state.extent(id);
      const assessment = extent && this.#assess(extent);
      if (extent === undefined || assessment?.kind !== "repair") continue;
      const target = extent.repair ?? this.#target(extent, assessment.replaced);
      if (typeof target === "string") {
        this.blocked.add(extent, target);
        continue;
      }
      const bytes = extent.sealedLengthBytes ?? 0;
      this.#pace.spend("replicas", bytes);
      this.#running.add(id);
      void this.#repair(id, assessment.replaced, target).then((made) => {
        this.#running.delete(id);
        if (made) {
          this.#madeAnew += 1;
          this.#episode.replicas += 1;
          this.#episode.bytes += bytes;
        }
        // It may lack another one.
        this.#offer(id);
        this.#start();
      });
    }
  }

  #wakeAfter(delayMs: number): void {
    if (this.#waking) return;
    this.#waking = true;
    this.#term.world.clock.after(delayMs, () => {
      this.#waking = false;
      this.#start();
    });
  }

  /** Makes a replica; false: none was made. */
  async #repair(id: ExtentId, replaced: ReplicaRecord | undefined, chosen: ReplicaPlace): Promise<boolean> {
    const { ended, ledger, state, world } = this.#term;
    const begun = state.extent(id);
    if (begun === undefined) return false;
    const { repair: pending, replicas } = begun;
    if (pending !== undefined && replaced === undefined && replicas.length >= this.#term.config.copies) {
      // The replica for which it was begun came back meanwhile. A copy in the place of a replica of the same node goes
      // on.
      if (!replicas.some((replica) => replica.nodeId === pending.nodeId)) {
        await ledger.commit((current) => planAbandonRepair(current, id));
        return false;
      }
    }
    if (begun.repair === undefined) {
      const recorded = await ledger.commit((current) => planBeginRepair(current, id, chosen));
      if (!recorded.ok) return false;
    }
    const extent = state.extent(id);
    if (extent?.repair === undefined || extent.sealedLengthBytes === undefined) return false;
    const target = extent.repair;
    for (let attempt = 0; attempt < attemptsMax && this.#term.nodes.reachable(target); attempt++) {
      const copied = await this.#copy(extent, extent.sealedLengthBytes, target, attempt);
      if (ended.aborted) return false;
      if (copied !== undefined) {
        const finished = await ledger.commit((current) =>
          planFinishRepair(current, id, replaced, { checksum: copied, minCopies: this.#term.config.minCopies }),
        );
        if (!finished.ok) return false;
        this.#completer.repaired(id, target);
        if (replaced !== undefined) this.#completer.repaired(id, replaced);
        world.logger.info("replica made anew", { extent: id, node: target.nodeId, insteadOf: replaced?.nodeId });
        return true;
      }
      await sleep(world.clock, attemptPauseMs, ended);
    }
    await ledger.commit((current) => planAbandonRepair(current, id));
    this.blocked.add(extent, `node ${target.nodeId} did not take a copy`);
    return false;
  }

  /** Returns another node for the copy, or the same one if its replica is broken and no other will do; a text: why there is none. */
  #target(extent: ExtentRecord, replaced: ReplicaRecord | undefined): ReplicaPlace | string {
    const { nodes, world } = this.#term;
    const holders = new Set(extent.replicas.map((replica) => replica.nodeId));
    const placeable = nodes.placeable();
    const usedDomains = new Set(
      placeable.filter((node) => holders.has(node.nodeId) && node.nodeId !== replaced?.nodeId).map((node) => node.faultDomain),
    );
    // A node that keeps another extent's replica of this number refuses a copy.
    const refuses = (nodeId: string): boolean => world.rules.on("commandsNameCreations") && nodes.keepsOther(nodeId, extent);
    const others = placeable.filter((node) => !holders.has(node.nodeId) && !refuses(node.nodeId));
    const request = { copies: 1, minCopies: 1, avoid: nodes.distrusted(), usedDomains, random: () => world.random.float() };
    const chosen = place({ ...request, nodes: others })[0] ?? placeable.find((node) => node.nodeId === replaced?.nodeId);
    if (chosen !== undefined) return { nodeId: chosen.nodeId, diskId: chosen.diskId };
    const names = placeable.map((node) => node.nodeId).sort();
    return `no node can take a copy (${names.length} take replicas now: ${names.join(", ")}; each holds one already)`;
  }

  /** Returns the checksum of the copy; undefined: it was not made. */
  async #copy(extent: ExtentRecord, sealedLengthBytes: number, target: ReplicaPlace, attempt: number): Promise<number | undefined> {
    const { config, nodes, number, stampId, world } = this.#term;
    const sources = extent.replicas
      .filter((replica) => this.#isLive(extent, replica) && !samePlace(replica, target))
      .map((replica) => nodes.address(replica.nodeId))
      .filter((address) => address !== undefined);
    if (sources.length === 0 && sealedLengthBytes > 0) return undefined;
    const turned = sources.map((_, i) => sources[(i + attempt) % sources.length] as string);
    const answer = await extentNode(this.#term, target.nodeId)?.copyExtent(
      {
        smTerm: toWire(number),
        extentId: toWire(extent.id),
        sealedLengthBytes: toWire(sealedLengthBytes),
        version: toWire(extent.version),
        ownerEpoch: toWire(extent.ownerEpoch),
        creation: toWire(extent.creation ?? 0),
        stream: extent.stream,
        holder: holds(extent, target),
        diskId: target.diskId,
        sources: turned,
        stampId,
        ...(extent.checksum === undefined ? {} : { checksum: extent.checksum }),
      },
      { timeoutMs: config.copyTimeoutMs + (sealedLengthBytes * 1_000) / copyBytesPerSecondMin },
    );
    if (answer?.ok) return answer.value.checksum;
    if (answer === undefined) return undefined;
    endIfStale(this.#term, answer.failure);
    nodes.distrust(target.nodeId);
    const { reason, message } = answer.failure;
    world.logger.warn("a copy failed", { extent: extent.id, node: target.nodeId, reason, message });
    return undefined;
  }

  #sum(ids: Iterable<ExtentId>): number {
    let bytes = 0;
    for (const id of ids) bytes += this.#term.state.extent(id)?.sealedLengthBytes ?? 0;
    return bytes;
  }
}
