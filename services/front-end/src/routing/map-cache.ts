/**
 * The front-end's copy of the partition map. The partition manager is asked all the time for a newer one (it holds the question until
 * there is one, and tells what changed since), so a change arrives by itself. While nobody answers, the copy stays in use: who serves a
 * range is checked by the range's server, never here.
 *
 * A version below the known one, or far above it, is doubtful: the answer, or the map that is known, is not one that the leader told. Then
 * the whole map of the manager that holds the lease is taken, whatever its version is (rule mapsVouched). So no answer can keep later maps out.
 */
import type { Outcome } from "@stamp/base";
import { FailureError, ok, refused } from "@stamp/base";
import { LeaderCalls, lockServices } from "@stamp/metadata-store";
import { isObjectTable } from "@stamp/objects";
import { checkCover, type Range, RangeMap } from "@stamp/partition-map";
import { type Client, jittered, sleep, type World, within } from "@stamp/ports";
import { fromWire, LockService, PartitionManager, type PartitionMap, type RangePartition } from "@stamp/wire";

const retryMs = 200;
/** Time for an answer beyond the time that the question is held, in milliseconds. */
const answerMs = 2_000;
const leaseName = "partition-manager";
const confirmTimeoutMs = 1_000;
/** Shortest time between two questions to the leader because servers refuse what the map says, in milliseconds. */
const doubtEveryMs = 1_000;
/** Distance from the known version up to which a map is taken without asking who leads: each change of the map is one version. */
export const unvouchedVersionsMax = 1_000;

export class MapCache {
  readonly #world: World;
  readonly #manager: LeaderCalls;
  readonly #lockService: Client<typeof LockService>;
  readonly #waitMs: number;
  readonly #heldQuestionMs: number;
  readonly #stop: AbortController = new AbortController();
  #current: RangeMap | undefined;
  readonly #watching = new Set<() => void>();
  #whole = false;
  #polling: Promise<void> = Promise.resolve();
  #lastAnswerMs: number | undefined;
  #doubtedMs = Number.NEGATIVE_INFINITY;

  constructor(world: World, options: { readonly lockService: string; readonly mapWaitMs: number; readonly heldQuestionMs?: number }) {
    this.#world = world;
    this.#manager = new LeaderCalls(world, { lockService: options.lockService, leaseName });
    this.#lockService = lockServices(world, options.lockService, LockService);
    this.#waitMs = options.mapWaitMs;
    this.#heldQuestionMs = options.heldQuestionMs ?? 0;
  }

  get current(): RangeMap | undefined {
    return this.#current;
  }

  /** Time since the partition manager last answered, in milliseconds; undefined: it never did. */
  get ageMs(): number | undefined {
    return this.#lastAnswerMs === undefined ? undefined : this.#world.clock.monotonicMs() - this.#lastAnswerMs;
  }

  start(): void {
    this.#polling = this.#poll();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    // A question that is held ends by itself; nobody waits for it.
    await within(this.#world.clock, 100, this.#polling);
  }

  /** Calls `changed` after each replacement of the map. Returns a function that ends the calls. */
  watch(changed: () => void): () => void {
    this.#watching.add(changed);
    return () => this.#watching.delete(changed);
  }

  /** Resolves when the map is newer than this version, at the latest after `timeoutMs`. */
  async newerThan(version: number, timeoutMs: number): Promise<void> {
    if ((this.#current?.version ?? 0) > version) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        timer.cancel();
        unwatch();
        resolve();
      };
      const timer = this.#world.clock.after(timeoutMs, end);
      const unwatch = this.watch(end);
    });
  }

  /**
   * A server refuses what the map says, and no newer map has come: asks the leader for the whole map, and takes it even if its version is
   * the known one. A map with a wrong range version would stay in use until that range changes.
   */
  doubt(): void {
    const nowMs = this.#world.clock.monotonicMs();
    if (nowMs - this.#doubtedMs < doubtEveryMs || this.#stop.signal.aborted || !this.#world.rules.on("mapsVouched")) return;
    this.#doubtedMs = nowMs;
    void this.#takeConfirmed(true).then((taken) => {
      if (!taken.ok)
        this.#world.logger.debug("the partition map could not be fetched", {
          reason: taken.failure.reason,
          problem: taken.failure.message,
        });
    });
  }

  async #poll(): Promise<void> {
    const { clock, random, transport, logger } = this.#world;
    while (!this.#stop.signal.aborted) {
      const knownVersion = BigInt(this.#current?.version ?? 0);
      const asked = await this.#manager.call(
        this.#waitMs + answerMs,
        (address, timeoutMs) =>
          transport
            .client(address, PartitionManager)
            .getMap({ knownVersion, waitMs: this.#waitMs, changes: !this.#whole }, { timeoutMs, signal: this.#stop.signal }),
        { idempotent: true, heldQuestionMs: this.#heldQuestionMs },
      );
      if (this.#stop.signal.aborted) return;
      const outcome = asked.ok ? await this.#take(asked.value) : asked;
      if (outcome.ok && outcome.value === "taken") continue;
      if (!outcome.ok)
        logger.debug("the partition map could not be fetched", { reason: outcome.failure.reason, problem: outcome.failure.message });
      await sleep(clock, jittered(random, retryMs), this.#stop.signal);
    }
  }

  /** Returns the ranges of a whole map, or of the known one after changes. */
  #ranges(map: PartitionMap): Outcome<readonly Range[]> {
    const ranges: Range[] = [];
    for (const wire of map.ranges) {
      const range = rangeFromWire(wire);
      // A table of a newer release is none of our business.
      if (range) ranges.push(range);
    }
    const base = fromWire(map.baseVersion);
    if (base === 0) {
      const cover = checkCover(ranges);
      return cover.ok ? ok(ranges) : cover;
    }
    if (base !== this.#current?.version) return refused("failedPrecondition", "damaged", `changes of map ${base}, which is not known here`);
    return this.#current.with(ranges, new Set(map.gone));
  }

  /** Takes a map. `confirmed`: the answer was doubtful and the leader was asked; the same may follow, so the caller rests. */
  async #take(map: PartitionMap): Promise<Outcome<"taken" | "confirmed">> {
    this.#lastAnswerMs = this.#world.clock.monotonicMs();
    if (this.#isDoubtful(map)) {
      this.#manager.lookAgain();
      const confirmed = await this.#takeConfirmed();
      return confirmed.ok ? ok("confirmed") : confirmed;
    }
    const taken = map.version <= (this.#current?.version ?? 0) ? ok() : this.#replace(map);
    return taken.ok ? ok("taken") : taken;
  }

  #isDoubtful({ version }: PartitionMap): boolean {
    const known = this.#current?.version;
    if (known === undefined || !this.#world.rules.on("mapsVouched")) return false;
    return version < known || version > known + unvouchedVersionsMax;
  }

  /**
   * Takes the whole map of the manager that holds the lease, before and after it answered. Its map may be the lower one: nobody but a
   * server says whether it serves a range, so an older map does no harm.
   */
  async #takeConfirmed(alsoSame = false): Promise<Outcome<void>> {
    const { transport, logger } = this.#world;
    const options = { timeoutMs: confirmTimeoutMs, signal: this.#stop.signal };
    const before = await this.#lockService.getLease({ name: leaseName }, options);
    if (!before.ok) return before;
    if (before.value.ended || before.value.address === "") return refused("unavailable", "notLeader", "no partition manager leads now");
    const map = await transport.client(before.value.address, PartitionManager).getMap({}, options);
    if (!map.ok) return map;
    const after = await this.#lockService.getLease({ name: leaseName }, options);
    if (!after.ok) return after;
    const { leaseEpoch, ended } = after.value;
    if (ended || leaseEpoch !== before.value.leaseEpoch) {
      return refused("unavailable", "notLeader", "the partition manager that told its map does not lead any more");
    }
    const known = this.#current?.version ?? 0;
    if (map.value.version === BigInt(known)) return alsoSame ? this.#replace(map.value) : ok();
    logger.warn("the partition map that was known is replaced by the leader's", { known, version: String(map.value.version) });
    return this.#replace(map.value);
  }

  #replace(map: PartitionMap): Outcome<void> {
    try {
      return this.#become(map);
    } catch (error) {
      // A number in it is none.
      if (error instanceof FailureError) return { ok: false, failure: error.failure };
      throw error;
    }
  }

  #become(map: PartitionMap): Outcome<void> {
    const version = fromWire(map.version);
    const ranges = this.#ranges(map);
    // If the changes do not make a map, the whole map is asked for.
    this.#whole = !ranges.ok;
    if (!ranges.ok) return refused("dataLoss", "damaged", ranges.failure.message);
    this.#current = new RangeMap(version, ranges.value);
    for (const changed of [...this.#watching]) changed();
    return ok();
  }
}

function rangeFromWire(range: RangePartition): Range | undefined {
  if (!isObjectTable(range.table)) return undefined;
  const { metadata = "", commitLog = "", rowData = "", blobData = "" } = range.streams ?? {};
  return {
    rangeId: range.rangeId,
    table: range.table,
    low: Uint8Array.from(range.lowKey),
    high: Uint8Array.from(range.highKey),
    rangeVersion: fromWire(range.rangeVersion),
    ownerEpoch: fromWire(range.ownerEpoch),
    streams: { metadata, commitLog, rowData, blobData },
    server: range.server,
    serverAddress: range.serverAddress,
    leaseEpoch: fromWire(range.leaseEpoch),
    loaded: range.loaded,
    hasStreams: range.hasStreams,
  };
}
