/**
 * Streams of range partitions for tests of leases and moves: rows by range with the owner epoch that opened them last, outside of every
 * process, as the stream layer is. What it promises is what the stream layer promises: opening raises the epoch and refuses a lower
 * one, a write under another epoch than the newest does not happen.
 */
import { assert, compareBytes, type Failed, type Outcome, ok, refused, toHex } from "@stamp/base";
import { type Place, type RowEntry, versionOfRow } from "@stamp/objects";
import { holdsKey, type Range } from "@stamp/partition-map";
import type { World } from "@stamp/ports";
import { sleep } from "@stamp/ports";
import type { Engines, Handoff, LoadEngine, ParentRange, RangeEngine, RowView } from "../operations/engine.ts";

/** The only extent of blob data. */
export const dataExtent = 7;

type Rows = Map<string, RowEntry>;

interface SharedRange {
  ownerEpoch: number;
  sequence: number;
  rows: Rows;
}

export class TestStreams {
  /** By the name of the metadata stream. */
  readonly #ranges: Map<string, SharedRange> = new Map();
  /** Times of a load and of a commit, in milliseconds. */
  readonly loadMs = 20;
  commitMs = 2;
  /** Time of an append of blob data, in milliseconds; appends of one range are done one after another. */
  dataMs = 0;
  /** Outcome of each append of blob data, if it is none. */
  dataFails: Failed | undefined;
  /** When the memory of an append of blob data is free. */
  dataFree: "with the result" | "later" | "never" = "never";
  /** Time to make the first extents of children, in milliseconds. */
  allocateMs = 0;
  /** Time of ranges to write out before they leave, in milliseconds, and how often they fail at it. */
  prepareMs = 0;
  /** For the last split or merge that was prepared: whether it was told that somebody writes to the parents. */
  preparedWritten: boolean | undefined;
  /** True for tests that say themselves what is late. */
  neverLate = false;
  prepareFails = 0;
  loads = 0;
  dataBytes = 0;
  /** Ids in the order in which loads began, and the most at once. */
  readonly loadsBegun: string[] = [];
  loadsAtOnce = 0;
  /** Version of rows that states of partitions allow. */
  rowVersion = 1;
  /** Whether that can't be recorded just now. */
  needsRefused = false;
  #loading = 0;

  engines(world: World): Engines {
    const engines: Engines = {
      locate: async () => [],
      load: async (range, onFenced) => {
        const { metadata } = range.streams;
        const shared = range.hasStreams ? this.#ranges.get(metadata) : this.#range(metadata);
        if (!shared) return refused("notFound", "streamNotFound", `there is no stream ${metadata}`);
        if (range.ownerEpoch < shared.ownerEpoch && world.rules.on("ownerEpochAtManager")) {
          return refused("failedPrecondition", "staleOwnerEpoch", `epoch ${shared.ownerEpoch} opened the streams`);
        }
        shared.ownerEpoch = range.ownerEpoch;
        const rows = new Map(shared.rows);
        const sequence = shared.sequence;
        this.loadsBegun.push(range.rangeId);
        this.loadsAtOnce = Math.max(this.loadsAtOnce, ++this.#loading);
        await sleep(world.clock, this.loadMs);
        this.#loading--;
        this.loads++;
        return ok(new TestEngine(world, this, shared, rows, sequence, range.ownerEpoch, onFenced));
      },
      handoff: (leaving, children) => new TestHandoff(world, this, leaving, children, engines.load),
    };
    return engines;
  }

  /** The parents' streams become those of the children, if the parents still own them. */
  async handOver(world: World, leaving: readonly ParentRange[], children: readonly Range[]): Promise<Outcome<void>> {
    await sleep(world.clock, this.#delayMs(world));
    const parents = leaving.map(({ range }) => range);
    const held = parents.map(({ streams }) => this.#ranges.get(streams.metadata));
    const owned = held.every((one, i) => one && (one.ownerEpoch === parents[i]?.ownerEpoch || !world.rules.on("ownerEpochAtManager")));
    if (!owned) return refused("failedPrecondition", "staleOwnerEpoch", "the parents have another owner");
    for (const { streams } of parents) this.#ranges.delete(streams.metadata);
    const rows = held.flatMap((one) => [...(one?.rows ?? [])]);
    const sequence = Math.max(...held.map((one) => one?.sequence ?? 0));
    for (const child of children) {
      const own = rows.filter(([, { key }]) => holdsKey(child, key));
      this.#ranges.set(child.streams.metadata, { ownerEpoch: child.ownerEpoch, sequence, rows: new Map(own) });
    }
    await sleep(world.clock, this.#delayMs(world));
    return ok();
  }

  /** For partition managers that find a split or merge which nobody carries out. */
  get fence(): {
    fence(stream: string, ownerEpoch: number): Promise<Outcome<"fenced" | "gone">>;
    exists(stream: string): Promise<Outcome<boolean>>;
    lacks(): Promise<Outcome<readonly string[]>>;
    names(): Promise<Outcome<ReadonlySet<string>>>;
    prepend(): Promise<Outcome<void>>;
    remove(): Promise<Outcome<void>>;
  } {
    return {
      fence: async (stream, ownerEpoch) => {
        const shared = this.#ranges.get(stream);
        if (!shared) return ok("gone" as const);
        if (ownerEpoch < shared.ownerEpoch) return refused("failedPrecondition", "staleOwnerEpoch", "a higher one has it");
        shared.ownerEpoch = ownerEpoch;
        return ok("fenced" as const);
      },
      exists: async (stream) => ok(this.#ranges.has(stream)),
      lacks: async () => ok([]),
      // Asked after a restore only.
      names: async () => ok(new Set<string>()),
      prepend: async () => ok(),
      remove: async () => ok(),
    };
  }

  /** Mostly short; now and then so long that whoever waits gives up, unless `neverLate`. */
  #delayMs(world: World): number {
    return !this.neverLate && world.random.float() < 0.2 ? world.random.float() * 4_000 : world.random.float() * 20;
  }

  #range(rangeId: string): SharedRange {
    const held = this.#ranges.get(rangeId);
    if (held) return held;
    const made: SharedRange = { ownerEpoch: 0, sequence: 0, rows: new Map() };
    this.#ranges.set(rangeId, made);
    return made;
  }
}

class TestEngine implements RangeEngine {
  readonly #world: World;
  readonly #streams: TestStreams;
  readonly #shared: SharedRange;
  readonly #rows: Rows;
  readonly #ownerEpoch: number;
  readonly #onFenced: (why: string) => void;
  #sequence: number;
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;
  #holdsData = false;
  #goneSinceMs: Readonly<Record<string, number>> = {};
  #lastData: Promise<unknown> = Promise.resolve();

  constructor(
    world: World,
    streams: TestStreams,
    shared: SharedRange,
    rows: Rows,
    sequence: number,
    ownerEpoch: number,
    onFenced: (why: string) => void,
  ) {
    this.#world = world;
    this.#streams = streams;
    this.#shared = shared;
    this.#rows = rows;
    this.#sequence = sequence;
    this.#ownerEpoch = ownerEpoch;
    this.#onFenced = onFenced;
  }

  get facts(): RangeEngine["facts"] {
    return { sequence: this.#sequence, memoryTableBytes: 0, checkpointCount: 0, checkpointBytes: 0 };
  }

  mayReferTo(place: Place): boolean {
    return place.extentId === dataExtent;
  }

  /** A read may take a while after the rows were looked at, as one from disks does. */
  read: RangeEngine["read"] = async (work) => {
    const made = await work(this.#view());
    if (this.#world.random.float() < 0.5) await sleep(this.#world.clock, this.#world.random.float() * 60);
    return made;
  };

  transact: RangeEngine["transact"] = (_lockKey, decide) => {
    const done = this.#last.then(() => this.#transact(decide));
    this.#last = done;
    return done;
  };

  async #transact(decide: Parameters<RangeEngine["transact"]>[1]): ReturnType<RangeEngine["transact"]> {
    if (this.#closed) return refused("unavailable", "partitionLoading", "closed");
    const sequence = this.#sequence + 1;
    const decided = await decide(this.#view(), sequence);
    if (!decided.ok || decided.value.writes.length === 0) return decided;
    await sleep(this.#world.clock, this.#streams.commitMs);
    const shared = this.#shared;
    if (shared.ownerEpoch !== this.#ownerEpoch && this.#world.rules.on("ownerEpochAtNode")) {
      this.#closed = true;
      this.#onFenced("another owner");
      return refused("aborted", "wrongPartition", "fenced");
    }
    shared.sequence = sequence;
    this.#sequence = sequence;
    for (const write of decided.value.writes) {
      assert(write.kind === "delete" || versionOfRow(write.value) <= this.#streams.rowVersion, "a version that the state does not have");
      for (const rows of [shared.rows, this.#rows]) {
        if (write.kind === "delete") rows.delete(toHex(write.key));
        else rows.set(toHex(write.key), { key: write.key, value: write.value });
      }
    }
    await sleep(this.#world.clock, this.#streams.commitMs);
    return decided;
  }

  async appendData(
    payload: Uint8Array,
    { whenFree }: { readonly whenFree?: (() => void) | undefined },
  ): ReturnType<RangeEngine["appendData"]> {
    if (this.#closed || this.#holdsData) return refused("unavailable", "partitionLoading", "it becomes another range");
    if (this.#streams.dataMs > 0) {
      this.#lastData = this.#lastData.then(() => sleep(this.#world.clock, this.#streams.dataMs));
      await this.#lastData;
    }
    if (this.#streams.dataFails !== undefined) return this.#streams.dataFails;
    const place = { extentId: dataExtent, offsetBytes: this.#streams.dataBytes, lengthBytes: payload.length };
    this.#streams.dataBytes += payload.length;
    if (this.#streams.dataFree === "with the result") whenFree?.();
    if (this.#streams.dataFree === "later") this.#world.clock.after(10, () => whenFree?.());
    return ok(place);
  }

  async checkpoint(): Promise<Outcome<void>> {
    return ok();
  }

  /** Takes the time of a parent that writes out what is in memory, and fails at times. */
  async prepareToLeave(): Promise<Outcome<void>> {
    const { prepareMs, prepareFails } = this.#streams;
    if (prepareMs > 0) await sleep(this.#world.clock, prepareMs);
    const fails = prepareFails > 0 && this.#world.random.float() < prepareFails;
    return fails ? refused("unavailable", "noPlacement", "there are no extent nodes") : ok();
  }

  holdData(): void {
    this.#holdsData = true;
  }

  async leave(): Promise<void> {
    this.#closed = true;
    if (this.#world.rules.on("drainBeforeLeaving")) await this.#last;
  }

  async begin(): Promise<void> {}

  async settleExtents(): Promise<Outcome<readonly never[]>> {
    return ok([]);
  }

  goneSinceMs(): Readonly<Record<string, number>> {
    return this.#goneSinceMs;
  }

  async recordGone(goneSinceMs: Readonly<Record<string, number>>): Promise<Outcome<void>> {
    this.#goneSinceMs = goneSinceMs;
    return ok();
  }

  async needRows(version: number): Promise<Outcome<void>> {
    if (this.#streams.needsRefused) return refused("unavailable", "partitionLoading", "it becomes others");
    this.#streams.rowVersion = Math.max(this.#streams.rowVersion, version);
    return ok();
  }

  pinData(): Outcome<readonly number[]> {
    return ok([]);
  }

  sealedDataExtents(): readonly never[] {
    return [];
  }

  async copyData(): Promise<Outcome<readonly Place[]>> {
    return ok([]);
  }

  async leaveExtents(): Promise<void> {}

  async dropExtents(): Promise<Outcome<readonly number[]>> {
    return ok([]);
  }

  keySamples(): readonly Uint8Array[] {
    return [...this.#rows.values()].map(({ key }) => key).sort(compareBytes);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#last;
  }

  async forgetCached(): Promise<void> {}

  #view(): RowView {
    const rows = this.#rows;
    return {
      get: async (key): Promise<Outcome<Uint8Array | undefined>> => ok(rows.get(toHex(key))?.value),
      scan: async (low, high, limits) => {
        const found = [...rows.values()]
          .filter((row) => compareBytes(row.key, low) >= 0 && compareBytes(row.key, high) < 0)
          .sort((a, b) => compareBytes(a.key, b.key));
        return ok({ rows: found.slice(0, limits.rowsMax), more: found.length > limits.rowsMax, deleted: 0 });
      },
      walk: async (low, high, visit) => {
        let from: Uint8Array | undefined = low;
        for (const row of [...rows.values()].sort((a, b) => compareBytes(a.key, b.key))) {
          if (from === undefined || compareBytes(row.key, high) >= 0) break;
          if (compareBytes(row.key, from) >= 0) from = visit(row);
        }
        return ok();
      },
    };
  }
}

class TestHandoff implements Handoff {
  readonly #world: World;
  readonly #streams: TestStreams;
  readonly #parents: readonly ParentRange[];
  readonly #children: readonly Range[];
  readonly load: LoadEngine;

  constructor(world: World, streams: TestStreams, parents: readonly ParentRange[], children: readonly Range[], load: LoadEngine) {
    this.#world = world;
    this.#streams = streams;
    this.#parents = parents;
    this.#children = children;
    this.load = load;
  }

  async prepare(written: boolean): Promise<Outcome<void>> {
    this.#streams.preparedWritten = written;
    const [prepared] = await Promise.all([
      Promise.all(this.#engines.map((engine) => engine.prepareToLeave())),
      written ? sleep(this.#world.clock, this.#streams.allocateMs) : undefined,
    ]);
    return prepared.find(({ ok }) => !ok) ?? ok();
  }

  resume(): void {}

  async holdData(): Promise<void> {
    for (const engine of this.#engines) engine.holdData();
  }

  async leave() {
    const heldSinceMs = this.#world.clock.monotonicMs();
    await Promise.all(this.#engines.map((engine) => engine.leave()));
    return ok({ heldSinceMs, drainMs: 0, writeMs: 0 });
  }

  handOver(): Promise<Outcome<void>> {
    return this.#streams.handOver(this.#world, this.#parents, this.#children);
  }

  get #engines(): readonly TestEngine[] {
    return this.#parents.map(({ engine }) => engine as TestEngine);
  }
}
