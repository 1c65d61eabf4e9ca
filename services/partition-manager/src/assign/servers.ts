/**
 * The partition servers as this term sees them: their leases, as the lock service last said, and whether they answer. Calls them too.
 * A server counts as unreachable when calls to it failed for `unreachableAfterMs` and none was answered.
 */
import { type Outcome, ok, unknownOutcome } from "@stamp/base";
import { heldQuestionMs, lockServices } from "@stamp/metadata-store";
import { isLive, leaseOver, type Range, type RangeFigures, type ServerLease } from "@stamp/partition-map";
import { type CallOptions, type Client, sleep, type World } from "@stamp/ports";
import { fromWire, LockService, type PartitionInfo, PartitionServer, type ReshapeTimes, type ServerLoad, toWire } from "@stamp/wire";
import { rangeToWire } from "../map/range-to-wire.ts";

export interface ServersOptions {
  readonly lockService: string;
  readonly pmTerm: number;
  readonly unreachableAfterMs: number;
  /** How long the lock service may hold the question for news of leases, in ms; 0: not at all. */
  readonly heldQuestionMs: number;
  readonly loadTimeoutMs: number;
}

const leasePrefix = "ps/";
const lookTimeoutMs = 1_000;
const probeTimeoutMs = 1_000;
const leaseOverPollMs = 50;

export interface ServedPartition {
  readonly rangeId: string;
  readonly ownerEpoch: number;
  readonly figures: RangeFigures;
}

export class Servers {
  readonly #world: World;
  readonly #options: ServersOptions;
  readonly #lockService: Client<typeof LockService>;
  readonly #heldMs: number;
  /** Time since which calls to a server failed; absent while it answers. */
  readonly #silentSinceMs = new Map<string, number>();
  #leases: readonly ServerLease[] = [];
  /** State of the leases, as the lock service told; empty: none, or it holds no questions. */
  #state = "";
  /** True if the lock service has answered in this term. */
  #known = false;

  constructor(world: World, options: ServersOptions) {
    this.#world = world;
    this.#options = options;
    this.#heldMs = heldQuestionMs(options.lockService, options.heldQuestionMs);
    this.#lockService = lockServices(world, options.lockService, LockService);
  }

  get leases(): readonly ServerLease[] {
    return this.#leases;
  }

  isLive(server: string): boolean {
    return !this.unreachable.has(server) && this.#leases.some((lease) => lease.server === server && isLive(lease));
  }

  get known(): boolean {
    return this.#known;
  }

  /** True if a server with a lease did not answer lately: its lease may end soon. */
  get anySilent(): boolean {
    return this.#leases.some((lease) => isLive(lease) && this.#silentSinceMs.has(lease.server));
  }

  get unreachable(): ReadonlySet<string> {
    const nowMs = this.#world.clock.monotonicMs();
    const silent = [...this.#silentSinceMs].filter(([, sinceMs]) => nowMs - sinceMs >= this.#options.unreachableAfterMs);
    return new Set(silent.map(([server]) => server));
  }

  /** True if the lock service holds the next question until there is news. */
  get hearsNews(): boolean {
    return this.#heldMs > 0 && this.#state !== "";
  }

  /**
   * Asks the lock service, which holds the question until a lease was granted or has ended. What it said before stays when it does not answer: an
   * ended lease stays ended.
   */
  async look(signal?: AbortSignal): Promise<Outcome<void>> {
    const waitMs = this.#heldMs;
    // Without a state nothing is held, and an answer that does not come is missed as soon as it ever was.
    const options = { timeoutMs: (this.hearsNews ? waitMs : 0) + lookTimeoutMs, ...(signal === undefined ? {} : { signal }) };
    const answer = await this.#lockService.listLeases({ prefix: leasePrefix, knownState: this.#state, waitMs }, options);
    this.#state = answer.ok ? answer.value.state : "";
    if (!answer.ok) return answer;
    const before = new Map(this.#leases.map((lease) => [lease.server, lease.leaseEpoch]));
    this.#leases = answer.value.leases.map((lease) => ({
      server: lease.name.slice(leasePrefix.length),
      address: lease.address,
      leaseEpoch: fromWire(lease.leaseEpoch),
      ended: lease.ended,
      renewalsRefused: lease.renewalsRefused,
    }));
    const unreachable = this.unreachable;
    for (const { server, leaseEpoch } of this.#leases) {
      // A new process behind the name: the silence of the old one says nothing. Who was given up has to answer first: it may be the same
      // one that took a new lease and still can't be called.
      if (before.get(server) !== leaseEpoch && !unreachable.has(server)) this.#silentSinceMs.delete(server);
    }
    // A server without any lease, not even an ended one, is forgotten: names come and go, facts about them must not
    // stay.
    const listed = new Set(this.#leases.map((lease) => lease.server));
    for (const server of this.#silentSinceMs.keys()) if (!listed.has(server)) this.#silentSinceMs.delete(server);
    this.#known = true;
    return ok();
  }

  async refuseRenewals(server: string, leaseEpoch: number): Promise<Outcome<void>> {
    const request = { name: `${leasePrefix}${server}`, leaseEpoch: toWire(leaseEpoch) };
    const answer = await this.#lockService.refuseRenewals(request, { timeoutMs: lookTimeoutMs });
    return answer.ok ? ok() : answer;
  }

  async load(range: Range): Promise<Outcome<void>> {
    const request = { pmTerm: toWire(this.#options.pmTerm), leaseEpoch: toWire(range.leaseEpoch), range: rangeToWire(range) };
    const client = this.#world.transport.client(range.serverAddress, PartitionServer);
    const answer = await client.loadPartition(request, { timeoutMs: this.#options.loadTimeoutMs });
    this.#heard(range.server, answer);
    return answer.ok ? ok() : answer;
  }

  async close(range: Range): Promise<Outcome<void>> {
    const client = this.#world.transport.client(range.serverAddress, PartitionServer);
    const answer = await client.closePartition(
      {
        pmTerm: toWire(this.#options.pmTerm),
        leaseEpoch: toWire(range.leaseEpoch),
        rangeId: range.rangeId,
        ownerEpoch: toWire(range.ownerEpoch),
      },
      { timeoutMs: this.#options.loadTimeoutMs },
    );
    this.#heard(range.server, answer);
    return answer.ok ? ok() : answer;
  }

  /** Commands a split or merge. Waits as long as the server holds the lease of its parents: afterwards it serves nobody. */
  async reshape(parents: readonly Range[], children: readonly Range[], timeoutMs: number): Promise<Outcome<ReshapeTimes>> {
    const over = new AbortController();
    const asked = this.#reshape(parents, children, { timeoutMs, signal: over.signal });
    const asks = asked.then(() => "answered" as const);
    while ((await Promise.race([asks, sleep(this.#world.clock, leaseOverPollMs)])) !== "answered") {
      if (leaseOver(parents[0] as Range, this.#leases)) over.abort();
    }
    if (!over.signal.aborted) return asked;
    return unknownOutcome("unavailable", "leaseLost", `${parents[0]?.server} did not answer until its lease ended`);
  }

  async #reshape(parents: readonly Range[], children: readonly Range[], options: CallOptions): Promise<Outcome<ReshapeTimes>> {
    const { server, serverAddress, leaseEpoch } = parents[0] as Range;
    const client = this.#world.transport.client(serverAddress, PartitionServer);
    const answer = await client.reshapePartitions(
      {
        pmTerm: toWire(this.#options.pmTerm),
        leaseEpoch: toWire(leaseEpoch),
        parents: parents.map(({ rangeId, ownerEpoch }) => ({ rangeId, ownerEpoch: toWire(ownerEpoch) })),
        children: children.map(rangeToWire),
      },
      options,
    );
    if (!options.signal?.aborted) this.#heard(server, answer);
    if (!answer.ok) return answer;
    const { times } = answer.value;
    return times ? ok(times) : unknownOutcome("internal", "bug", "a partition server answered without times");
  }

  async suggestSplitKey(range: Range): Promise<Outcome<Uint8Array>> {
    const client = this.#world.transport.client(range.serverAddress, PartitionServer);
    const answer = await client.suggestSplitKey({ rangeId: range.rangeId }, { timeoutMs: probeTimeoutMs });
    return answer.ok ? ok(Uint8Array.from(answer.value.key)) : answer;
  }

  async checkpoint(range: Range, timeoutMs: number): Promise<Outcome<void>> {
    const client = this.#world.transport.client(range.serverAddress, PartitionServer);
    const answer = await client.checkpointPartition({ rangeId: range.rangeId }, { timeoutMs });
    return answer.ok ? ok() : answer;
  }

  async collect(range: Range, timeoutMs: number) {
    return this.#world.transport.client(range.serverAddress, PartitionServer).collectPartition({ rangeId: range.rangeId }, { timeoutMs });
  }

  /** Asks a server for its ranges, and so if it answers. */
  async probe(lease: ServerLease): Promise<Outcome<{ readonly partitions: ServedPartition[]; readonly load: ServerLoad | undefined }>> {
    const client = this.#world.transport.client(lease.address, PartitionServer);
    const answer = await client.listPartitions({}, { timeoutMs: probeTimeoutMs });
    this.#heard(lease.server, answer);
    if (!answer.ok) return answer;
    const { partitions, server: load } = answer.value;
    return ok({
      partitions: partitions.map((one) => ({ rangeId: one.rangeId, ownerEpoch: fromWire(one.ownerEpoch), figures: figuresOf(one) })),
      load,
    });
  }

  /** Asks if a server answers now. One that just died or is held up counts as live until its lease ends. */
  async answers(server: string): Promise<boolean> {
    const lease = this.#leases.find((one) => one.server === server && isLive(one));
    return lease !== undefined && (await this.probe(lease)).ok;
  }

  /** Notes that a server answered, be it a refusal: it can be called. A load that takes long says nothing. */
  #heard(server: string, answer: Outcome<unknown>): void {
    if (answer.ok || !noAnswer.has(answer.failure.reason)) {
      this.#silentSinceMs.delete(server);
    } else if (!this.#silentSinceMs.has(server)) {
      this.#silentSinceMs.set(server, this.#world.clock.monotonicMs());
    }
  }
}

const figuresOf = ({ rangeId, load, ageMs, memoryTableBytes, checkpointBytes }: PartitionInfo): RangeFigures => ({
  rangeId,
  requestsPerSecond: (load?.readsPerSecond ?? 0) + (load?.writesPerSecond ?? 0),
  throttledPerSecond: load?.throttledPerSecond ?? 0,
  pending: load?.pending ?? 0,
  latencyMs: load?.latencyMs ?? 0,
  bytesInPerSecond: load?.bytesInPerSecond ?? 0,
  bytesOutPerSecond: load?.bytesOutPerSecond ?? 0,
  bytes: fromWire(memoryTableBytes) + fromWire(checkpointBytes),
  ageMs: fromWire(ageMs),
});

const noAnswer: ReadonlySet<string> = new Set(["connectFailed", "connectionLost", "timeout"]);
