/** Follows what the managers say during a drill, and turns it into a timeline: noticed, sealed, reassigned, copies complete. */
import type { ProcessStatus, StampInspector } from "@stamp/cluster";
import { type ExtentInfo, ExtentState, type RangePartition } from "@stamp/wire";
import { lacksPieces } from "./coding/coded-blobs.ts";
import { DrillError } from "./drill-error.ts";
import type { DrillTarget } from "./target.ts";

export interface TimelineEntry {
  /** Time from the first fault, in ms; negative: before it. Undefined while no fault has come. */
  readonly atMs: number | undefined;
  readonly what: string;
}

/** Returns the line of an entry. */
export function entryText({ atMs, what }: TimelineEntry): string {
  const at = atMs === undefined ? "before" : `${(atMs / 1000).toFixed(2)} s`;
  return `  ${at.padStart(9)}  ${what}`;
}

const pollMs = 50;
/** A manager of a busy machine may need more than one attempt to answer the first look. */
const beginWithinMs = 30_000;
/** Rest after a look, as a multiple of the look's time: thousands of ranges or extents are work for whoever is asked. */
const restPerLook = 4;
/** Number of changed ranges that one look prints one by one; of more only the number is printed. */
const toldOneByOneMax = 10;

export class Timeline {
  readonly #noted: { readonly noteMs: number; readonly what: string }[] = [];
  readonly #onEntry: (entry: TimelineEntry) => void;
  #faultMs: number | undefined;
  #lastFaultMs = Number.NaN;

  constructor(onEntry: (entry: TimelineEntry) => void) {
    this.#onEntry = onEntry;
  }

  /** Moment of the first fault, from which all times count; NaN while there was none. */
  get faultMs(): number {
    return this.#faultMs ?? Number.NaN;
  }

  /** Moment of the last fault; NaN while there was none. */
  get lastFaultMs(): number {
    return this.#lastFaultMs;
  }

  /** Entries in the order of time. */
  get entries(): readonly TimelineEntry[] {
    return this.#noted.map(({ noteMs, what }) => ({ atMs: this.#sinceFault(noteMs), what }));
  }

  /** Marks a fault: the first one is the zero of the timeline. */
  fault(what: string): void {
    this.#lastFaultMs = performance.now();
    this.#faultMs ??= this.#lastFaultMs;
    this.#note(what, this.#lastFaultMs);
  }

  note(what: string): void {
    this.#note(what, performance.now());
  }

  #note(what: string, noteMs: number): void {
    this.#noted.push({ noteMs, what });
    this.#onEntry({ atMs: this.#sinceFault(noteMs), what });
  }

  #sinceFault(ms: number): number | undefined {
    return this.#faultMs === undefined ? undefined : Math.round(ms - this.#faultMs);
  }
}

/** Watches until stopped. Each state of nodes, servers, ranges and extents is told when it changes. */
export class Watch {
  readonly #target: Pick<DrillTarget, "status">;
  readonly #inspector: StampInspector;
  readonly #timeline: Timeline;
  readonly #openAtFault = new Set<string>();
  readonly #told = new Map<string, string>();
  #running = true;
  #done: Promise<unknown> = Promise.resolve();
  #processStates: readonly ProcessStatus[] = [];
  #unserved = 0;
  /** True if every extent has as many intact copies or fragments as it is meant to have, and every range is served. */
  whole = false;

  constructor(target: Pick<DrillTarget, "inspector" | "status">, timeline: Timeline) {
    this.#target = target;
    this.#inspector = target.inspector;
    this.#timeline = timeline;
  }

  /**
   * Returns what the stamp waits for, as of the last looks, in words; empty if every process is ready and every range
   * served.
   */
  get waitsFor(): string {
    const waiting = this.#processStates.filter(({ ready }) => !ready);
    const shown = [...Map.groupBy(waiting, stateOfProcess)].map(([state, processes]) => {
      const all = processes.length === this.#processStates.length;
      return `${all ? "every process" : processes.map(({ name }) => name).join(", ")}: ${state}`;
    });
    if (waiting.length === 0 && this.#unserved > 0) shown.push(`ranges not served: ${this.#unserved}`);
    return shown.join("; ");
  }

  /** Takes what is there for normal. */
  async begin(): Promise<void> {
    const endMs = performance.now() + beginWithinMs;
    for (;;) {
      try {
        for (const extent of await this.#inspector.extents()) if (extent.state === ExtentState.OPEN) this.#openAtFault.add(idOf(extent));
        await Promise.all([this.#nodes(false), this.#servers(false), this.#processes(false)]);
        break;
      } catch (error) {
        if (performance.now() > endMs) throw new DrillError(`the stamp can't be watched: ${(error as Error).message}`);
        await new Promise((resolve) => setTimeout(resolve, pollMs));
      }
    }
    this.#done = Promise.all([
      this.#repeat(() => this.#processes(true)),
      this.#repeat(() => this.#nodes(true)),
      this.#repeat(() => this.#servers(true)),
      this.#repeat(() => this.#extents()),
    ]);
  }

  async stop(): Promise<void> {
    this.#running = false;
    await this.#done;
  }

  async #repeat(look: () => Promise<void>): Promise<void> {
    while (this.#running) {
      // A manager that is down can't be asked; the next look will tell.
      const startMs = performance.now();
      await look().catch(() => {});
      const restMs = Math.max(pollMs, restPerLook * (performance.now() - startMs));
      await new Promise((resolve) => setTimeout(resolve, restMs));
    }
  }

  #change(key: string, state: string, tell: boolean): void {
    if (this.#changed(key, state) && tell) this.#timeline.note(`${key} ${state}`);
  }

  #changed(key: string, state: string): boolean {
    const before = this.#told.get(key);
    this.#told.set(key, state);
    return before !== undefined && before !== state;
  }

  async #processes(tell: boolean): Promise<void> {
    this.#processStates = (await this.#target.status()).processes;
    const changed = this.#processStates.filter((each) => this.#changed(`process ${each.name}`, stateOfProcess(each)) && tell);
    for (const [state, processes] of Map.groupBy(changed, stateOfProcess)) {
      const names = processes.map(({ name }) => name);
      const all = names.length === this.#processStates.length;
      this.#timeline.note(all ? `every process: ${state}` : `${names.join(", ")}: ${state}`);
    }
  }

  async #nodes(tell: boolean): Promise<void> {
    for (const node of await this.#inspector.nodes())
      this.#change(`stream manager: ${node.nodeId}`, node.up ? "is up" : "is down (noticed)", tell);
  }

  async #servers(tell: boolean): Promise<void> {
    for (const server of await this.#inspector.servers()) {
      this.#change(
        `partition manager: ${server.server}`,
        server.up ? `is up, lease epoch ${server.leaseEpoch}` : "is down (noticed)",
        tell,
      );
    }
    await this.#ranges(tell);
  }

  async #ranges(tell: boolean): Promise<void> {
    const ranges = await this.#inspector.ranges();
    this.#unserved = ranges.filter(({ server, loaded }) => server === "" || !loaded).length;
    const changed = ranges.filter((range) => {
      const { rangeId, server, loaded, ownerEpoch } = range;
      return this.#changed(`range ${rangeId}`, `${loaded} ${server} ${ownerEpoch}`) && tell;
    });
    const many = changed.length > toldOneByOneMax;
    for (const [state, ranges] of Map.groupBy(changed, (range) => stateOf(range, !many))) {
      if (many) this.#timeline.note(ranges.length === 1 ? `a range ${state}` : `${ranges.length} ranges: each ${state}`);
      else for (const { rangeId, table } of ranges) this.#timeline.note(`range ${rangeId} (${table}) ${state}`);
    }
  }

  async #extents(): Promise<void> {
    const extents = await this.#inspector.extents();
    const sealed: string[] = [];
    for (const extent of extents) {
      if (this.#openAtFault.has(idOf(extent)) && extent.state === ExtentState.SEALED) {
        this.#openAtFault.delete(idOf(extent));
        sealed.push(idOf(extent));
      }
    }
    if (sealed.length > 0) this.#timeline.note(`sealed: extent ${sealed.join(", ")}`);
    const [coded, replicated] = partition(extents.filter(lacksPieces), (extent) => extent.coded !== undefined);
    const nowWhole = coded.length + replicated.length === 0 && extents.length > 0;
    if (this.whole && !nowWhole) {
      if (replicated.length > 0) this.#timeline.note(`copies missing of ${replicated.length} extents`);
      if (coded.length > 0) this.#timeline.note(`fragments missing of ${coded.length} coded extents`);
    }
    if (!this.whole && nowWhole)
      this.#timeline.note(extents.some((extent) => extent.coded !== undefined) ? "copies and fragments complete" : "copies complete");
    this.whole = nowWhole;
  }
}

/** Returns the state of a process in words, equal for all that are in the same one. */
function stateOfProcess({ state, ready, waitingFor, lastExit }: ProcessStatus): string {
  if (ready) return `ready (${state})`;
  const last = state === "restarting" && lastExit !== "" ? ` after ${lastExit}` : "";
  return waitingFor.length > 0 ? `${state}, waiting for ${waitingFor.join(", ")}` : `${state}${last}`;
}

const stateOf = ({ server, loaded, ownerEpoch }: RangePartition, withEpoch: boolean): string => {
  if (server === "") return "is unassigned";
  return loaded ? `is served by ${server}${withEpoch ? `, epoch ${ownerEpoch}` : ""}` : `is loading on ${server}`;
};

const partition = <T>(items: readonly T[], holds: (item: T) => boolean): readonly [T[], T[]] => [
  items.filter(holds),
  items.filter((item) => !holds(item)),
];

const idOf = (extent: ExtentInfo): string => String(extent.location?.extentId);
