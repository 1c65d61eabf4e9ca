/**
 * Records as dropped what no list holds any more (references are counted from the lists, in memory), and deletes replicas of extents that
 * were recorded as dropped, and those that repair replaced, after a grace period: whoever reads one still has that long. What it does not
 * know it never deletes. The grace of an extent counts from when it was recorded as dropped, by the wall clock, whoever leads since (rule
 * dropTimeRecorded), and at the latest from when this leader first saw it, by the monotonic clock. Replaced replicas and fragments: from the
 * latter.
 *
 * Invariant: a grace belongs to one removal (rule `graceOfItsRemoval`). A replica's place can leave `removed` (a decoding or a repair makes a
 * replica there) and come back: its grace then begins anew, and a deletion that was sent for the earlier removal does not end the later one.
 * Before each deletion the record is looked at as it is then: a person may have taken fragments back while another node was slow to answer.
 */
import type { ExtentId, Outcome } from "@stamp/base";
import { ok } from "@stamp/base";
import type { ExtentRecord, FragmentPlace, ReplicaPlace, StreamState, TransactionPlan } from "@stamp/stream";
import {
  dropsPerTransactionMax,
  holds,
  planDropUnreferenced,
  planForgetExtent,
  planForgetFragment,
  planForgetRemoved,
  samePlace,
} from "@stamp/stream";
import { ExtentFragments, toWire } from "@stamp/wire";
import { fragmentsOf } from "./coding/held-fragments.ts";
import { isNeverOpened } from "./nodes/later-replicas.ts";
import { SentDeletions } from "./sent-deletions.ts";
import { Rounds } from "./term/rounds.ts";
import type { Term } from "./term/term.ts";
import { endIfStale, extentNode } from "./term/term.ts";

const extentsPerTickMax = 32;
/** Looked at in one tick; most only wait for their grace to be over. */
const looksPerTickMax = 2_000;
const deleteTimeoutMs = 5_000;

export class Garbage {
  readonly #term: Term;
  readonly sent = new SentDeletions();
  /** Time at which this leader first saw a dropped extent, by the monotonic clock. */
  readonly #droppedMs = new Map<ExtentId, number>();
  /** When this leader first saw a removed replica or fragment. Each removal has an object of its own in the record, and the time goes with that object. */
  readonly #removedMs = new WeakMap<ReplicaPlace, number>();
  /** Stands for the removals of one place in `#removedMs`. */
  readonly #placeKeys = new Map<string, ReplicaPlace>();
  /** Replicas of dropped extents whose deletion was answered. */
  readonly #deleted = new Map<ExtentId, Set<string>>();
  readonly #rounds: Rounds<ExtentId>;
  #busy = false;

  constructor(term: Term) {
    this.#term = term;
    this.#rounds = new Rounds(() => term.state.garbage(), looksPerTickMax);
  }

  /** Deletes what is old enough. Called every tick. */
  async tick(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    try {
      await this.#dropUnreferenced();
      let budget = extentsPerTickMax;
      for (const id of this.#rounds.next()) {
        const extent = this.#term.state.extent(id);
        if (extent === undefined || this.#term.ended.aborted) continue;
        if (await (extent.phase === "dropped" ? this.#dropped(extent) : this.#removed(extent.id))) budget -= 1;
        if (budget === 0) return;
      }
    } finally {
      this.#busy = false;
    }
  }

  async #dropUnreferenced(): Promise<void> {
    const { ended, ledger, state, world } = this.#term;
    while (!ended.aborted && (state.unreferenced().size > 0 || state.looseSegments().size > 0)) {
      const extents = firstOf(state.unreferenced(), dropsPerTransactionMax);
      const segments = firstOf(state.looseSegments(), dropsPerTransactionMax - extents.length);
      const wallMs = world.rules.on("dropTimeRecorded") ? world.clock.wallMs() : undefined;
      const dropped = await ledger.commit((current) => planDropUnreferenced(current, extents, segments, wallMs));
      if (!dropped.ok) return;
    }
  }

  async #dropped(extent: ExtentRecord): Promise<boolean> {
    if (!this.#graceOver(this.#droppedMs, extent.id, extent.droppedAtMs)) return false;
    const places = [...extent.replicas, ...extent.removed, ...(extent.repair ? [extent.repair] : []), ...decodedOn(extent)];
    const fragments = fragmentsOf(extent);
    const deleted = this.#deleted.get(extent.id) ?? new Set();
    this.#deleted.set(extent.id, deleted);
    let tried = false;
    const once = async (key: string, place: ReplicaPlace, remove: () => Promise<boolean>): Promise<void> => {
      if (deleted.has(key) || !this.#deletable(place)) return;
      tried = true;
      if (await remove()) deleted.add(key);
    };
    await Promise.all([
      ...places.map((place) => once(replicaKey(place), place, () => this.#delete(extent, place))),
      ...fragments.map((place) => once(fragmentKey(place), place, () => this.#deleteFragment(extent, place))),
    ]);
    const keys = [...places.map(replicaKey), ...fragments.map(fragmentKey)];
    if (!keys.every((key) => deleted.has(key))) return tried;
    const forgotten = await this.#term.ledger.commit((state) => planForgetExtent(state, extent.id));
    if (forgotten.ok) {
      this.#deleted.delete(extent.id);
      this.#droppedMs.delete(extent.id);
    }
    return true;
  }

  async #removed(id: ExtentId): Promise<boolean> {
    let tried = false;
    for (const place of this.#live(id)?.removed ?? []) if (await this.#removedReplica(id, place)) tried = true;
    for (const place of this.#live(id)?.removedFragments ?? []) if (await this.#removedFragment(id, place)) tried = true;
    return tried;
  }

  /** Returns the record as it is now; undefined: it is dropped, and its files are deleted as those of a dropped extent. */
  #live(id: ExtentId): ExtentRecord | undefined {
    const extent = this.#term.ended.aborted ? undefined : this.#term.state.extent(id);
    return extent?.phase === "dropped" ? undefined : extent;
  }

  async #removedReplica(id: ExtentId, place: ReplicaPlace): Promise<boolean> {
    const extent = this.#live(id);
    // Only this removal: the place may have left the record since, or have come back.
    if (extent === undefined || !extent.removed.includes(place)) return false;
    const removal = this.#removal(id, place);
    if (!this.#graceOver(this.#removedMs, removal) || !this.#deletable(place)) return false;
    // A current replica may have been made in its place since: that one stays. A replica on another disk of the same node is not that one.
    const inUse = [...extent.replicas, ...(extent.repair ? [extent.repair] : []), ...decodedOn(extent)];
    const current = this.#term.world.rules.on("namedReplicasStay") && inUse.some((other) => samePlace(other, place));
    if (!current && !(await this.#delete(extent, place))) return true;
    // The removal may have left the record while its node was told.
    const isRecorded = (state: StreamState): boolean => removal !== place || (state.extent(id)?.removed.includes(place) ?? false);
    await this.#term.ledger.commit((state) => (isRecorded(state) ? planForgetRemoved(state, id, place) : nothing));
    return true;
  }

  async #removedFragment(id: ExtentId, place: FragmentPlace): Promise<boolean> {
    const extent = this.#live(id);
    if (extent === undefined || !extent.removedFragments?.includes(place) || this.sent.isKept(id)) return false;
    if (!this.#graceOver(this.#removedMs, place) || !this.#deletable(place)) return false;
    if (!(await this.#deleteFragment(extent, place))) return true;
    // A version is given once, but a person can take a fragment back, and a repair can remove it again.
    const isRecorded = (state: StreamState): boolean => state.extent(id)?.removedFragments?.includes(place) ?? false;
    await this.#term.ledger.commit((state) => (isRecorded(state) ? planForgetFragment(state, id, place) : nothing));
    return true;
  }

  /** Returns the key of a removal in `#removedMs`. */
  #removal(id: ExtentId, place: ReplicaPlace): ReplicaPlace {
    if (this.#term.world.rules.on("graceOfItsRemoval")) return place;
    const name = `${id} ${replicaKey(place)}`;
    const known = this.#placeKeys.get(name) ?? { ...place };
    this.#placeKeys.set(name, known);
    return known;
  }

  /**
   * `recordedMs`: since when, by the wall clock, if that is recorded. The wall clock is asked once, when this manager first sees it: a later step
   * ends no grace.
   */
  #graceOver<K>(seenMs: Seen<K>, key: K, recordedMs = Number.POSITIVE_INFINITY): boolean {
    const { clock } = this.#term.world;
    const nowMs = clock.monotonicMs();
    const sinceMs = seenMs.get(key) ?? nowMs - Math.max(0, clock.wallMs() - recordedMs);
    seenMs.set(key, sinceMs);
    return nowMs - sinceMs >= this.#term.config.deletionGraceMs;
  }

  /** True if the node can be told to delete, or its disk is gone and there is nothing to delete. */
  #deletable(place: ReplicaPlace): boolean {
    return this.#term.nodes.up(place.nodeId) || this.#forgotten(place);
  }

  /** True if the node was decommissioned, so that it never comes back with this disk. */
  #forgotten(place: ReplicaPlace): boolean {
    return this.#term.state.node(place.nodeId)?.duty === "decommissioned";
  }

  async #delete(extent: ExtentRecord, place: ReplicaPlace): Promise<boolean> {
    const { number, nodes } = this.#term;
    if (!nodes.reachable(place)) return nodes.up(place.nodeId) || this.#forgotten(place);
    const request = {
      smTerm: toWire(number),
      extentId: toWire(extent.id),
      version: toWire(extent.version),
      diskId: place.diskId,
      neverOpened: isNeverOpened(extent),
      creation: toWire(extent.creation ?? 0),
      holder: holds(extent, place) && !isNeverOpened(extent),
    };
    const answer = await extentNode(this.#term, place.nodeId)?.deleteExtent(request, { timeoutMs: deleteTimeoutMs });
    if (answer === undefined) return false;
    if (answer.ok) return true;
    endIfStale(this.#term, answer.failure);
    const isKept = answer.failure.reason === "unknownExtent";
    if (isKept && request.neverOpened) this.#term.nodes.later.note(place.nodeId, extent.id, answer.failure.message);
    return isKept;
  }

  async #deleteFragment({ creation, id }: ExtentRecord, place: FragmentPlace): Promise<boolean> {
    const isDone = await this.#tellFragment(id, creation ?? 0, place);
    if (isDone) this.sent.done(id, place);
    return isDone;
  }

  /** Tells a node to delete exactly this version of a fragment: one made in its place has another version. */
  async #tellFragment(id: ExtentId, creation: number, place: FragmentPlace): Promise<boolean> {
    const { nodes, number, world } = this.#term;
    if (!nodes.reachable(place)) return nodes.up(place.nodeId) || this.#forgotten(place);
    const address = nodes.address(place.nodeId);
    if (address === undefined) return false;
    const request = {
      smTerm: toWire(number),
      extentId: toWire(id),
      fragmentVersion: toWire(place.version),
      diskId: place.diskId,
      creation: toWire(creation),
    };
    this.sent.send(id, place);
    const answer = await world.transport.client(address, ExtentFragments).deleteFragment(request, { timeoutMs: deleteTimeoutMs });
    if (!answer.ok) endIfStale(this.#term, answer.failure);
    return answer.ok;
  }
}

interface Seen<K> {
  get(key: K): number | undefined;
  set(key: K, sinceMs: number): unknown;
}

const nothing: Outcome<TransactionPlan> = ok({ changes: [], reads: [] });

const replicaKey = ({ nodeId, diskId }: ReplicaPlace): string => `${nodeId} ${diskId}`;
const fragmentKey = ({ nodeId, diskId, version }: FragmentPlace): string => `${nodeId} ${diskId} fragment ${version}`;

/** Returns where a decoding makes replicas. */
const decodedOn = ({ attempt }: ExtentRecord): readonly ReplicaPlace[] => (attempt?.kind === "decode" ? attempt.targets : []);

function firstOf<T>(items: Iterable<T>, count: number): T[] {
  const found: T[] = [];
  for (const item of items) {
    if (found.length >= count) break;
    found.push(item);
  }
  return found;
}
