/** What is known of the cluster at one size of the table, and how it is told. */
import { join } from "node:path";
import { type DrillTarget, ownTransport } from "@stamp/cli";
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
  /** Of the table of `besideRows` rows, in turns with `read`. */
  readonly beside: Work;
  /** What the partition servers did for `read`. */
  readonly readCounts: StorageCounts;
}

/** A table that stays so small is read in turns with the one that grows: what else there is on the machine both have alike. */
export const besideRows = 1_000;

export interface StorageNow {
  readonly counts: StorageCounts;
  readonly ranges: number;
  readonly checkpointBytes: number;
  /** In checkpoints, by partition server. */
  readonly bytesByServer: ReadonlyMap<string, number>;
  readonly checkpointsMost: number;
  readonly diskBytes: number;
  /** Of `diskBytes`, what is journals. */
  readonly journalBytes: number;
}

export interface Point extends PointInput {
  readonly after: StorageNow;
  readonly processes: readonly ProcessUse[];
}

/** Of the partition servers since they started: what ranges that were split did is in them. */
export async function countsNow(target: DrillTarget): Promise<StorageCounts> {
  const { processes } = await target.status();
  const transport = ownTransport();
  const all: StorageCounts[] = [];
  for (const { grpc } of processes.filter(({ role }) => role === "partition-server")) {
    const status = await transport.client(grpc, Status).getStatus({}, { timeoutMs: 10_000 });
    const storage = status.ok ? status.value.facts?.storage : undefined;
    if (storage !== undefined) all.push(storage as unknown as StorageCounts);
  }
  await transport.close();
  return Object.fromEntries(
    Object.keys(all[0] ?? {}).map((name) => [name, all.reduce((sum, one) => sum + one[name as keyof StorageCounts], 0)]),
  ) as unknown as StorageCounts;
}

export async function storageNow(target: DrillTarget): Promise<StorageNow> {
  const { processes, dataDir } = await target.status();
  const [all, ranges] = await Promise.all([target.inspector.held(), target.inspector.ranges()]);
  const held = [...all.values()].filter((one) => one.table === "Entity");
  const bytesByServer = new Map<string, number>();
  for (const { rangeId, server } of ranges) {
    const bytes = Number(all.get(rangeId)?.checkpointBytes ?? 0);
    bytesByServer.set(server, (bytesByServer.get(server) ?? 0) + bytes);
  }
  const nodes = processes.filter(({ role }) => role === "extent-node").map(({ name }) => join(dataDir, name));
  return {
    counts: await countsNow(target),
    ranges: held.length,
    checkpointBytes: held.reduce((sum, one) => sum + Number(one.checkpointBytes), 0),
    bytesByServer,
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
  return [
    `${rows} rows`,
    ...(insert.rows === 0 ? [] : [`  inserts  ${workText(insert, "transaction of 100: ")}`]),
    `  reads    ${workText(read, "")}`,
    `  beside   ${workText(beside, "")}`,
    `  ${percent(share(read, beside))} of the reads of the table of ${besideRows} rows beside it, in turns`,
    `  of the reads of all rows: row cache ${percent(now.rowCacheHitRate)}, index cache ${percent(now.indexCacheHitRate)}, bloom false positives ${percent(now.bloomFalsePositiveRate)}, ${now.checkpointsPerRead?.toFixed(2) ?? "-"} checkpoints met each`,
    `  write amplification ${ever.writeAmplification?.toFixed(2) ?? "-"}; ${after.ranges} ranges of entities, at most ${after.checkpointsMost} checkpoints each, ${[...after.bytesByServer].map(([server, bytes]) => `${server} ${mebibytes(bytes)}`).join(", ")} in checkpoints`,
    `  disk: ${mebibytes(disk)} on all nodes, ${(disk / dataBytes).toFixed(2)} bytes a byte of rows (${(disk / 3 / dataBytes).toFixed(2)} a replica), and ${mebibytes(after.journalBytes)} of journals`,
    `  resident: ${processes.map(({ name, residentBytes }) => `${name} ${mebibytes(residentBytes)}`).join(", ")}`,
  ].join("\n");
}
