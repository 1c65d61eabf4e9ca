/** Ranges as the page shows them: the partition manager's map, with what each partition server tells of the load and size of its ranges. */
import type { RangeRow } from "@stamp/console-page";
import type { RangePartition } from "@stamp/wire";
import type { StampFacts } from "../../health/facts.ts";
import { keyText } from "../../key-text.ts";

/** Facts of a range at its server. Every field may be missing: the server may be of another release, or load the range still. */
interface ServedFacts {
  readonly rangeId?: string;
  readonly load?: Partial<Record<"readsPerSecond" | "writesPerSecond" | "throttledPerSecond" | "latencyMs" | "pending", number>>;
  readonly memoryTableBytes?: number;
  readonly checkpointBytes?: number;
}

/** Returns a function that finds the facts of a range at the server that has it; undefined: the server is silent. */
export function servedIn({ processes }: Pick<StampFacts, "processes">): (range: RangePartition) => ServedFacts | undefined {
  const served = new Map<string, ServedFacts>();
  for (const { name, role, answer } of processes) {
    const held = role === "partition-server" ? answer?.facts.ranges : undefined;
    for (const range of (Array.isArray(held) ? held : []) as ServedFacts[]) served.set(`${name} ${range?.rangeId}`, range);
  }
  return ({ server, rangeId }) => served.get(`${server} ${rangeId}`);
}

/** Returns requests per second, refused ones included; undefined: not known. */
export function requestsOf(served: ServedFacts | undefined): number | undefined {
  const { readsPerSecond, writesPerSecond, throttledPerSecond = 0 } = served?.load ?? {};
  return readsPerSecond === undefined || writesPerSecond === undefined ? undefined : readsPerSecond + writesPerSecond + throttledPerSecond;
}

/** `facts`: of all processes. */
export function rangeRows(ranges: readonly RangePartition[], facts: Pick<StampFacts, "processes">): RangeRow[] {
  const servedOf = servedIn(facts);
  return ranges.map((range) => {
    const { load, memoryTableBytes, checkpointBytes } = servedOf(range) ?? {};
    const { rangeId, table, lowKey, highKey, server, loaded, ownerEpoch, change } = range;
    return {
      id: rangeId,
      table,
      lowKey: lowKey.length === 0 ? "" : keyText(lowKey),
      highKey: highKey.length === 0 ? "" : keyText(highKey),
      server,
      loaded,
      ownerEpoch: Number(ownerEpoch),
      change,
      readsPerSecond: load?.readsPerSecond ?? null,
      writesPerSecond: load?.writesPerSecond ?? null,
      throttledPerSecond: load?.throttledPerSecond ?? null,
      latencyMs: load?.latencyMs ?? null,
      pending: load?.pending ?? null,
      rowBytes: memoryTableBytes === undefined ? null : memoryTableBytes + (checkpointBytes ?? 0),
    };
  });
}
