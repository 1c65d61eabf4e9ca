/** Facts about the cluster at one size of the table, and their text. */
import { join } from "node:path";
import type { DrillTarget } from "@stamp/drills";
import { type StorageCounts, storageRatios } from "@stamp/range-partition";
import { Status } from "@stamp/wire";
import { diskBytes, type ProcessUse } from "./machine.ts";

export interface Work {
  readonly rows: number;
  readonly ms: number;
  readonly latenciesMs: readonly number[];
  /** Microseconds of processor time for each row, by process. */
  readonly cpu: ReadonlyMap<string, number>;
}

export interface PointInput {
  readonly rows: number;
  /** Key and value of one, about. */
  readonly rowBytes: number;
  readonly insert: Work;
  readonly read: Work;
  /** Work on the table of `besideRows` rows, in turns with `read`. */
  readonly beside: Work;
  /** Counts of the partition servers during `read`. */
  readonly readCounts: StorageCounts;
}

/** A table that stays so small is read in turns with the one that grows: what else there is on the machine both have alike. */
export const besideRows = 1_000;

export interface StorageNow {
  readonly counts: StorageCounts;
  readonly ranges: number;
  readonly checkpointBytes: number;
  /** By partition server: in checkpoints of its ranges, and in its row cache. What is there more than in checkpoints nobody reads. */
  readonly servers: ReadonlyMap<string, { readonly checkpointBytes: number; readonly rowCacheBytes: number }>;
  readonly checkpointsMost: number;
  readonly diskBytes: number;
  /** Part of `diskBytes` that is journals. */
  readonly journalBytes: number;
}

export interface Point extends PointInput {
  readonly after: StorageNow;
  readonly processes: readonly ProcessUse[];
}

type ServerStorage = StorageCounts & { readonly rowCacheBytes: number };

async function storageOfServers(target: DrillTarget): Promise<Map<string, ServerStorage>> {
  const { processes } = await target.status();
  const all = new Map<string, ServerStorage>();
  for (const { name, grpc } of processes.filter(({ role }) => role === "partition-server")) {
    const status = await target.transport.client(grpc, Status).getStatus({}, { timeoutMs: 10_000 });
    const storage = status.ok ? status.value.facts?.storage : undefined;
    if (storage !== undefined) all.set(name, storage as unknown as ServerStorage);
  }
  return all;
}

function summed(all: readonly StorageCounts[]): StorageCounts {
  const names = Object.keys(all[0] ?? {}) as (keyof StorageCounts)[];
  return Object.fromEntries(names.map((name) => [name, all.reduce((sum, one) => sum + one[name], 0)])) as unknown as StorageCounts;
}

/** Counts of the partition servers since they started, those of ranges that were split included. */
export const countsNow = async (target: DrillTarget): Promise<StorageCounts> => summed([...(await storageOfServers(target)).values()]);

export async function storageNow(target: DrillTarget): Promise<StorageNow> {
  const { processes, dataDir } = await target.status();
  const [all, ranges, storages] = await Promise.all([target.inspector.held(), target.inspector.ranges(), storageOfServers(target)]);
  const held = [...all.values()].filter((one) => one.table === "Entity");
  const servers = [...storages].map(([name, { rowCacheBytes }]) => {
    const own = ranges.filter(({ server }) => server === name);
    const checkpointBytes = own.reduce((sum, { rangeId }) => sum + Number(all.get(rangeId)?.checkpointBytes ?? 0), 0);
    return [name, { checkpointBytes, rowCacheBytes }] as const;
  });
  const nodes = processes.filter(({ role }) => role === "extent-node").map(({ name }) => join(dataDir, name));
  return {
    counts: summed([...storages.values()]),
    ranges: held.length,
    checkpointBytes: held.reduce((sum, one) => sum + Number(one.checkpointBytes), 0),
    servers: new Map(servers),
    checkpointsMost: Math.max(...held.map((one) => one.checkpointCount)),
    diskBytes: nodes.reduce((sum, node) => sum + diskBytes(node), 0),
    journalBytes: nodes.reduce((sum, node) => sum + diskBytes(join(node, "files", "journal")), 0),
  };
}

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`;

const percentile = (latenciesMs: readonly number[], part: number): string => {
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN).toFixed(1);
};

const share = (one: Work, other: Work): number => one.rows / one.ms / (other.rows / other.ms);

const rate = ({ rows, ms }: Work): string => ((rows * 1_000) / ms).toFixed(0);

function workText(work: Work, of: string): string {
  const used = [...work.cpu].filter(([, micros]) => micros >= 1).map(([name, micros]) => `${name} ${micros.toFixed(0)}`);
  const { latenciesMs } = work;
  return `${rate(work)}/s, ${of}p50 ${percentile(latenciesMs, 0.5)} ms, p99 ${percentile(latenciesMs, 0.99)} ms; µs CPU a row: ${used.join(", ")}`;
}

/** `sum`, and what went up from `before` to `after`. */
export function added(sum: StorageCounts | undefined, before: StorageCounts, after: StorageCounts): StorageCounts {
  const entries = Object.entries(after).map(([key, value]) => {
    const name = key as keyof StorageCounts;
    return [name, (sum?.[name] ?? 0) + value - before[name]];
  });
  return Object.fromEntries(entries) as unknown as StorageCounts;
}

const percent = (share: number | undefined): string => (share === undefined ? "-" : `${(share * 100).toFixed(2)}%`);

/** One line a point, as Markdown. */
export function pointsTable(points: readonly Point[]): string {
  const head =
    "| rows | inserts/s | of 100: p50 | p99 ms | point reads/s | p50 | p99 ms | of those beside | row cache | bloom false | met | write ampl. | disk/byte/replica | ranges |";
  const lines = points.map(({ rows, rowBytes, insert, read, beside, readCounts, after }) => {
    const now = storageRatios(readCounts);
    const cells = [
      rows,
      ...(insert.rows === 0 ? ["-", "-", "-"] : [rate(insert), percentile(insert.latenciesMs, 0.5), percentile(insert.latenciesMs, 0.99)]),
      rate(read),
      percentile(read.latenciesMs, 0.5),
      percentile(read.latenciesMs, 0.99),
      percent(share(read, beside)),
      percent(now.rowCacheHitRate),
      percent(now.bloomFalsePositiveRate),
      now.checkpointsPerRead?.toFixed(2) ?? "-",
      storageRatios(after.counts).writeAmplification?.toFixed(2) ?? "-",
      ((after.diskBytes - after.journalBytes) / 3 / (rows * rowBytes)).toFixed(2),
      after.ranges,
    ];
    return `| ${cells.join(" | ")} |`;
  });
  return [head, `|${"---|".repeat(14)}`, ...lines].join("\n");
}

export function pointText({ rows, rowBytes, insert, read, beside, readCounts, after, processes }: Point): string {
  const dataBytes = rows * rowBytes;
  const now = storageRatios(readCounts);
  const ever = storageRatios(after.counts);
  const disk = after.diskBytes - after.journalBytes;
  const cached = [...after.servers].map(([name, held]) => `${name} ${mebibytes(held.checkpointBytes)}, ${mebibytes(held.rowCacheBytes)}`);
  return [
    `${rows} rows`,
    ...(insert.rows === 0 ? [] : [`  inserts  ${workText(insert, "transaction of 100: ")}`]),
    `  reads    ${workText(read, "")}`,
    `  beside   ${workText(beside, "")}`,
    `  ${percent(share(read, beside))} of the reads of the table of ${besideRows} rows beside it, in turns`,
    `  of the reads of all rows: row cache ${percent(now.rowCacheHitRate)}, index cache ${percent(now.indexCacheHitRate)}, bloom false positives ${percent(now.bloomFalsePositiveRate)}, ${now.checkpointsPerRead?.toFixed(2) ?? "-"} checkpoints met each`,
    `  write amplification ${ever.writeAmplification?.toFixed(2) ?? "-"}; ${after.ranges} ranges of entities, at most ${after.checkpointsMost} checkpoints each`,
    `  in checkpoints, and in the row cache: ${cached.join(", ")}`,
    `  disk: ${mebibytes(disk)} on all nodes, ${(disk / dataBytes).toFixed(2)} bytes a byte of rows (${(disk / 3 / dataBytes).toFixed(2)} a replica), and ${mebibytes(after.journalBytes)} of journals`,
    `  resident: ${processes.map(({ name, residentBytes }) => `${name} ${mebibytes(residentBytes)}`).join(", ")}`,
  ].join("\n");
}
