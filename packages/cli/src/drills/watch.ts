/** Follows what the managers say during a drill, and turns it into a timeline: noticed, sealed, reassigned, copies complete. */
import type { StampInspector } from "@stamp/cluster";
import { type ExtentInfo, ExtentState, type RangePartition } from "@stamp/wire";

export interface TimelineEntry {
  /** From the fault; negative: before. */
  readonly atMs: number;
  readonly what: string;
}

const pollMs = 50;
/** A look at thousands of ranges or extents is work for who is asked: that is left so many times as long as it took. */
const restPerLook = 4;
/** Of ranges whose state changed between two looks; of more only their number is told. */
const toldOneByOneMax = 10;

export class Timeline {
  readonly entries: TimelineEntry[] = [];
  readonly #onEntry: (entry: TimelineEntry) => void;
  faultMs = Number.NaN;

  constructor(onEntry: (entry: TimelineEntry) => void) {
    this.#onEntry = onEntry;
  }

  note(what: string, atMs = performance.now()): void {
    const entry = { atMs: Number.isNaN(this.faultMs) ? 0 : Math.round(atMs - this.faultMs), what };
    this.entries.push(entry);
    this.#onEntry(entry);
  }
}

/** Watches until stopped. Each state of nodes, servers, ranges and extents is told when it changes. */
export class Watch {
  readonly #inspector: StampInspector;
  readonly #timeline: Timeline;
  readonly #openAtFault = new Set<string>();
  readonly #told = new Map<string, string>();
  #running = true;
  #done: Promise<unknown> = Promise.resolve();
  /** Every extent has as many intact copies as it is meant to have, and every range is served. */
  whole = false;

  constructor(inspector: StampInspector, timeline: Timeline) {
    this.#inspector = inspector;
    this.#timeline = timeline;
  }

  /** Takes what is there for normal. */
  async begin(): Promise<void> {
    for (const extent of await this.#inspector.extents()) if (extent.state === ExtentState.OPEN) this.#openAtFault.add(idOf(extent));
    await Promise.all([this.#nodes(false), this.#servers(false)]);
    this.#done = Promise.all([
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
    const changed = (await this.#inspector.ranges()).filter((range) => {
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
    const missing = extents.filter((extent) => extent.state === ExtentState.SEALED && extent.intactCopies < extent.nodeIds.length);
    const nowWhole = missing.length === 0 && extents.length > 0;
    if (this.whole && !nowWhole) this.#timeline.note(`copies missing of ${missing.length} extents`);
    if (!this.whole && nowWhole) this.#timeline.note("copies complete");
    this.whole = nowWhole;
  }
}

const stateOf = ({ server, loaded, ownerEpoch }: RangePartition, withEpoch: boolean): string => {
  if (server === "") return "is unassigned";
  return loaded ? `is served by ${server}${withEpoch ? `, epoch ${ownerEpoch}` : ""}` : `is loading on ${server}`;
};

const idOf = (extent: ExtentInfo): string => String(extent.location?.extentId);
