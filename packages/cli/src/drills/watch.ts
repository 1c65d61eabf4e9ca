/** Follows what the managers say during a drill, and turns it into a timeline: noticed, sealed, reassigned, copies complete. */
import type { StampInspector } from "@stamp/cluster";
import { type ExtentInfo, ExtentState } from "@stamp/wire";

export interface TimelineEntry {
  /** From the fault; negative: before. */
  readonly atMs: number;
  readonly what: string;
}

const pollMs = 50;

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
      await look().catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  }

  #change(key: string, state: string, tell: boolean): void {
    const before = this.#told.get(key);
    this.#told.set(key, state);
    if (tell && before !== undefined && before !== state) this.#timeline.note(`${key} ${state}`);
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
    for (const range of await this.#inspector.ranges()) {
      const served =
        range.server === ""
          ? "is unassigned"
          : range.loaded
            ? `is served by ${range.server}, epoch ${range.ownerEpoch}`
            : `is loading on ${range.server}`;
      this.#change(`range ${range.rangeId} (${range.table})`, served, tell);
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

const idOf = (extent: ExtentInfo): string => String(extent.location?.extentId);
