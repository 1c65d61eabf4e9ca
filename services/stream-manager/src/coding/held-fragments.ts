/**
 * Compares the fragments that nodes hold with the records: missing or damaged ones are lost, and are made anew. A node
 * is asked, page by page, when it is first heard of in a term, after every restart or new disk, when it has found
 * damage, and now and then. A fragment that no record explains is left alone and counted; people list and delete
 * it (stray-calls.ts).
 */
import type { ExtentId, ExtentVersion } from "@stamp/base";
import { extentId, extentVersion } from "@stamp/base";
import { sleep, Turns } from "@stamp/ports";
import type { AttemptRecord, ExtentRecord, FragmentPlace, ReplicaPlace } from "@stamp/stream";
import { samePlace, targetsOf } from "@stamp/stream";
import { ExtentFragments, fromWire, type HeldFragment } from "@stamp/wire";
import type { Term } from "../term/term.ts";

const pageExtents = 1_000;
const pageTimeoutMs = 5_000;
const pagePauseMs = 5;

const keyOf = (id: number, { nodeId, diskId, version }: FragmentPlace): string => `${id} ${nodeId} ${diskId} ${version}`;
const isSame = (one: FragmentPlace, other: FragmentPlace): boolean => one.version === other.version && samePlace(one, other);

interface Expected {
  readonly id: ExtentId;
  readonly version: ExtentVersion;
}

interface LostFragment extends FragmentPlace {
  /** True: it is damaged, and its good chunks can be read. False: it is missing. */
  readonly isThere: boolean;
}

export class HeldFragments {
  readonly #term: Term;
  /** Called when a fragment was found lost. */
  readonly #found: () => void;
  /** Lost fragments by extent. No list is empty. */
  readonly #lost = new Map<ExtentId, readonly LostFragment[]>();
  /** Fragments on a node that no record explains, by node. */
  readonly #strays = new Map<string, number>();
  /** Disk, incarnation and number of damaged fragments that a node was asked as, and when. */
  readonly #asked = new Map<string, { readonly as: string; readonly atMs: number }>();
  readonly #wanted = new Map<string, { readonly place: ReplicaPlace; readonly as: string }>();
  #busy = false;

  constructor(term: Term, found: () => void) {
    this.#term = term;
    this.#found = found;
  }

  isLost(id: ExtentId, place: FragmentPlace): boolean {
    return this.#lost.get(id)?.some((lost) => isSame(lost, place)) ?? false;
  }

  /** True if the fragment is lost because it has bad chunks: its good ones can be read. */
  isDamaged(id: ExtentId, place: FragmentPlace): boolean {
    return this.#lost.get(id)?.some((lost) => lost.isThere && isSame(lost, place)) ?? false;
  }

  get strays(): number {
    return [...this.#strays.values()].reduce((sum, count) => sum + count, 0);
  }

  /** A person deleted a stray of this node. */
  strayGone(nodeId: string): void {
    const count = this.#strays.get(nodeId) ?? 0;
    if (count > 0) this.#strays.set(nodeId, count - 1);
  }

  /** At every report of a node. `damaged`: number of fragments in which it has found damage; another number means that it has found more. */
  heard(place: ReplicaPlace, incarnation: number, damaged: number): void {
    const as = `${place.diskId} ${incarnation} ${damaged}`;
    const known = this.#asked.get(place.nodeId);
    const nowMs = this.#term.world.clock.monotonicMs();
    if (known?.as === as && nowMs - known.atMs < this.#term.config.syncEveryMs) return;
    this.#wanted.set(place.nodeId, { place, as });
    void this.#work();
  }

  /** An attempt has put fragments in the place of others: what is known of those is over. */
  made(id: ExtentId, attempt: AttemptRecord): void {
    const current = this.#term.state.extent(id)?.coded?.fragments ?? [];
    const made = targetsOf(attempt).map((target) => ({ ...target, version: attempt.version }));
    this.#keepLost(id, (lost) => current.some((place) => isSame(place, lost)) && !made.some((place) => isSame(place, lost)));
  }

  #lose(id: ExtentId, { nodeId, diskId, version }: FragmentPlace, isThere: boolean): void {
    const lost = { nodeId, diskId, version, isThere };
    this.#lost.set(id, [...(this.#lost.get(id) ?? []).filter((each) => !isSame(each, lost)), lost]);
  }

  #keepLost(id: ExtentId, isStillLost: (place: FragmentPlace) => boolean): void {
    const lost = this.#lost.get(id)?.filter(isStillLost) ?? [];
    if (lost.length > 0) this.#lost.set(id, lost);
    else this.#lost.delete(id);
  }

  async #work(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    for (let next = this.#next(); next !== undefined && !this.#term.ended.aborted; next = this.#next()) {
      const { place, as } = next;
      if (await this.#compare(place)) this.#asked.set(place.nodeId, { as, atMs: this.#term.world.clock.monotonicMs() });
    }
    this.#busy = false;
  }

  #next(): { readonly place: ReplicaPlace; readonly as: string } | undefined {
    for (const [nodeId, wanted] of this.#wanted) {
      this.#wanted.delete(nodeId);
      return wanted;
    }
    return undefined;
  }

  /** False: the node did not answer to the end; its next report asks for it again. */
  async #compare(place: ReplicaPlace): Promise<boolean> {
    const { ended, nodes, state, world } = this.#term;
    // The expected fragments are read first: one that is made meanwhile is not missed.
    const expected = await this.#expectedOn(place);
    if (expected.size === 0 && state.codedCount === 0 && state.attempts().size === 0) return true;
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
      more = answer.value.more && fragments.length > 0;
      for (const held of fragments) {
        const id = extentId(fromWire(held.extentId));
        const at = { ...place, version: extentVersion(fromWire(held.version)) };
        const isExpected = expected.delete(keyOf(id, at));
        if (isExpected && held.damage === "") this.#keepLost(id, (lost) => !isSame(lost, at));
        else if (isExpected) {
          this.#lose(id, at, true);
          isTroubled = true;
        } else if (!this.#isExplained(place, held)) strays += 1;
      }
      after = fragments.at(-1)?.extentId ?? after;
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
    if (isTroubled) this.#found();
    return true;
  }

  /** Fragments that are recorded to be on this disk. */
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

/** Every fragment that a record knows: in use, being made, or to be deleted. */
export function fragmentsOf({ coded, attempt, removedFragments }: ExtentRecord): FragmentPlace[] {
  const making = attempt === undefined || attempt.kind === "decode" ? [] : targetsOf(attempt);
  return [
    ...(coded?.fragments ?? []),
    ...(attempt === undefined ? [] : making.map((target) => ({ ...target, version: attempt.version }))),
    ...(removedFragments ?? []),
  ];
}
