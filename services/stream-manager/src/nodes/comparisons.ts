/**
 * Comparisons of what nodes hold with the records, several nodes beside each other. NodeSync compares replicas, HeldFragments fragments.
 *
 * Invariants:
 * - A node is compared once at a time. One that takes longer than `slowMs` leaves its place to another one and goes on, so that slow nodes hold up
 *   no other until there are `slowMax` of them.
 * - A listing that can't be true ends the comparison with its node, not the process: the log names the node, which is asked again after `restMs`.
 */
import type { ReplicaPlace } from "@stamp/stream";
import type { Term } from "../term/term.ts";

/** Nodes that are compared at the same time. Each keeps the expected content of its disk in memory meanwhile. */
const besideMax = 4;
const slowMax = 32;
/** Time after which a comparison under way takes no place any more, in milliseconds. */
const slowMs = 10_000;
/** Time after which a node with an impossible listing is asked again, in milliseconds. */
const restMs = 60_000;

export interface ToCompare {
  readonly place: ReplicaPlace;
  /** Disk, incarnation, and whatever else makes another comparison worth while. */
  readonly as: string;
}

export class Comparisons<T extends ToCompare> {
  readonly #term: Term;
  readonly #what: string;
  /** Resolves to false if the node did not answer to the end; its next report asks for it again. */
  readonly #compare: (node: T) => Promise<boolean>;
  /** Disk and incarnation that were compared last, and when, by node. */
  readonly #compared = new Map<string, { readonly as: string; readonly atMs: number }>();
  /** Nodes with an impossible listing, each with the end of its rest. */
  readonly #resting = new Map<string, { readonly as: string; readonly untilMs: number }>();
  readonly #wanted = new Map<string, T>();
  /** Nodes that are being compared, as what, and since when. */
  readonly #running = new Map<string, { readonly as: string; readonly sinceMs: number }>();

  /** `what`: kind of things that are listed, for the log. */
  constructor(term: Term, what: string, compare: (node: T) => Promise<boolean>) {
    this.#term = term;
    this.#what = what;
    this.#compare = compare;
  }

  /** Takes note of a node's report. */
  heard(node: T): void {
    const { nodeId } = node.place;
    const { config, world } = this.#term;
    const nowMs = world.clock.monotonicMs();
    const known = this.#compared.get(nodeId);
    if (known?.as === node.as && nowMs - known.atMs < config.syncEveryMs) return;
    const rest = this.#resting.get(nodeId);
    if (rest?.as === node.as && nowMs < rest.untilMs) return;
    if (this.#running.get(nodeId)?.as === node.as) return;
    this.#wanted.set(nodeId, node);
    this.#start();
  }

  #start(): void {
    const nowMs = this.#term.world.clock.monotonicMs();
    for (const [nodeId, node] of this.#wanted) {
      const slow = [...this.#running.values()].filter(({ sinceMs }) => nowMs - sinceMs >= slowMs).length;
      if (this.#running.size >= besideMax + Math.min(slow, slowMax) || this.#term.ended.aborted) return;
      if (this.#running.has(nodeId)) continue;
      this.#wanted.delete(nodeId);
      this.#running.set(nodeId, { as: node.as, sinceMs: nowMs });
      void this.#run(node);
    }
  }

  async #run(node: T): Promise<void> {
    const { ended, world } = this.#term;
    const { as, place } = node;
    try {
      const isDone = await this.#compare(node);
      if (isDone) this.#compared.set(place.nodeId, { as, atMs: world.clock.monotonicMs() });
      if (isDone) this.#resting.delete(place.nodeId);
    } catch (error) {
      if (ended.aborted) return;
      this.#resting.set(place.nodeId, { as, untilMs: world.clock.monotonicMs() + restMs });
      const fields = { node: place.nodeId, what: this.#what, why: String(error), askedAgainInMs: restMs };
      world.logger.error("a node's listing can't be compared with the records", fields);
    } finally {
      this.#running.delete(place.nodeId);
      this.#start();
    }
  }
}

/** Returns the extent after which the next page begins. Throws if a page is not what was asked for: then the listing would not end, or leave out extents. */
export function nextAfter(after: bigint, listed: readonly { readonly extentId: bigint }[], more: boolean): bigint {
  let last = after;
  for (const [at, { extentId }] of listed.entries()) {
    if (extentId < last || (at === 0 && extentId === last)) throw new Error(`extent ${extentId} is listed after extent ${last}`);
    last = extentId;
  }
  if (more && listed.length === 0) throw new Error(`nothing is listed after extent ${after}, and more is to follow`);
  return last;
}
