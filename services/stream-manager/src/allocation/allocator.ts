/**
 * Makes new extents: recorded `allocating`, created durably on every replica, then given to whoever opens them. A node that fails is
 * passed over and the extent placed anew; the failed one is dropped, nobody was told of it.
 */
import type { ExtentId, Outcome, OwnerEpoch } from "@stamp/base";
import { extentId, Histogram, JoinedWork, neededLevels, ok, refused, WakeUp } from "@stamp/base";
import { sleep } from "@stamp/ports";
import type { ExtentRecord, PlacementNode } from "@stamp/stream";
import { place, planAllocate, planDropAllocating, planReserveIds } from "@stamp/stream";
import { toWire } from "@stamp/wire";
import type { Steps } from "../seal/steps.ts";
import type { Term } from "../term/term.ts";
import { endIfStale, extentNode } from "../term/term.ts";

export interface WantedExtent {
  readonly stream: string;
  readonly ownerEpoch: OwnerEpoch;
  readonly predecessor: ExtentId | undefined;
  readonly avoidAddresses: readonly string[];
  /** Nodes that are taken only when there are not enough others. */
  readonly spare?: readonly string[];
  /** Returns false when nobody waits for the extent any more. */
  readonly wanted: () => boolean;
  readonly steps?: Steps;
}

const idsAtOnce = 256;

export class Allocator {
  readonly #term: Term;
  #nextId = 0;
  #reservedTo = 0;
  readonly #reservations = new JoinedWork<"ids", Outcome<void>>();
  #waitingForNodes = 0;
  /** Allocations in this term, also ahead of need. */
  readonly took: Histogram;

  constructor(term: Term) {
    this.took = new Histogram(term.world.clock);
    this.#term = term;
  }

  waits(): string[] {
    const { config, nodes } = this.#term;
    if (this.#waitingForNodes === 0) return this.#lacksRoom(nodes.placeable().length) ? [`no new extent can be made: ${this.lacks}`] : [];
    return [
      `${this.#waitingForNodes} new extents wait for extent nodes: ${nodes.upCount} are up, ${nodes.placeable().length} of them have room on their disks, at least ${config.minCopies} must take them`,
    ];
  }

  /** Returns why no extent can be placed now, for people. */
  get lacks(): string | undefined {
    const { config, nodes } = this.#term;
    const placeable = nodes.placeable().length;
    if (placeable >= config.minCopies) return undefined;
    return `${placeable} of ${nodes.upCount} extent nodes that are up have room on their disks for new extents, ${config.minCopies} are needed`;
  }

  /** Makes an extent that is durable on every replica and not known to anybody. */
  async allocate(request: WantedExtent): Promise<Outcome<ExtentId>> {
    const { ended, ledger, world } = this.#term;
    /** Nodes that did not create the extent in time. */
    const passedOver = new Set<string>();
    const sinceMs = world.clock.monotonicMs();
    for (;;) {
      const replicas = await this.#place(request, passedOver);
      if (!replicas.ok) return replicas;
      const id = await this.mintId();
      if (!id.ok) return id;
      const { stream, ownerEpoch, predecessor } = request;
      const creation = this.#mintCreation();
      const allocation = { stream, ownerEpoch, predecessor, id: extentId(id.value), replicas: replicas.value, creation };
      const recorded = await ledger.commit((state) => planAllocate(state, allocation, world.rules));
      if (!recorded.ok) return recorded;
      request.steps?.reached("allocationRecorded");
      const failed = await this.#createEverywhere(allocation.id, predecessor);
      if (ended.aborted) return refused("unavailable", "notLeader", "the term ended during the allocation");
      if (failed.length === 0) {
        request.steps?.reached("created");
        this.took.since(sinceMs);
        return ok(allocation.id);
      }
      for (const nodeId of failed) passedOver.add(nodeId);
      this.drop(allocation.id);
      if (!request.wanted()) return refused("unavailable", "noPlacement", `nodes ${failed.join(", ")} did not create extent ${id.value}`);
      await sleep(world.clock, 5, ended);
    }
  }

  /** Drops an extent that was not opened, in the background; else the next leader does. */
  drop(id: ExtentId): void {
    void this.#term.ledger.commit((state) => planDropAllocating(state, [id]));
  }

  /** Returns a new number for an extent or segment; no leader ever gives it again. */
  async mintId(): Promise<Outcome<number>> {
    const { ledger, state } = this.#term;
    while (this.#nextId >= this.#reservedTo) {
      const reserved = await this.#reservations.run("ids", async () => {
        const from = state.nextId;
        const made = await ledger.commit((current) => planReserveIds(current, idsAtOnce));
        if (made.ok) {
          this.#nextId = from;
          this.#reservedTo = from + idsAtOnce;
        }
        return made;
      });
      if (!reserved.ok) return reserved;
    }
    this.#nextId += 1;
    return ok(this.#nextId - 1);
  }

  /** Returns a random creation number, so that no older metadata store gives it again; undefined: the stamp's level is too low. */
  #mintCreation(): number | undefined {
    const { level, world } = this.#term;
    if (!level.allows(neededLevels.creationNumbers)) return undefined;
    return 1 + (world.random.uint32() % 0x20_0000) * 0x1_0000_0000 + Math.min(world.random.uint32(), 0xffff_fffe);
  }

  /** Waits for nodes as long as somebody waits for the extent. Refuses at once if it is room that lacks. */
  async #place(request: WantedExtent, passedOver: ReadonlySet<string>): Promise<Outcome<PlacementNode[]>> {
    const { config, ended, nodes, world } = this.#term;
    const { copies, minCopies } = config;
    let waiting = false;
    try {
      for (;;) {
        const candidates = nodes.placeable();
        const avoid = new Set([...nodes.distrusted(), ...passedOver]);
        for (const node of candidates) {
          const address = nodes.address(node.nodeId);
          if (address !== undefined && request.avoidAddresses.includes(address)) avoid.add(node.nodeId);
        }
        const spare = new Set([...nodes.slow(), ...(request.spare ?? [])]);
        const chosen = place({ nodes: candidates, copies, minCopies, avoid, spare, random: () => world.random.float() });
        // Nodes that are known from before get the time to report before an extent is made with fewer copies.
        if (chosen.length >= copies || (chosen.length >= minCopies && !nodes.settling)) return ok(chosen);
        const left = ended.aborted || !request.wanted();
        if (left || this.#lacksRoom(candidates.length)) {
          const message = `${candidates.length} of ${nodes.upCount} extent nodes that are up have room on their disks for new extents, ${minCopies} are needed`;
          // The caller asks again at once what is `unavailable`.
          return refused(left ? "unavailable" : "resourceExhausted", "noPlacement", message);
        }
        if (!waiting) {
          waiting = true;
          this.#waitingForNodes += 1;
        }
        await nodes.changed(100);
      }
    } finally {
      if (waiting) this.#waitingForNodes -= 1;
    }
  }

  /** Returns true if waiting is of no use: disks are full, and nodes that are down would not be enough if all of them came back. */
  #lacksRoom(candidates: number): boolean {
    const { config, nodes } = this.#term;
    return nodes.fullCount > 0 && candidates + nodes.awaitedCount < config.minCopies;
  }

  /** Creates the extent on all its nodes. Returns the nodes that failed. */
  async #createEverywhere(id: ExtentId, predecessor: ExtentId | undefined): Promise<string[]> {
    const extent = this.#term.state.extent(id);
    if (extent?.phase !== "allocating") return [];
    const { clock, rules } = this.#term.world;
    const { nodes } = this.#term;
    const startedMs = clock.monotonicMs();
    const waiting = new Set<string>();
    const failed: string[] = [];
    const answered = new WakeUp();
    for (const { nodeId } of extent.replicas) {
      waiting.add(nodeId);
      void this.#create(extent, nodeId, predecessor).then((created) => {
        if (!created && waiting.has(nodeId)) {
          nodes.distrust(nodeId);
          failed.push(nodeId);
        }
        waiting.delete(nodeId);
        answered.notify();
      });
    }
    // The seal that runs beside this may find out that a node does not answer: its deadline is not waited for.
    const forget = nodes.onTrouble(() => answered.notify());
    while (waiting.size > 0 && rules.on("createdOnEveryReplica")) {
      await answered.next;
      for (const nodeId of nodes.inTroubleSince(startedMs)) if (waiting.delete(nodeId)) failed.push(nodeId);
    }
    forget();
    return failed;
  }

  async #create(extent: ExtentRecord, nodeId: string, predecessor: ExtentId | undefined): Promise<boolean> {
    const { config, nodes, number, stampId, world } = this.#term;
    const answer = await extentNode(this.#term, nodeId)?.createExtent(
      {
        smTerm: toWire(number),
        extentId: toWire(extent.id),
        ownerEpoch: toWire(extent.ownerEpoch),
        version: toWire(extent.version),
        replicas: extent.replicas.map((replica) => ({
          nodeId: replica.nodeId,
          address: nodes.address(replica.nodeId) ?? "",
          diskId: replica.diskId,
        })),
        stampId,
        creation: toWire(extent.creation ?? 0),
        stream: extent.stream,
        predecessor: toWire(predecessor ?? 0),
      },
      { timeoutMs: config.createTimeoutMs },
    );
    if (answer?.ok) return true;
    if (answer !== undefined) {
      endIfStale(this.#term, answer.failure);
      world.logger.warn("a replica was not created", { extent: extent.id, node: nodeId, reason: answer.failure.reason });
    }
    return false;
  }
}
