/**
 * Compares the fragments that nodes hold with the records: missing or damaged ones are lost, and are made anew. A node
 * is asked, page by page, when it is first heard of in a term, after every restart or new disk, when it has found
 * damage, and now and then. A fragment that no record explains is left alone and counted; people list and delete
 * it (stray-calls.ts). One of a higher version than its extent's record proves that the metadata are older than the
 * extent, as after a restore from a copy: no attempt gets its version, and people take it back (fragment-adoption.ts).
 */
import type { ExtentId, ExtentVersion } from "@stamp/base";
import { extentId, extentVersion } from "@stamp/base";
import { sleep, Turns } from "@stamp/ports";
import type { AttemptRecord, ExtentRecord, FragmentPlace, ReplicaPlace } from "@stamp/stream";
import { samePlace, targetsOf } from "@stamp/stream";
import { ExtentFragments, fromWire, type HeldFragment } from "@stamp/wire";
import { Comparisons, nextAfter, type ToCompare } from "../nodes/comparisons.ts";
import type { Term } from "../term/term.ts";

const pageExtents = 1_000;
const pageTimeoutMs = 5_000;
const pagePauseMs = 5;
/** Extents with newer fragments that are remembered of one node; of those beyond, only by how much the newest is ahead of its record. */
const newerPerNodeMax = 10_000;

/** Fragment to compare. `as`: disk, incarnation and damage that the node reported. */
interface Wanted extends ToCompare {
  /** Number of fragments that the node holds. */
  readonly count: number;
}

/** Fragments on a node that are newer than the records of their extents. */
interface Newer {
  /** Number and highest version, by extent. */
  readonly of: Map<ExtentId, { readonly count: number; readonly version: number }>;
  /** Largest distance of versions between a fragment that is not remembered and its record. */
  ahead: number;
}

const keyOf = (id: number, { nodeId, diskId, version }: FragmentPlace): string => `${id} ${nodeId} ${diskId} ${version}`;
const isSame = (one: FragmentPlace, other: FragmentPlace): boolean => one.version === other.version && samePlace(one, other);

interface Expected {
  readonly id: ExtentId;
  readonly version: ExtentVersion;
}

interface LostFragment extends FragmentPlace {
  /** True: it has bad chunks, and the others can be read. False: it is missing, or its head or table is bad. */
  readonly isReadable: boolean;
}

export class HeldFragments {
  readonly #term: Term;
  /** Called when a fragment was found lost. */
  readonly #found: () => void;
  /** Lost fragments by extent. No list is empty. */
  readonly #lost = new Map<ExtentId, readonly LostFragment[]>();
  /** Fragments on a node that no record explains, by node. */
  readonly #strays = new Map<string, number>();
  /** Keyed by node and disk; a disk that was not compared to the end in this term has none. */
  readonly #newer = new Map<string, Newer>();
  readonly #comparisons: Comparisons<Wanted>;

  constructor(term: Term, found: () => void) {
    this.#term = term;
    this.#found = found;
    this.#comparisons = new Comparisons(term, "fragments", ({ place, count }) => this.#compare(place, count));
  }

  isLost(id: ExtentId, place: FragmentPlace): boolean {
    return this.#lost.get(id)?.some((lost) => isSame(lost, place)) ?? false;
  }

  /** True if the fragment is lost because of bad chunks: its good ones can be read. */
  isDamaged(id: ExtentId, place: FragmentPlace): boolean {
    return this.#lost.get(id)?.some((lost) => lost.isReadable && isSame(lost, place)) ?? false;
  }

  get strays(): number {
    return [...this.#strays.values()].reduce((sum, count) => sum + count, 0);
  }

  /** True if the disk was compared with the records in this term: fragments on it that an attempt could meet are known. */
  isCompared({ nodeId, diskId }: ReplicaPlace): boolean {
    return this.#newer.has(`${nodeId} ${diskId}`);
  }

  /** Returns the highest version of an extent that fragments on nodes are known to have; 0: none is newer than the record. */
  heldVersion({ id, version }: ExtentRecord): number {
    let highest = 0;
    for (const { of, ahead } of this.#newer.values())
      highest = Math.max(highest, of.get(id)?.version ?? 0, ahead === 0 ? 0 : version + ahead);
    return highest;
  }

  /** Returns the number of fragments on nodes that are newer than this record, as far as is remembered. */
  newerThan({ id, version }: ExtentRecord): number {
    let count = 0;
    for (const { of } of this.#newer.values()) {
      const known = of.get(id);
      if (known !== undefined && known.version > version) count += known.count;
    }
    return count;
  }

  /** Yields extents of which nodes hold fragments that are newer than the record; each as often as there are such nodes. */
  *newerExtents(): Generator<ExtentId> {
    for (const { of } of this.#newer.values()) {
      for (const [id, { version }] of of) {
        const extent = this.#term.state.extent(id);
        if (extent === undefined || version <= extent.version) of.delete(id);
        else yield id;
      }
    }
  }

  /** Notes that a fragment that the record names is not there. */
  missing(id: ExtentId, place: FragmentPlace): void {
    this.#lose(id, place, false);
  }

  /** Notes that a person deleted a stray of this node. */
  strayGone(nodeId: string): void {
    const count = this.#strays.get(nodeId) ?? 0;
    if (count > 0) this.#strays.set(nodeId, count - 1);
  }

  /**
   * At every report of a node. `damage`: another one than in the report before means that the node has found more. `count`: number of fragments that
   * it holds.
   */
  heard(place: ReplicaPlace, incarnation: number, { damage, count }: { readonly damage: string; readonly count: number }): void {
    const as = `${place.diskId} ${incarnation} ${damage}`;
    this.#comparisons.heard({ place, as, count });
  }

  /** Notes that an attempt has put fragments in the place of others: what is known of those is over. */
  made(id: ExtentId, attempt: AttemptRecord): void {
    const current = this.#term.state.extent(id)?.coded?.fragments ?? [];
    const made = targetsOf(attempt).map((target) => ({ ...target, version: attempt.version }));
    this.#keepLost(id, (lost) => current.some((place) => isSame(place, lost)) && !made.some((place) => isSame(place, lost)));
  }

  #lose(id: ExtentId, { nodeId, diskId, version }: FragmentPlace, isReadable: boolean): void {
    const lost = { nodeId, diskId, version, isReadable };
    this.#lost.set(id, [...(this.#lost.get(id) ?? []).filter((each) => !isSame(each, lost)), lost]);
  }

  #keepLost(id: ExtentId, isStillLost: (place: FragmentPlace) => boolean): void {
    const lost = this.#lost.get(id)?.filter(isStillLost) ?? [];
    if (lost.length > 0) this.#lost.set(id, lost);
    else this.#lost.delete(id);
  }

  /** Resolves to false if the node did not answer to the end. Throws if its listing can't be true. */
  async #compare(place: ReplicaPlace, count: number): Promise<boolean> {
    const { ended, nodes, state, world } = this.#term;
    // The expected fragments are read first: one that is made meanwhile is not missed.
    const expected = await this.#expectedOn(place);
    const newer: Newer = { of: new Map(), ahead: 0 };
    const key = `${place.nodeId} ${place.diskId}`;
    if (expected.size === 0 && state.codedCount === 0 && state.attempts().size === 0 && count === 0) {
      this.#newer.set(key, newer);
      return true;
    }
    let strays = 0;
    let isTroubled = false;
    let after = 0n;
    for (let more = true; more; ) {
      const address = nodes.address(place.nodeId);
      if (address === undefined) return false;
      const client = world.transport.client(address, ExtentFragments);
      const answer = await client.listFragments({ afterExtentId: after, limit: pageExtents }, { timeoutMs: pageTimeoutMs });
      if (ended.aborted || !answer.ok || !nodes.reachable(place)) return false;
      const { fragments } = answer.value;
      more = answer.value.more;
      after = nextAfter(after, fragments, more);
      for (const held of fragments) {
        const id = extentId(fromWire(held.extentId));
        const at = { ...place, version: extentVersion(fromWire(held.version)) };
        const isExpected = expected.delete(keyOf(id, at));
        if (isExpected && held.damage === "") this.#keepLost(id, (lost) => !isSame(lost, at));
        else if (isExpected) {
          this.#lose(id, at, held.chunksReadable);
          isTroubled = true;
        } else if (!this.#isExplained(place, held)) {
          strays += 1;
          this.#count(newer, held);
        }
      }
      await sleep(world.clock, pagePauseMs, ended);
    }
    // An empty disk misses a fragment of every extent.
    const turns = new Turns(world.clock);
    for (const { id, version } of expected.values()) {
      // It may have been replaced while the node was asked.
      const current = state.extent(id)?.coded?.fragments.find((each) => isSame(each, { ...place, version }));
      if (current !== undefined) {
        this.#lose(id, current, false);
        isTroubled = true;
      }
      if (turns.over) await turns.next();
      if (ended.aborted) return false;
    }
    this.#strays.set(place.nodeId, strays);
    for (const known of this.#newer.keys()) if (known.startsWith(`${place.nodeId} `)) this.#newer.delete(known);
    this.#newer.set(key, newer);
    if (isTroubled) this.#found();
    return true;
  }

  /** Counts an unexplained fragment that is newer than its extent's record. */
  #count(newer: Newer, held: HeldFragment): void {
    const id = extentId(fromWire(held.extentId));
    const version = fromWire(held.version);
    const extent = this.#term.state.extent(id);
    if (extent === undefined || version <= extent.version) return;
    const known = newer.of.get(id);
    if (known === undefined && newer.of.size >= newerPerNodeMax) newer.ahead = Math.max(newer.ahead, version - extent.version);
    else newer.of.set(id, { count: (known?.count ?? 0) + 1, version: Math.max(known?.version ?? 0, version) });
  }

  /** Returns the fragments that are recorded to be on this disk. */
  async #expectedOn(place: ReplicaPlace): Promise<Map<string, Expected>> {
    const { ended, state, world } = this.#term;
    const expected = new Map<string, Expected>();
    if (state.codedCount === 0) return expected;
    const turns = new Turns(world.clock);
    for (const id of this.#lost.keys()) {
      if (state.extent(id) === undefined) this.#lost.delete(id);
      if (turns.over) await turns.next();
    }
    for (const { id, coded, phase } of state.extents()) {
      if (phase === "sealed")
        for (const each of coded?.fragments ?? []) if (samePlace(each, place)) expected.set(keyOf(id, each), { id, version: each.version });
      if (turns.over) await turns.next();
      if (ended.aborted) break;
    }
    return expected;
  }

  #isExplained(place: ReplicaPlace, held: HeldFragment): boolean {
    const extent = this.#term.state.extent(extentId(fromWire(held.extentId)));
    return extent !== undefined && fragmentsOf(extent).some((each) => samePlace(each, place) && each.version === fromWire(held.version));
  }
}

/** Returns every fragment that a record knows: in use, being made, or to be deleted. */
export function fragmentsOf({ coded, attempt, removedFragments }: ExtentRecord): FragmentPlace[] {
  const making = attempt === undefined || attempt.kind === "decode" ? [] : targetsOf(attempt);
  return [
    ...(coded?.fragments ?? []),
    ...(attempt === undefined ? [] : making.map((target) => ({ ...target, version: attempt.version }))),
    ...(removedFragments ?? []),
  ];
}
