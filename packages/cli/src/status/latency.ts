/** Part of `stamp status`: how long requests, their transactions and appends took of late, at every process that serves. */
import { table } from "../print.ts";

/** Number of rows; of more only the slowest are shown. */
const rowsMax = 40;
/** The last bound of a histogram (`bucketsMs`). */
const boundMs = 30_000;

export interface Latency {
  readonly process: string;
  /** blob write 2xx, append, … */
  readonly what: string;
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

type Facts = Readonly<Record<string, unknown>>;

/** Paths of the histograms among the facts of a role, and their names here. */
const places: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "front-end": { took: "blob", "queue.took": "queue", "table.took": "table", "file.took": "file", "dfs.took": "dfs" },
  "partition-server": { took: "" },
  "extent-node": { "took.appendDone": "append", "took.appendFailed": "failed append", "took.read": "read", journalSync: "journal sync" },
};

/** Returns the latencies among the facts that a process answered. */
export function latenciesOf(role: string, process: string, facts: Facts): Latency[] {
  return Object.entries(places[role] ?? {}).flatMap(([path, name]) =>
    found(
      path.split(".").reduce<unknown>((at, part) => (at as Facts | undefined)?.[part], facts),
      name,
    ).map((one) => ({ process, ...one })),
  );
}

/** Returns the histogram at a path, or those below it by their labels. */
function found(fact: unknown, what: string): Omit<Latency, "process">[] {
  if (typeof fact !== "object" || fact === null) return [];
  if (!("recent" in fact)) return Object.entries(fact).flatMap(([label, inner]) => found(inner, `${what} ${label}`.trim()));
  const { count, p50Ms, p99Ms } = fact.recent as { count: number; p50Ms?: number; p99Ms?: number };
  return p50Ms === undefined || p99Ms === undefined ? [] : [{ what, count, p50Ms, p99Ms }];
}

export function latencyTable(all: readonly Latency[]): string {
  const shown = all.length <= rowsMax ? all : all.toSorted((a, b) => b.p99Ms - a.p99Ms).slice(0, rowsMax);
  const rows = shown.map(({ process, what, count, p50Ms, p99Ms }) => [process, what, count, msText(p50Ms), msText(p99Ms)]);
  const more = all.length - shown.length;
  return [table(["PROCESS", "WHAT", "COUNT", "P50", "P99"], rows), ...(more > 0 ? [`… and ${more} that were quicker`] : [])].join("\n");
}

const msText = (ms: number): string => (ms >= boundMs ? `over ${boundMs / 1_000} s` : `${ms.toFixed(ms < 1 ? 2 : ms < 10 ? 1 : 0)} ms`);
