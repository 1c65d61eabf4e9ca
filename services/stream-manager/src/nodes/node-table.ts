/**
 * Health of the extent nodes, from their reports. Kept in memory only: a new leader gives every node the time to report before it takes
 * it for down. Their addresses and disks are in the metadata store (NodeRecord).
 */
import type { ExtentId } from "@stamp/base";
import type { Clock } from "@stamp/ports";
import { within } from "@stamp/ports";
import type { ExtentRecord, NodeRecord, PlacementNode, ReplicaPlace, ReportNumbers, StreamState } from "@stamp/stream";
import { LaterReplicas } from "./later-replicas.ts";

export interface ReportedLoad {
  readonly reportNumber: number;
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** Files that can still be made on its disk, and that it can hold; undefined: no fixed number, or not told. */
  readonly freeFiles?: number | undefined;
  readonly totalFiles?: number | undefined;
  readonly extentCount: number;
  readonly acceptsNewExtents: boolean;
}

export interface Quarantined {
  /** Creation number that the replica tells; 0: none. */
  readonly creation: number;
  readonly durableBytes: number;
  readonly version: number;
  readonly why: string;
}

interface Health {
  readonly diskId: string;
  incarnation: number;
  lastSeenMs: number;
  /** First report since the node was down last. */
  readonly upSinceMs: number;
  load: ReportedLoad;
  /** Replicas on the node that no record explains; only a person deletes them. */
  readonly quarantined: Map<ExtentId, Quarantined>;
  /** Time of the last failed call to the node, in milliseconds. */
  distrustedMs: number;
  /** Time at which others last waited for the node, in milliseconds. */
  slowMs: number;
}

/** A term far above the leader's that a node obeys, and the disk and start of the node that said so. */
interface FarTerm {
  readonly term: number;
  readonly diskId: string;
  readonly incarnation: number;
}

const quarantinedPerNodeMax = 1_000;
const distrustMs = 2_000;
/** Time that a new leader gives an unreachable node, in milliseconds: after a restart of everything nodes are late by less. */
const unreachedAfterMs = 500;
/** Time for which a node must have been up before open extents are sealed for its sake, in milliseconds. */
const steadyMs = 5_000;
/** Time after which trouble with a node that stayed up counts no more, in milliseconds. */
const forgivenAfterMs = 60_000;
/** Time for which a late report of a disk that was replaced may still be under way, in milliseconds. */
const retiredMs = 10_000;

export class NodeTable {
  readonly #clock: Clock;
  readonly #state: StreamState;
  readonly #downAfterMs: number;
  readonly #startedMs: number;
  readonly #health = new Map<string, Health>();
  readonly #waiting = new Set<() => void>();
  readonly #retiredMs = new Map<string, number>();
  readonly #listeners = new Set<() => void>();
  /** Nodes that a call of this leader did not reach and that have not reported since. */
  readonly #unreached = new Set<string>();
  /** Replicas that only a later metadata store can have made. */
  readonly later = new LaterReplicas();
  /** Terms far ahead that nodes obey, by node. */
  readonly #farTerms = new Map<string, FarTerm>();

  constructor(clock: Clock, state: StreamState, downAfterMs: number) {
    this.#clock = clock;
    this.#state = state;
    this.#downAfterMs = downAfterMs;
    this.#startedMs = clock.monotonicMs();
  }

  /** True if a report of this disk is a late one: the node had another disk since. */
  retired(place: ReplicaPlace): boolean {
    return this.#clock.monotonicMs() < (this.#retiredMs.get(`${place.nodeId} ${place.diskId}`) ?? Number.NEGATIVE_INFINITY);
  }

  /** Returns the numbers of the node's last report; undefined: it has not reported to this leader. */
  heard(nodeId: string): ReportNumbers | undefined {
    const health = this.#health.get(nodeId);
    return health && { diskId: health.diskId, incarnation: health.incarnation, reportNumber: health.load.reportNumber };
  }

  /** Takes a report; false: it is older than a seen one. `asked`: numbers heard when the node was asked, as in `planNode`. */
  report(place: ReplicaPlace, incarnation: number, load: ReportedLoad, asked?: ReportNumbers): boolean {
    const { nodeId, diskId } = place;
    let known = this.#health.get(nodeId);
    if (known !== undefined && known.diskId !== diskId) {
      this.#retiredMs.set(`${nodeId} ${known.diskId}`, this.#clock.monotonicMs() + retiredMs);
      known = undefined;
    }
    if (known !== undefined) {
      const older = incarnation < known.incarnation || (incarnation === known.incarnation && load.reportNumber <= known.load.reportNumber);
      const heardSince = known.incarnation !== asked?.incarnation || known.load.reportNumber !== asked.reportNumber;
      if (older && heardSince) return false;
    }
    // A person may have made the node take the lock service's term at its start.
    const far = this.#farTerms.get(nodeId);
    if (far?.incarnation !== incarnation || far.diskId !== diskId) this.#farTerms.delete(nodeId);
    const wasUp = this.up(nodeId);
    const lastSeenMs = this.#clock.monotonicMs();
    this.#unreached.delete(nodeId);
    this.#health.set(nodeId, {
      diskId,
      incarnation,
      lastSeenMs,
      upSinceMs: wasUp && known !== undefined ? known.upSinceMs : lastSeenMs,
      load,
      quarantined: known?.quarantined ?? new Map(),
      distrustedMs: known?.distrustedMs ?? Number.NEGATIVE_INFINITY,
      slowMs: known?.slowMs ?? Number.NEGATIVE_INFINITY,
    });
    if (!wasUp) this.#wake();
    return true;
  }

  up(nodeId: string): boolean {
    const health = this.#health.get(nodeId);
    return health !== undefined && this.#clock.monotonicMs() - health.lastSeenMs < this.#downAfterMs;
  }

  /** True if the node is up, and still has this disk. */
  reachable(place: ReplicaPlace): boolean {
    return this.up(place.nodeId) && this.#state.node(place.nodeId)?.diskId === place.diskId;
  }

  /** True if the node itself reported another disk than the one of this replica. */
  hasOtherDisk(place: ReplicaPlace): boolean {
    const record = this.#state.node(place.nodeId);
    return record !== undefined && record.diskId !== place.diskId;
  }

  /** True if the node was not heard of for this time (or since this leader began), or has another disk. */
  gone(place: ReplicaPlace, forMs: number): boolean {
    if (this.hasOtherDisk(place)) return true;
    return this.#clock.monotonicMs() - this.lastSeenMs(place.nodeId) >= forMs;
  }

  down(place: ReplicaPlace): boolean {
    return this.gone(place, this.#downAfterMs);
  }

  lastSeenMs(nodeId: string): number {
    return this.#health.get(nodeId)?.lastSeenMs ?? this.#startedMs;
  }

  load(nodeId: string): ReportedLoad | undefined {
    return this.#health.get(nodeId)?.load;
  }

  get upCount(): number {
    let count = 0;
    for (const nodeId of this.#health.keys()) if (this.up(nodeId)) count += 1;
    return count;
  }

  /** Number of nodes that are up and take commands of this leader, as far as is known. */
  get obeyingCount(): number {
    return [...this.#health.keys()].filter((nodeId) => this.up(nodeId) && !this.#farTerms.has(nodeId)).length;
  }

  /** True while nodes that are known from before may report for the first time. A new leader does not wait for nodes that it can't reach. */
  get settling(): boolean {
    const ageMs = this.#clock.monotonicMs() - this.#startedMs;
    if (ageMs >= this.#downAfterMs) return false;
    if (this.#unreached.size === 0 || ageMs < unreachedAfterMs) return true;
    return [...this.#state.nodes()].some(
      ({ nodeId, duty }) => duty !== "decommissioned" && !this.up(nodeId) && !this.#unreached.has(nodeId),
    );
  }

  /** True while a node that has not reported to this leader may be at work for the leader before, also one that can't be reached now. */
  get mayBeAtWork(): boolean {
    if (this.#clock.monotonicMs() - this.#startedMs >= this.#downAfterMs) return false;
    return [...this.#state.nodes()].some(({ nodeId, duty }) => duty !== "decommissioned" && !this.up(nodeId));
  }

  /** Number of nodes that take new extents, and have done so without trouble since they came up, at least for `steadyMs`. */
  get steadyCount(): number {
    const nowMs = this.#clock.monotonicMs();
    return this.placeable().filter(({ nodeId }) => {
      const { distrustedMs, slowMs, upSinceMs } = this.#health.get(nodeId) as Health;
      const troubledMs = Math.max(distrustedMs, slowMs);
      return nowMs - upSinceMs >= steadyMs && (troubledMs <= upSinceMs || nowMs - troubledMs >= forgivenAfterMs);
    }).length;
  }

  address(nodeId: string): string | undefined {
    return this.#state.node(nodeId)?.address;
  }

  /** Notes a failed call: the node is not chosen for a while if enough others are there. */
  distrust(nodeId: string): void {
    this.#trouble(nodeId, "distrustedMs");
  }

  /** Notes that it did not answer as soon as others: it is not chosen for a while when as many as `copies` others are there. */
  foundSlow(nodeId: string): void {
    this.#trouble(nodeId, "slowMs");
  }

  #trouble(nodeId: string, what: "distrustedMs" | "slowMs"): void {
    const health = this.#health.get(nodeId);
    if (health === undefined) this.#unreached.add(nodeId);
    else health[what] = this.#clock.monotonicMs();
    for (const listen of this.#listeners) listen();
  }

  distrusted(): Set<string> {
    return this.#nodesWhere((health) => health.distrustedMs >= this.#clock.monotonicMs() - distrustMs);
  }

  slow(): Set<string> {
    return this.#nodesWhere((health) => health.slowMs >= this.#clock.monotonicMs() - distrustMs);
  }

  /** Returns the nodes that were distrusted or found slow since then. */
  inTroubleSince(sinceMs: number): Set<string> {
    return this.#nodesWhere((health) => health.distrustedMs >= sinceMs || health.slowMs >= sinceMs);
  }

  #nodesWhere(holds: (health: Health) => boolean): Set<string> {
    return new Set([...this.#health].filter(([, health]) => holds(health)).map(([nodeId]) => nodeId));
  }

  /** Calls `listen` whenever a node is distrusted or found slow, until the returned function is called. */
  onTrouble(listen: () => void): () => void {
    this.#listeners.add(listen);
    return () => this.#listeners.delete(listen);
  }

  /** Notes that the node refuses this leader for a term far above. Returns false if that was known. */
  obeysFarTerm(nodeId: string, told: FarTerm): boolean {
    const known = this.#farTerms.get(nodeId);
    this.#farTerms.set(nodeId, told);
    return known?.term !== told.term || known.incarnation !== told.incarnation || known.diskId !== told.diskId;
  }

  /** Nodes that obey a term far above the leader's, by their id. */
  get farTerms(): ReadonlyMap<string, FarTerm> {
    return this.#farTerms;
  }

  /** Number of nodes that are up, serve, and have no room for new extents on their disks. */
  get fullCount(): number {
    return this.#servingWhere((nodeId) => this.up(nodeId) && this.#health.get(nodeId)?.load.acceptsNewExtents === false);
  }

  /** Number of nodes with the duty to serve that are not up. */
  get awaitedCount(): number {
    return this.#servingWhere((nodeId) => !this.up(nodeId));
  }

  #servingWhere(holds: (nodeId: string) => boolean): number {
    let count = 0;
    for (const { nodeId, duty } of this.#state.nodes()) if ((duty === undefined || duty === "serving") && holds(nodeId)) count += 1;
    return count;
  }

  placeable(): PlacementNode[] {
    const nodes: PlacementNode[] = [];
    for (const record of this.#state.nodes()) {
      const load = this.#health.get(record.nodeId)?.load;
      const serves = record.duty === undefined || record.duty === "serving";
      if (serves && load?.acceptsNewExtents && this.up(record.nodeId) && !this.#farTerms.has(record.nodeId))
        nodes.push(placementNode(record, load, this.#state.unsealedOn(record.nodeId)));
    }
    return nodes;
  }

  /** Notes a replica that no record explains. At most 1,000 for each node are remembered. */
  quarantine(nodeId: string, id: ExtentId, what: Quarantined): void {
    const held = this.#health.get(nodeId)?.quarantined;
    if (held !== undefined && (held.has(id) || held.size < quarantinedPerNodeMax)) held.set(id, what);
  }

  /** Notes that a replica in quarantine is gone, or explained by now. */
  release(nodeId: string, id: ExtentId): void {
    this.#health.get(nodeId)?.quarantined.delete(id);
  }

  quarantined(nodeId: string): ReadonlyMap<ExtentId, Quarantined> {
    return this.#health.get(nodeId)?.quarantined ?? new Map();
  }

  /** True if the node keeps a replica of another extent that had the number of this one. */
  keepsOther(nodeId: string, { creation = 0, id }: Pick<ExtentRecord, "creation" | "id">): boolean {
    const held = this.quarantined(nodeId).get(id);
    return held !== undefined && held.creation !== creation;
  }

  /** Returns the facts for the status. */
  quarantineSummary(): { readonly nodeId: string; readonly count: number; readonly sample: readonly ExtentId[] }[] {
    return [...this.#health]
      .filter(([, health]) => health.quarantined.size > 0)
      .map(([nodeId, health]) => ({ nodeId, count: health.quarantined.size, sample: [...health.quarantined.keys()].slice(0, 10) }));
  }

  /** True if some node holds more than are remembered. */
  get quarantineFull(): boolean {
    return [...this.#health.values()].some((health) => health.quarantined.size >= quarantinedPerNodeMax);
  }

  /** Resolves when a node came (back), or after `timeoutMs`. */
  async changed(timeoutMs: number): Promise<void> {
    let wake = (): void => {};
    const came = new Promise<void>((resolve) => {
      wake = resolve;
    });
    this.#waiting.add(wake);
    await within(this.#clock, timeoutMs, came);
    this.#waiting.delete(wake);
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}

const placementNode = (record: NodeRecord, load: ReportedLoad, openReplicas: number): PlacementNode => ({
  nodeId: record.nodeId,
  diskId: record.diskId,
  faultDomain: record.faultDomain,
  freeBytes: load.freeBytes,
  totalBytes: load.totalBytes,
  freeFiles: load.freeFiles,
  totalFiles: load.totalFiles,
  openReplicas,
});
