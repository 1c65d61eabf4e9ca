/**
 * How the cluster of a run gives back what nothing refers to, and the judge that it does. Some runs keep production's times, so that they see
 * none of it; in the others passes follow one another all the time, extents of which much still lives are rewritten too, and what was dropped
 * is deleted soon, while readers still hold its places.
 */

import { Prng } from "@stamp/base";
import type { BlobDoor } from "@stamp/histories";
import { until } from "@stamp/histories";
import { LeaderCalls } from "@stamp/metadata-store";
import type { Simulation } from "@stamp/virtual-time";
import type { CollectRangeResponse, RangePartition } from "@stamp/wire";
import { ExtentState, PartitionManager, StreamManager } from "@stamp/wire";
import type { ClusterOptions, SimulatedCluster } from "../cluster.ts";
import { extentFileName } from "../cluster.ts";
import { stageOf } from "../run/stage.ts";
import type { Tally } from "../run/workload.ts";

export interface Collecting {
  /** True if the end is due within a run. */
  readonly soon: boolean;
  readonly options: Pick<ClusterOptions, "partitionServer"> & { readonly streamManager: Readonly<Record<string, number>> };
}

/** Time within which everything deleted is gone, the stream manager's grace apart. */
const goneWithinMs = 120_000;
/** Clients wait for 5 s at most. */
const collectGoneMs = 8_000;
const callTimeoutMs = 2_000;
const collectTimeoutMs = 30_000;
const pauseMs = 500;
/** More than any run has. */
const extentsMax = 10_000;
/** Extents that a range still holds when everything in it was deleted: the last one is not full yet. */
const extentsLeftMax = 1;

/** Values drawn from the seed, but not from the run's own sequence. */
export function collectingOf(sim: Simulation): Collecting {
  const prng = new Prng(sim.seed ^ 0x6a7ba6e);
  if (prng.chance(0.35)) return { soon: false, options: { partitionServer: {}, streamManager: {} } };
  return {
    soon: true,
    options: {
      partitionServer: {
        collectEveryMs: prng.pick([300, 3_000]),
        pinTermMs: prng.pick([1, 6_000]),
        collectRewriteBelow: prng.pick([0.4, 0.9]),
        collectGoneMs,
      },
      streamManager: { deletionGraceMs: prng.pick([1_000, 20_000]) },
    },
  };
}

/** Deletes every container, or every table; then nothing may be left of what was in them, but what passes don't touch: the last extent of a stream. */
export class GarbageJudge {
  readonly #sim: Simulation;
  readonly #tally: Tally;
  readonly #cluster: SimulatedCluster;
  readonly #streams: LeaderCalls;
  readonly #map: LeaderCalls;
  readonly #graceMs: number;
  readonly #table: "Blob" | "Entity";

  constructor(sim: Simulation, tally: Tally, cluster: SimulatedCluster, collecting: Collecting, table: "Blob" | "Entity") {
    this.#table = table;
    this.#sim = sim;
    this.#tally = tally;
    this.#cluster = cluster;
    const world = sim.world("garbage-judge");
    this.#streams = new LeaderCalls(world, { lockService: cluster.lockService, leaseName: "stream-manager" });
    this.#map = new LeaderCalls(world, { lockService: cluster.lockService, leaseName: "partition-manager" });
    this.#graceMs = collecting.options.streamManager.deletionGraceMs ?? 0;
  }

  async allGoes(door: BlobDoor, containers: Iterable<string>): Promise<void> {
    const startMs = this.#sim.nowMs;
    for (const container of containers) {
      await this.#within(`container ${container} is deleted`, async () => {
        const { kind } = await door.deleteContainer(container);
        return kind === "ok" || kind === "noContainer";
      });
    }
    await this.#within("extents of blob data that nothing refers to are in no stream", async () => {
      const lists = await this.#each((range) => this.#dataExtents(range));
      return lists?.every((extents) => extents.length <= extentsLeftMax) === true;
    });
    await this.#within("a pass finds no row", async () => {
      const passes = await this.#each((range) => this.#collect(range));
      return passes?.every(({ rows }) => rows === 0n) === true;
    });
    await this.#within("replicas of extents that no stream holds are deleted", () => this.#nothingLeaks(), this.#graceMs);
    const tookMs = Math.round(this.#sim.nowMs - startMs);
    this.#tally.most["ms until all garbage was gone"] = Math.max(this.#tally.most["ms until all garbage was gone"] ?? 0, tookMs);
  }

  /** Returns the extents of blob data, range by range; undefined as long as one of them can't be told. */
  dataExtents(): Promise<readonly (readonly bigint[])[] | undefined> {
    return this.#each((range) => this.#dataExtents(range));
  }

  /** Undefined as long as one of them can't be told. */
  async #each<T>(of: (range: RangePartition) => Promise<T | undefined>): Promise<readonly T[] | undefined> {
    const found: T[] = [];
    for (const range of (await this.#ranges()) ?? [undefined]) {
      const one = range && (await of(range));
      if (one === undefined) return undefined;
      found.push(one);
    }
    return found;
  }

  /** Every file of an extent on any disk is one of its replicas, or in quarantine; and no extent is there that was dropped. */
  async #nothingLeaks(): Promise<boolean> {
    const { transport } = this.#sim.world("garbage-judge");
    const listed = await this.#streams.call(
      callTimeoutMs,
      (address, timeoutMs) => transport.client(address, StreamManager).listExtents({ limit: extentsMax }, { timeoutMs }),
      { idempotent: true },
    );
    const quarantined = await this.#streams.call(
      callTimeoutMs,
      (address, timeoutMs) => transport.client(address, StreamManager).listQuarantine({}, { timeoutMs }),
      { idempotent: true },
    );
    if (!listed.ok || !quarantined.ok) return false;
    const places = new Set<string>();
    const problems: string[] = [];
    for (const { location, nodeIds, state } of listed.value.extents) {
      const extentId = location?.extentId ?? 0n;
      for (const node of nodeIds) places.add(`${node} ${extentFileName(extentId)}`);
      if (state === ExtentState.DROPPED) problems.push(`extent ${extentId} is dropped`);
    }
    // Files in quarantine are reported, and left to a person.
    for (const { nodeId, extentId } of quarantined.value.replicas) places.add(`${nodeId} ${extentFileName(extentId)}`);
    for (const node of this.#cluster.processes) {
      if (!node.startsWith("extent-node-")) continue;
      const disk = this.#sim.disk(node);
      for (const path of disk.paths()) {
        const file = path.slice(path.lastIndexOf("/") + 1);
        if (!file.endsWith(".extent") || places.has(`${node} ${file}`)) continue;
        problems.push(`${node} holds ${path}`);
      }
    }
    if (problems.length > 0) this.#sim.note("not gone", problems.join(", "));
    return problems.length === 0;
  }

  async #ranges(): Promise<readonly RangePartition[] | undefined> {
    const { transport } = this.#sim.world("garbage-judge");
    const map = await this.#map.call(
      callTimeoutMs,
      (address, timeoutMs) => transport.client(address, PartitionManager).getMap({}, { timeoutMs }),
      {
        idempotent: true,
      },
    );
    return map.ok ? map.value.ranges.filter(({ table }) => table === this.#table) : undefined;
  }

  async #dataExtents({ streams }: RangePartition): Promise<readonly bigint[] | undefined> {
    const { transport } = this.#sim.world("garbage-judge");
    const name = streams?.blobData ?? "";
    if (name === "") return [];
    const stream = await this.#streams.call(
      callTimeoutMs,
      (address, timeoutMs) => transport.client(address, StreamManager).getStream({ name }, { timeoutMs }),
      { idempotent: true },
    );
    if (stream.ok) return stream.value.extents.map(({ extentId }) => extentId);
    return stream.failure.code === "notFound" ? [] : undefined;
  }

  async #collect({ rangeId }: RangePartition): Promise<CollectRangeResponse | undefined> {
    const { transport } = this.#sim.world("garbage-judge");
    const collected = await this.#map.call(
      collectTimeoutMs,
      (address, timeoutMs) => transport.client(address, PartitionManager).collectRange({ rangeId }, { timeoutMs }),
      { idempotent: true, attemptTimeoutMs: collectTimeoutMs },
    );
    return collected.ok ? collected.value : undefined;
  }

  #within(what: string, attempt: () => Promise<boolean>, moreMs = 0): Promise<void> {
    return until(stageOf(this.#sim, this.#tally), what, { withinMs: goneWithinMs + moreMs, pauseMs }, attempt);
  }
}
