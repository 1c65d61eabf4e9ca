/**
 * Judges from outside that a replica stays on its disk for the grace of deletions after its extent became fragments. A reader may still read it,
 * and metadata that are restored from a copy younger than the grace name it.
 */
import { BrokenPromise } from "@stamp/virtual-time";
import { type ExtentInfo, ExtentState } from "@stamp/wire";
import type { Stage } from "./callers.ts";
import { believedAfterMs } from "./fragment-judge.ts";

const lookEveryMs = 500;

interface Named {
  readonly id: bigint;
  readonly node: string;
  /** Time at which an answer last named the replica, which was on its disk then. */
  readonly askedMs: number;
}

/** Looks at every record and every disk, again and again. Sees nothing of a grace that is shorter than stale answers of a manager may be old. */
export async function graceIsKept({ sim, judge, manager, endMs }: Stage, graceMs: number, fragile: readonly string[]): Promise<void> {
  const named = new Map<string, Named>();
  const isThere = (node: string, id: bigint): boolean => {
    const file = `${id.toString(16).padStart(14, "0")}.extent`;
    return sim
      .disk(node)
      .paths()
      .some((path) => path.endsWith(file));
  };
  while (sim.nowMs < endMs) {
    await sim.sleep(lookEveryMs);
    const askedMs = sim.nowMs;
    const extents = await manager.extents();
    if (extents === undefined) continue;
    const extentOf = new Map(extents.map((extent) => [extent.location?.extentId ?? 0n, extent]));
    for (const [key, { id, node, askedMs: namedMs }] of named) {
      const extent = extentOf.get(id);
      // A decoding and a repair may put another file in the place of this one.
      if (extent === undefined || !isSteady(extent) || sim.nowMs - namedMs >= graceMs - believedAfterMs) named.delete(key);
      else if (extent.coded !== undefined && !isThere(node, id)) {
        const afterMs = sim.nowMs - namedMs;
        throw new BrokenPromise(
          `a replica of extent ${id} on ${node} is gone ${afterMs} ms after it was named, in a grace of ${graceMs} ms`,
        );
      } else if (extent.coded !== undefined) judge.count("looks at replicas in their grace");
    }
    for (const [id, extent] of extentOf) {
      if (extent.state !== ExtentState.SEALED || extent.coded !== undefined || !isSteady(extent)) continue;
      for (const node of extent.nodeIds)
        if (!fragile.includes(node) && isThere(node, id)) named.set(`${id} ${node}`, { id, node, askedMs });
    }
  }
}

const isSteady = ({ attempt }: ExtentInfo): boolean => attempt === "" || attempt === "code";
