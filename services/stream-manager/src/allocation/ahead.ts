/**
 * Extents that are allocated ahead of need: durable on every replica, told to nobody, in no list. The next call that needs a successor
 * takes it. At most one for each stream; it is dropped when it fits no more (another owner, another last extent, a node in trouble), and
 * made anew elsewhere when one of its nodes is down or to be emptied. One for a stream that is to come waits for that a while.
 */
import type { ExtentId, OwnerEpoch } from "@stamp/base";
import type { Term } from "../term/term.ts";
import type { Allocator } from "./allocator.ts";

/** Bounds of successors for streams that are to come: how many, and for how long. */
const toComeMax = 256;
const toComeMs = 60_000;

interface Prepared {
  readonly sinceMs: number;
  readonly ownerEpoch: OwnerEpoch;
  readonly predecessor: ExtentId | undefined;
  /** Number of the extent; undefined: it was not made. */
  readonly made: Promise<ExtentId | undefined>;
  id: ExtentId | undefined;
}

export class ExtentsAhead {
  readonly #term: Term;
  readonly #allocator: Allocator;
  readonly #prepared = new Map<string, Prepared>();

  constructor(term: Term, allocator: Allocator) {
    this.#term = term;
    this.#allocator = allocator;
  }

  get count(): number {
    return this.#prepared.size;
  }

  /** Makes an extent ahead. Resolves when it is made, or was not. */
  prepare(stream: string, ownerEpoch: OwnerEpoch, predecessor: ExtentId | undefined): Promise<unknown> {
    const known = this.#prepared.get(stream);
    if (known?.ownerEpoch === ownerEpoch && known.predecessor === predecessor) return known.made;
    if (known !== undefined) this.#forget(stream, known);
    const isThere = (name: string): boolean => this.#term.state.stream(name) !== undefined;
    if (!isThere(stream) && [...this.#prepared.keys()].filter((name) => !isThere(name)).length >= toComeMax) return Promise.resolve();
    const where = this.#elsewhere(predecessor);
    const allocation = this.#allocator.allocate({ stream, ownerEpoch, predecessor, ...where, wanted: () => false });
    const made = allocation.then((outcome) => (outcome.ok ? outcome.value : undefined));
    const prepared: Prepared = { sinceMs: this.#term.world.clock.monotonicMs(), ownerEpoch, predecessor, made, id: undefined };
    this.#prepared.set(stream, prepared);
    const failed = (): void => {
      if (this.#prepared.get(stream) === prepared) this.#prepared.delete(stream);
    };
    return made.then((id) => {
      prepared.id = id;
      if (id === undefined) failed();
    }, failed);
  }

  /** Gives the extent to the caller, who opens or drops it. */
  async take(
    stream: string,
    ownerEpoch: OwnerEpoch,
    predecessor: ExtentId | undefined,
    avoidAddresses: readonly string[],
  ): Promise<ExtentId | undefined> {
    const prepared = this.#prepared.get(stream);
    if (prepared === undefined) return undefined;
    this.#prepared.delete(stream);
    const id = await prepared.made;
    if (id === undefined) return undefined;
    if (prepared.ownerEpoch === ownerEpoch && prepared.predecessor === predecessor && this.#isGood(id, avoidAddresses)) return id;
    this.#allocator.drop(id);
    return undefined;
  }

  /** Takes the first extent made ahead, if it is there now; nobody waits for it. */
  async takeMade(stream: string, ownerEpoch: OwnerEpoch): Promise<ExtentId | undefined> {
    return this.#prepared.get(stream)?.id === undefined ? undefined : this.take(stream, ownerEpoch, undefined, []);
  }

  /** Drops extents that waited too long. Called every tick. */
  sweep(): void {
    const { state, world } = this.#term;
    const nowMs = world.clock.monotonicMs();
    for (const [stream, prepared] of this.#prepared) {
      const isToCome = state.stream(stream) === undefined && nowMs - prepared.sinceMs < toComeMs;
      const fits = state.stream(stream)?.ownerEpoch === prepared.ownerEpoch && state.list(stream).last === prepared.predecessor;
      if (!isToCome && !fits) this.#forget(stream, prepared);
      else if (prepared.id !== undefined && this.#isForsaken(prepared.id)) {
        this.#forget(stream, prepared);
        void this.prepare(stream, prepared.ownerEpoch, prepared.predecessor);
      }
    }
  }

  /** True if the stream may take the extent much later only: until then it would keep a node from being emptied. */
  #isForsaken(id: ExtentId): boolean {
    const { nodes, state } = this.#term;
    const leaves = (nodeId: string): boolean => state.node(nodeId)?.duty === "draining";
    return state.extent(id)?.replicas.some((replica) => leaves(replica.nodeId) || nodes.down(replica)) === true;
  }

  #forget(stream: string, prepared: Prepared): void {
    this.#prepared.delete(stream);
    const drop = (id: ExtentId | undefined): void => {
      if (id !== undefined) this.#allocator.drop(id);
    };
    prepared.made.then(drop, () => {});
  }

  /**
   * When the predecessor fails it is for one of its nodes: the successor has as few of them as possible, and not the primary, on which also
   * every lost connection to the owner counts.
   */
  #elsewhere(predecessor: ExtentId | undefined): { readonly avoidAddresses: readonly string[]; readonly spare: readonly string[] } {
    const { config, nodes, state } = this.#term;
    const extent = predecessor === undefined ? undefined : state.extent(predecessor);
    const spare = extent?.replicas.map(({ nodeId }) => nodeId) ?? [];
    const primary = nodes.address(spare[0] ?? "");
    const enough = primary !== undefined && nodes.placeable().length > config.copies;
    return { avoidAddresses: enough ? [primary] : [], spare };
  }

  #isGood(id: ExtentId, avoidAddresses: readonly string[]): boolean {
    const { config, nodes, state } = this.#term;
    const extent = state.extent(id);
    if (extent?.phase !== "allocating") return false;
    const distrusted = nodes.distrusted();
    const placeable = new Set(nodes.placeable().map((node) => node.nodeId));
    const { replicas } = extent;
    if (replicas.length < Math.min(config.copies, placeable.size)) return false;
    return replicas.every(
      ({ nodeId }) => placeable.has(nodeId) && !distrusted.has(nodeId) && !avoidAddresses.includes(nodes.address(nodeId) ?? ""),
    );
  }
}
