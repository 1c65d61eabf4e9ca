/**
 * Takes back extents that the restored metadata do not know, in the first term after a restore and before anything is served (docs/decisions/0581):
 *
 *     a lineage without a record ─► every node lists its unexplained replicas ─► what proves itself is chosen ─► appended to the lists ─► record
 *
 * Invariants:
 * - No stream is opened before the record is written: an owner would go on behind an extent that is not the last.
 * - A term that ends half-way is repeated by the next one: what is in a list is passed over, and nothing else has changed.
 * - Nodes that the records do not know are asked as soon as they report, and are waited for at least `strangersForMs`.
 * - Nodes are waited for until those that are absent can't be all that have an extent, and at the longest `absentForMs`: then the nodes that are
 *   absent are told, and what only they have stays lost.
 */
import { type ExtentId, extentId, type Outcome, ok, refused } from "@stamp/base";
import type { MetadataClient } from "@stamp/metadata-store";
import { type Client, sleep } from "@stamp/ports";
import {
  decodeTakenBack,
  encodeTakenBack,
  goneInside,
  judgeRestored,
  lostMax,
  mayComeBack,
  needsSegment,
  type ProvenExtent,
  planRecordSealed,
  planTakeBack,
  type TakenBackRecord,
  takenAtOnceMax,
  takenBackKey,
  type UnknownReplica,
  wentOnSince,
} from "@stamp/stream";
import { ExtentNode, type ExtentReplica, fromWire, type NodeReport, ReplicaState, toWire } from "@stamp/wire";
import { nextAfter } from "../nodes/comparisons.ts";
import { leaseName } from "../term/ledger.ts";
import { endIfStale, type Term } from "../term/term.ts";

/** Longest wait for nodes that may be all that have an extent, in milliseconds. */
export const absentForMs = 600_000;
/** Longest wait for nodes without which every extent has a replica elsewhere, in milliseconds. */
const graceMs = 10_000;
/**
 * Shortest wait, in milliseconds, for nodes that were added after the copy: the records do not know them, and they report every second to the leader
 * that they find.
 */
const strangersForMs = 5_000;
const askAgainMs = 250;
const callTimeoutMs = 5_000;
const pageReplicas = 1_000;
/** Unexplained replicas of one node that are looked at. */
const perNodeMax = 100_000;
/** Replicas that one node compares at once: an extent takes a round trip and a look at its file. */
const checksAtOnce = 16;
/** Number of nodes without a record that are asked. */
const strangersMax = 1_000;
const toldMax = 20;

type NodeClient = Client<typeof ExtentNode>;

interface CheckedReplica {
  readonly replica?: ExtentReplica | undefined;
  readonly checksum?: number | undefined;
  readonly problems: readonly string[];
}

interface Parts {
  readonly metadata: MetadataClient;
  /** Gives a number for a segment. */
  readonly mintId: () => Promise<Outcome<number>>;
}

export class TakeBack {
  readonly #term: Term;
  readonly #parts: Parts;
  /** Addresses by node: as recorded, or as a node told that has moved or was added after the copy. */
  readonly #addresses = new Map<string, string>();
  /** Replicas of nodes that have listed all of theirs, by node. */
  readonly #listed = new Map<string, readonly UnknownReplica[]>();
  /** Disks of the nodes in `#listed`. */
  readonly #disks = new Map<string, string>();
  /** Unsealed extents, and unknown ones, of which a node told a replica. */
  readonly #held = new Set<ExtentId>();

  constructor(term: Term, parts: Parts) {
    this.#term = term;
    this.#parts = parts;
    for (const { address, duty, nodeId } of term.state.nodes()) if (duty !== "decommissioned") this.#addresses.set(nodeId, address);
  }

  /** Names of nodes that have not answered. */
  get absent(): string[] {
    return [...this.#addresses.keys()].filter((nodeId) => !this.#listed.has(nodeId));
  }

  /** Notes a report while nothing is served: the node is asked at its address. */
  heard({ address, nodeId, stampId }: NodeReport): void {
    if (stampId !== this.#term.stampId || this.#listed.has(nodeId)) return;
    if (this.#addresses.has(nodeId) || this.#addresses.size < strangersMax) this.#addresses.set(nodeId, address);
  }

  /** Returns the record of the store's lineage; undefined: the store was never restored. */
  async run(): Promise<Outcome<TakenBackRecord | undefined>> {
    const { config, lineage, world } = this.#term;
    if (lineage === 0 || !world.rules.on("extentsComeBack")) return ok(undefined);
    const read = await this.#parts.metadata.get([takenBackKey], config.metadataTimeoutMs);
    if (!read.ok) return read;
    const [stored] = read.value;
    const decoded =
      stored === undefined || stored.version === 0 ? undefined : decodeTakenBack(stored.value, (bytes) => world.digest.crc32c(bytes));
    if (decoded?.ok === false) return decoded;
    const before = decoded?.value;
    if (before?.lineage === lineage) return ok(before);
    if (wentOnSince(this.#term.state)) return this.#passOver(lineage);
    world.logger.info("looking for extents that began after the copy of the metadata", { lineage, nodes: this.#addresses.size });
    await this.#listAll();
    if (this.#term.ended.aborted) return refused("unavailable", "notLeader", "the term ended while extents were taken back");
    return this.#takeBack(before?.floor ?? 0);
  }

  /** Passes over the take-back of a stamp that an older release restored and served: its streams went on, and nothing may come back. */
  #passOver(lineage: number): Promise<Outcome<TakenBackRecord>> {
    const { state, world } = this.#term;
    world.logger.warn("the streams went on since the metadata were restored: nothing is taken back", { lineage });
    const wallMs = Math.floor(world.clock.wallMs());
    return this.#record({ lineage, floor: state.nextId, wallMs, extents: 0, lostCount: 0, lost: [], absent: [] });
  }

  async #takeBack(floor: number): Promise<Outcome<TakenBackRecord>> {
    const { lineage, state, world } = this.#term;
    // Everything that is taken back has a lower number, and everything that this term makes has none: also segments are numbered from there.
    const { nextId } = state;
    const { left, lost, missing, taken: chosen } = judgeRestored(state, [...this.#listed.values()].flat(), floor, world.rules);
    for (const { extent, why } of left)
      world.logger.warn("an extent that the restored metadata do not know stays in quarantine", {
        ...{ extent: extent.id, stream: extent.stream, why },
      });
    for (const { id, stream } of missing.slice(0, toldMax))
      world.logger.warn("an extent before one that is taken back was truncated away after the copy, or it is lost", { extent: id, stream });
    let count = 0;
    for (const [stream, extents] of chosen) {
      const taken = await this.#append(stream, extents);
      if (!taken.ok) return taken;
      count += extents.length;
    }
    const settled = await this.#settleGone();
    if (!settled.ok) return settled;
    return this.#record({
      lineage,
      floor: nextId,
      wallMs: Math.floor(world.clock.wallMs()),
      extents: count,
      lostCount: lost.length,
      lost: lost.slice(0, lostMax),
      missingCount: missing.length,
      absent: this.absent,
    });
  }

  async #append(stream: string, extents: readonly ProvenExtent[]): Promise<Outcome<void>> {
    const { ledger, state, world } = this.#term;
    for (let at = 0; at < extents.length; at += takenAtOnceMax) {
      const some = extents.slice(at, at + takenAtOnceMax);
      const segment = needsSegment(state, stream, some.length) ? await this.#parts.mintId() : undefined;
      if (segment?.ok === false) return segment;
      const taken = await ledger.commit((current) => planTakeBack(current, stream, some, segment?.value));
      if (!taken.ok) return taken;
    }
    const ids = extents.slice(0, toldMax).map(({ id }) => id);
    world.logger.warn("extents that began after the copy of the metadata are taken back", { stream, count: extents.length, extents: ids });
    return ok();
  }

  /** Seals extents that no node has: else their seals would never end and their streams stay closed. */
  async #settleGone(): Promise<Outcome<void>> {
    const { ledger, state, world } = this.#term;
    for (const id of goneInside(state, this.#disks, this.#held)) {
      const note = "restore: no node has it, and the stream went on behind it";
      const loss = { knownCommittedBytes: 0, wallMs: Math.floor(world.clock.wallMs()), note };
      const sealed = await ledger.commit((current) => planRecordSealed(current, id, 0, { loss }));
      if (!sealed.ok) return sealed;
      world.logger.warn("an extent that no node has is sealed empty", { extent: id, stream: state.extent(id)?.stream, note });
    }
    return ok();
  }

  async #record(record: TakenBackRecord): Promise<Outcome<TakenBackRecord>> {
    const { config, end, number, world } = this.#term;
    const { absent, extents, lost, lostCount } = record;
    const value = encodeTakenBack(record, (bytes) => world.digest.crc32c(bytes));
    const fence = { leaseName, leaseEpoch: number };
    const written = await this.#parts.metadata.transact(
      { fence, conditions: [], writes: [{ key: takenBackKey, value }] },
      config.metadataTimeoutMs,
    );
    if (!written.ok) {
      if (written.failure.applied === "unknown") end(`the outcome of a metadata write is unknown (${written.failure.message})`);
      return written;
    }
    for (const { id, stream, why } of lost.slice(0, toldMax))
      world.logger.error("an extent that began after the copy of the metadata is not taken back", { extent: id, stream, why });
    world.logger.warn("the metadata were restored", { takenBack: extents, notTakenBack: lostCount, nodesNotHeard: absent });
    return ok(record);
  }

  async #listAll(): Promise<void> {
    const { config, ended, world } = this.#term;
    const startedMs = world.clock.monotonicMs();
    while (!ended.aborted) {
      await Promise.all(this.absent.map((nodeId) => this.#list(nodeId)));
      const { length: away } = this.absent;
      const tookMs = world.clock.monotonicMs() - startedMs;
      // An extent has at least `minCopies` replicas.
      const enoughMs = away === 0 ? strangersForMs : away < config.minCopies ? graceMs : absentForMs;
      if (tookMs >= enoughMs) return;
      await sleep(world.clock, askAgainMs, ended);
    }
  }

  /** Asks one node for all replicas that the records do not explain, and has it compare each one with its file. */
  async #list(nodeId: string): Promise<void> {
    const { ended, number, stampId, state, world } = this.#term;
    const client = world.transport.client(this.#addresses.get(nodeId) ?? "", ExtentNode);
    const report = await client.getNodeReport({ smTerm: toWire(number) }, { timeoutMs: callTimeoutMs });
    if (!report.ok) endIfStale(this.#term, report.failure);
    if (!report.ok || report.value.stampId !== stampId || report.value.nodeId !== nodeId) return;
    const place = { nodeId, diskId: report.value.diskId };
    const found: ExtentId[] = [];
    for (let [after, more] = [0n, true]; more; ) {
      const page = await client.listExtentReplicas({ afterExtentId: after, limit: pageReplicas }, { timeoutMs: callTimeoutMs });
      if (!page.ok || ended.aborted) return;
      try {
        after = nextAfter(after, page.value.replicas, page.value.more);
      } catch (error) {
        world.logger.error("a node's listing can't be true", { node: nodeId, why: String(error) });
        return;
      }
      more = page.value.more;
      for (const replica of page.value.replicas) {
        const id = idOf(replica);
        const mayCome = mayComeBack(state, id);
        if (mayCome || state.unsealed().has(id)) this.#held.add(id);
        if (mayCome && isWorth(replica)) found.push(id);
      }
    }
    if (found.length > perNodeMax) world.logger.error("a node has too many unknown replicas", { node: nodeId, looksAt: perNodeMax });
    const replicas = await this.#checked(client, place, found.slice(0, perNodeMax));
    if (replicas === undefined) return;
    this.#listed.set(nodeId, replicas);
    this.#disks.set(nodeId, place.diskId);
  }

  /** Has a node compare replicas with their files, a few at once. Returns undefined if it does not answer for one. */
  async #checked(client: NodeClient, place: UnknownReplica["place"], ids: readonly ExtentId[]): Promise<UnknownReplica[] | undefined> {
    const replicas = new Map<ExtentId, UnknownReplica>();
    const left = ids.values();
    let isAnswered = true;
    const checkNext = async (): Promise<void> => {
      for (const id of left) {
        const checked = await this.#check(client, id);
        if (checked === undefined) isAnswered = false;
        if (!isAnswered) return;
        if (checked?.replica !== undefined && idOf(checked.replica) === id)
          replicas.set(id, unknownReplica(place, checked.replica, { checksum: checked.checksum, problems: checked.problems }));
      }
    };
    await Promise.all(Array.from({ length: checksAtOnce }, checkNext));
    return isAnswered ? ids.flatMap((id) => replicas.get(id) ?? []) : undefined;
  }

  /** Returns what a node says of one replica, without a replica if it has none any more; undefined: it did not answer. */
  async #check(client: NodeClient, id: ExtentId): Promise<CheckedReplica | undefined> {
    const request = { afterExtentId: toWire(id - 1), limit: 1, deep: false };
    let checked = await client.checkReplicas(request, { timeoutMs: callTimeoutMs });
    // A wrong header is written anew by the check, and a second one finds the replica intact.
    const [before] = checked.ok ? checked.value.replicas : [];
    if (before !== undefined && before.problems.length > 0 && before.replica?.state !== ReplicaState.DAMAGED)
      checked = await client.checkReplicas(request, { timeoutMs: callTimeoutMs });
    if (!checked.ok || this.#term.ended.aborted) return undefined;
    return checked.value.replicas[0] ?? { checksum: undefined, problems: [] };
  }
}

const idOf = ({ extentId: id }: ExtentReplica): ExtentId => extentId(fromWire(id));

/** True if a replica is worth a look. An empty one of an extent without a creation number proves nothing. */
const isWorth = ({ creation, durableBytes, state }: ExtentReplica): boolean =>
  creation > 0n || durableBytes > 0n || state === ReplicaState.DAMAGED;

const unknownReplica = (
  place: UnknownReplica["place"],
  replica: ExtentReplica,
  { checksum, problems }: { readonly checksum: number | undefined; readonly problems: readonly string[] },
): UnknownReplica => ({
  place,
  id: idOf(replica),
  creation: fromWire(replica.creation),
  stream: replica.stream,
  predecessor: replica.predecessor === undefined ? undefined : fromWire(replica.predecessor),
  ownerEpoch: fromWire(replica.ownerEpoch),
  version: fromWire(replica.version),
  durableBytes: fromWire(replica.durableBytes),
  sealedLengthBytes: replica.sealedLengthBytes === undefined ? undefined : fromWire(replica.sealedLengthBytes),
  checksum,
  problems: replica.state === ReplicaState.DAMAGED && problems.length === 0 ? ["it is damaged"] : problems,
});
