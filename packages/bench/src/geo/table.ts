/** Results of `stamp bench geo` as text for a terminal and for docs/measurements/geo.md. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join, resolve } from "node:path";
import type { Measurement } from "../measure.ts";
import { withMeasured } from "../peers/page.ts";
import type { LagSummary } from "./lag.ts";

export interface GeoRow {
  readonly case: string;
  /** Account without a copy. */
  readonly alone: Measurement;
  readonly copied: Measurement;
  /** Throughput with a copy as a part of that without, of each round. */
  readonly ratios: readonly number[];
  readonly lag: LagSummary;
  /** Time between the end of the load and the copy having everything, in each round, in milliseconds. */
  readonly drainMs: readonly number[];
}

export interface GeoRun {
  readonly seconds: number;
  readonly rounds: number;
  /** Load average of the machine. */
  readonly loadBefore: number;
  readonly loadAfter: number;
}

export const geoMark = "<!-- begin: written by `stamp bench geo --write` -->";
const root = process.env.STAMP_ROOT ?? resolve(import.meta.dirname, "../../../..");
const largeBytes = 1_000_000;

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

function speed({ operations, seconds, contentBytes }: Measurement): string {
  const rate = operations / seconds;
  return contentBytes > largeBytes ? `${((rate * contentBytes) / 1e6).toFixed(0)} MB/s` : `${rate.toFixed(0)}/s`;
}

/** Processor time of a stamp's processes for one operation, in milliseconds. */
function cpuText({ serverCpuMs, operations }: Measurement, stamp: "north" | "south"): string {
  const sum = [...serverCpuMs].reduce((total, [name, cpuMs]) => total + (name.startsWith(stamp) ? cpuMs : 0), 0);
  return (sum / Math.max(operations, 1)).toFixed(2);
}

const inSeconds = (ms: number): string => (Number.isNaN(ms) ? "not known" : (ms / 1_000).toFixed(1));
const inMebibytes = (bytes: number): string => (bytes / (1024 * 1024)).toFixed(1);

/** Lines of the table about a case: title and value. */
function cellsOf({ alone, copied, ratios, lag, drainMs }: GeoRow): readonly (readonly [title: string, cell: string])[] {
  return [
    ["without a copy", speed(alone)],
    ["with a copy", speed(copied)],
    ["part of it: median (each round)", `${median(ratios).toFixed(2)} (${ratios.map((each) => each.toFixed(2)).join(" ")})`],
    ["p50 of a put, ms: without, with", `${alone.p50Ms.toFixed(1)}, ${copied.p50Ms.toFixed(1)}`],
    ["p99 of a put, ms: without, with", `${alone.p99Ms.toFixed(0)}, ${copied.p99Ms.toFixed(0)}`],
    ["processor time of a put at the primary's stamp, ms: without, with", `${cpuText(alone, "north")}, ${cpuText(copied, "north")}`],
    ["processor time of a put at the copy's stamp, ms: without, with", `${cpuText(alone, "south")}, ${cpuText(copied, "south")}`],
    ["lag behind Last Sync Time under load, s: p50, max", `${inSeconds(lag.lagP50Ms)}, ${inSeconds(lag.lagMaxMs)}`],
    ["the same as clients are told it, s: p50, max", `${inSeconds(lag.toldP50Ms)}, ${inSeconds(lag.toldMaxMs)}`],
    ["backlog, at most", `${lag.pendingCommitsMax} commits, ${inMebibytes(lag.pendingBytesMax)} MiB`],
    [
      "median backlog in the second and in the last quarter of a turn, MiB",
      `${inMebibytes(lag.pendingBytesEarly)}, ${inMebibytes(lag.pendingBytesLate)}`,
    ],
    ["looks without a Last Sync Time", `${lag.unknown} of ${lag.samples}`],
    ["until the copy had everything after the load, s (each round)", drainMs.map(inSeconds).join(" ")],
    ["calls to the copy's stamp that failed", String(lag.failedCalls)],
    ["puts that failed: without, with", `${alone.failed}, ${copied.failed}`],
  ];
}

export function lineOf(row: GeoRow): string {
  const failure = row.alone.firstFailure || row.copied.firstFailure;
  const lines = cellsOf(row).map(([title, cell]) => `  ${title.padEnd(76)} ${cell}`);
  return [row.case, ...lines, ...(failure === "" ? [] : [`  first failure: ${failure}`])].join("\n");
}

export function markdownOf(rows: readonly GeoRow[]): string {
  const cells = rows.map(cellsOf);
  const lines = (cells[0] ?? []).map(([title], at) => `| ${title} | ${cells.map((one) => one[at]?.[1]).join(" | ")} |`);
  return [`| | ${rows.map((row) => row.case).join(" | ")} |`, `|---|${rows.map(() => "---|").join("")}`, ...lines].join("\n");
}

/** Writes the measured part of docs/measurements/geo.md. Returns its path. */
export function writeGeoPage(rows: readonly GeoRow[], { seconds, rounds, loadBefore, loadAfter }: GeoRun): string {
  const page = join(root, "docs/measurements/geo.md");
  const day = new Date().toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric" });
  const commit = execFileSync("git", ["rev-parse", "--short=8", "HEAD"], { cwd: root, encoding: "utf8" }).trim();
  const about =
    `${day}, commit ${commit}, ${cpus().length} processors, load average ${loadBefore.toFixed(1)} before and ${loadAfter.toFixed(1)} after;\n` +
    `${rounds} turns of ${seconds} s of each account.`;
  writeFileSync(page, withMeasured(readFileSync(page, "utf8"), `${about}\n\n${markdownOf(rows)}`, geoMark));
  return page;
}
