/**
 * The front-end's copy of the partition map. The partition manager is asked all the time for a newer one (it holds the question until
 * there is one, and tells what changed since), so a change arrives by itself. While nobody answers, the copy stays in use: who serves a
 * range is checked by the range's server, never here.
 */
import type { Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import { LeaderCalls } from "@stamp/metadata-store";
import { isObjectTable } from "@stamp/objects";
import { checkCover, type Range, RangeMap } from "@stamp/partition-map";
import { jittered, sleep, type World, within } from "@stamp/ports";
import { fromWire, PartitionManager, type PartitionMap, type RangePartition } from "@stamp/wire";

const retryMs = 200;
/** Beyond the time that the question is held. */
const answerMs = 2_000;

export class MapCache {
  readonly #world: World;
  readonly #manager: LeaderCalls;
  readonly #waitMs: number;
  readonly #stop: AbortController = new AbortController();
  #current: RangeMap | undefined;
  readonly #watching = new Set<() => void>();
  #whole = false;
  #polling: Promise<void> = Promise.resolve();
  #lastAnswerMs: number | undefined;

  constructor(world: World, options: { readonly lockService: string; readonly mapWaitMs: number }) {
    this.#world = world;
    this.#manager = new LeaderCalls(world, { lockService: options.lockService, leaseName: "partition-manager" });
    this.#waitMs = options.mapWaitMs;
  }

  get current(): RangeMap | undefined {
    return this.#current;
  }

  /** Since the partition manager last answered; undefined when it never did. */
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

  /** Calls `changed` whenever the map was replaced, until what it gives is called. */
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
        { idempotent: true },
      );
      if (this.#stop.signal.aborted) return;
      const outcome = asked.ok ? this.#take(asked.value) : asked;
      if (outcome.ok) continue;
      logger.debug("no partition map", { reason: outcome.failure.reason, problem: outcome.failure.message });
      await sleep(clock, jittered(random, retryMs), this.#stop.signal);
    }
  }

  /** The whole map, or what the known one becomes by its changes. */
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

  #take(map: PartitionMap): Outcome<void> {
    this.#lastAnswerMs = this.#world.clock.monotonicMs();
    const version = fromWire(map.version);
    if (version <= (this.#current?.version ?? 0)) return ok();
    const ranges = this.#ranges(map);
    // What can't be made of changes is asked for whole.
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
