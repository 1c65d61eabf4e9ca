/**
 * An operator who splits, merges and moves ranges of one table while clients work: at keys that the workload names, or where the server
 * suggests; with whichever partition manager answers. Bounded: so many in a run, two at a time, and never more ranges than `rangesMax`.
 */
import type { Prng } from "@stamp/base";
import { compareBytes } from "@stamp/base";
import type { Simulation } from "@stamp/virtual-time";
import { PartitionManager, type RangePartition } from "@stamp/wire";
import type { SimulatedCluster } from "./cluster.ts";

export interface ReshapeOptions {
  readonly cluster: SimulatedCluster;
  readonly table: "Blob" | "Entity" | "Message";
  /** A key at which a PartitionName could start; undefined: none is known yet. */
  readonly key: (prng: Prng) => Uint8Array | undefined;
  /** Weight of a split, merge or move when the next fault is drawn; a cut link has 4. */
  readonly weight: number;
  /** True if ranges are only moved, for clients that know one range by its id. */
  readonly movesOnly?: boolean;
  /** True if ranges are not merged. */
  readonly neverMerges?: boolean;
}

const timesMax = 60;
const atOnceMax = 2;
const rangesMax = 8;
const askTimeoutMs = 1_000;
/** Longer than a manager works at one. */
const reshapeTimeoutMs = 20_000;

export class Reshapes {
  /** Keyed by what was asked and how it went. */
  readonly counts: Record<string, number> = {};
  readonly #sim: Simulation;
  readonly #options: ReshapeOptions;
  readonly #managers: readonly string[];
  readonly #servers: readonly string[];
  #times = 0;
  #underWay = 0;
  #merging = false;

  constructor(sim: Simulation, options: ReshapeOptions) {
    this.#sim = sim;
    this.#options = options;
    const { processes } = options.cluster;
    this.#managers = processes.filter((name) => name.startsWith("partition-manager-"));
    this.#servers = processes.filter((name) => name.startsWith("partition-server-"));
  }

  /** Begins one, which goes on by itself; false when it would be too many. */
  begin(prng: Prng): boolean {
    if (this.#times >= timesMax || this.#underWay >= atOnceMax) return false;
    this.#times += 1;
    this.#underWay += 1;
    this.#sim.background(
      this.#one(prng.fork()).finally(() => {
        this.#underWay -= 1;
      }),
    );
    return true;
  }

  /** False if no merge was asked for. */
  get mayHaveMerged(): boolean {
    return this.#merging;
  }

  /** Returns the ranges as the leading manager has them; undefined if nobody answered. */
  async ranges(): Promise<readonly RangePartition[] | undefined> {
    return (await this.#map())?.ranges;
  }

  async #map(): Promise<{ readonly manager: string; readonly ranges: readonly RangePartition[] } | undefined> {
    for (const manager of this.#managers) {
      const map = await this.#client(manager).getMap({}, { timeoutMs: askTimeoutMs });
      if (map.ok) return { manager, ranges: map.value.ranges.filter(({ table }) => table === this.#options.table) };
    }
    return undefined;
  }

  #client(manager: string) {
    return this.#sim.world("operator").transport.client(this.#options.cluster.addressOf(manager), PartitionManager);
  }

  async #one(prng: Prng): Promise<void> {
    const map = await this.#map();
    if (!map) return;
    const { ranges } = map;
    const { rangeId, server } = prng.pick(ranges);
    const manager = this.#client(map.manager);
    const options = { timeoutMs: reshapeTimeoutMs };
    const dice = prng.below(100);
    if (dice < 20 || this.#options.movesOnly === true) {
      const to = prng.pick(this.#servers.filter((name) => name !== server));
      this.#sim.note("move", `${rangeId} to ${to}`);
      this.#count("move", await manager.movePartition({ rangeId, server: to }, options));
    } else if (this.#options.neverMerges !== true && ranges.length > 1 && (dice < 20 + 10 * ranges.length || ranges.length >= rangesMax)) {
      this.#sim.note("merge", rangeId);
      this.#merging = true;
      this.#count("merge", await manager.mergePartition({ rangeId }, options));
    } else if (ranges.length < rangesMax) {
      const at = prng.chance(0.3) ? undefined : this.#key(prng, ranges);
      this.#sim.note("split", at?.rangeId ?? rangeId);
      this.#count("split", await manager.splitPartition(at ?? { rangeId }, options));
    }
  }

  /** Returns a key of a range that is not its first, and the range that holds it. */
  #key(prng: Prng, ranges: readonly RangePartition[]): { readonly rangeId: string; readonly atKey: Uint8Array } | undefined {
    const atKey = this.#options.key(prng);
    const holder =
      atKey &&
      ranges.find(({ lowKey, highKey }) => compareBytes(lowKey, atKey) < 0 && (highKey.length === 0 || compareBytes(atKey, highKey) < 0));
    return holder && { rangeId: holder.rangeId, atKey };
  }

  #count(what: string, outcome: { readonly ok: boolean }): void {
    const name = `${what} ${outcome.ok ? "done" : "not done"}`;
    this.counts[name] = (this.counts[name] ?? 0) + 1;
  }
}
