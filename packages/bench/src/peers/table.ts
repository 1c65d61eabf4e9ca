/** Rows of the table of peers, as text for a terminal and as Markdown. */
import type { Measurement } from "../measure.ts";
import type { TargetName } from "../targets.ts";
import { peerGoals } from "./reach.ts";

export interface Row {
  readonly case: string;
  readonly target: TargetName;
  readonly result: Measurement;
}

const peerName = "azurite";
const largeBytes = 1_000_000;

export const rate = ({ result }: Row): number => result.operations / result.seconds;

/** Returns the processor time of one operation in each server process, in microseconds. */
export const cpuOf = ({ result }: Row): readonly (readonly [name: string, micros: number])[] =>
  [...result.serverCpuMs].map(([name, cpuMs]) => [name, (cpuMs * 1_000) / Math.max(result.operations, 1)] as const);

const cpuMicros = (row: Row): number => cpuOf(row).reduce((sum, [, micros]) => sum + micros, 0);

/** Returns the throughput as a multiple of the emulator's; undefined for the emulator itself, and without it. */
export function ratioOf(row: Row, rows: readonly Row[]): number | undefined {
  const peer = rows.find((other) => other.case === row.case && other.target === peerName);
  return peer === undefined || row.target === peerName ? undefined : rate(row) / rate(peer);
}

const speed = (row: Row): string => {
  const { contentBytes } = row.result;
  return contentBytes > largeBytes
    ? `${((rate(row) * contentBytes) / 1e6).toFixed(0)} MB/s`
    : `${rate(row).toFixed(rate(row) < 10 ? 1 : 0)}/s`;
};

const micros = (value: number): string => (value < 10_000 ? `${value.toFixed(0)} µs` : `${(value / 1_000).toFixed(1)} ms`);

export function lineOf(row: Row): string {
  const { p50Ms, p99Ms, failed, firstFailure } = row.result;
  const failures = failed > 0 ? `  ${failed} FAILED (${firstFailure})` : "";
  return (
    `${row.case.padEnd(36)} ${row.target.padEnd(9)} ${speed(row).padStart(10)}  p50 ${p50Ms.toFixed(1)} ms  p99 ${p99Ms.toFixed(1)} ms  ` +
    `${micros(cpuMicros(row))} of processor time each${failures}`
  );
}

export function byProcessOf(row: Row, rows: readonly Row[]): string {
  const ratio = ratioOf(row, rows);
  const byProcess = cpuOf(row).map(([name, value]) => `${name} ${value.toFixed(0)}`);
  const load = (row.result.cpuMs * 1_000) / Math.max(row.result.operations, 1);
  return (
    `${row.case.padEnd(36)} ${row.target.padEnd(9)} ${(ratio === undefined ? "" : `${ratio.toFixed(1)}×`).padStart(6)}  ` +
    `${byProcess.join(", ")} µs; load ${load.toFixed(0)} µs`
  );
}

const roles: readonly (readonly [title: string, of: RegExp])[] = [
  ["front-ends", /^front-end/],
  ["partition servers", /^partition-server/],
  ["extent nodes", /^extent-node/],
];

/** Returns two tables: the cluster beside the emulator with what is to be reached, and where the cluster's processor time goes. */
export function markdownOf(rows: readonly Row[]): string {
  const ours = rows.filter(({ target }) => target === "cluster");
  const of = (target: TargetName, name: string): Row | undefined => rows.find((row) => row.target === target && row.case === name);
  const embedded = rows.some(({ target }) => target === "embedded");
  const cells = ours.map((row) => {
    const peer = of(peerName, row.case);
    const inOne = of("embedded", row.case);
    const ratio = ratioOf(row, rows);
    const wanted = peerGoals[row.case] ?? {};
    return [
      row.case,
      speed(row),
      latencies(row),
      micros(cpuMicros(row)),
      ...(embedded ? [inOne === undefined ? "" : speed(inOne)] : []),
      peer === undefined ? "" : speed(peer),
      peer === undefined ? "" : latencies(peer),
      peer === undefined ? "" : micros(cpuMicros(peer)),
      ratio === undefined ? "" : ratio.toFixed(1),
      wantedText(wanted),
    ];
  });
  const head = ["case × clients", "Stamp", "p50, p99 ms", "processor time", ...(embedded ? ["embedded"] : [])];
  const places = ours.map((row) => {
    const sums = roles.map(([, name]) => cpuOf(row).reduce((sum, [process, value]) => sum + (name.test(process) ? value : 0), 0));
    const others = cpuMicros(row) - sums.reduce((sum, value) => sum + value, 0);
    return [row.case, ...[...sums, others].map(micros)];
  });
  return [
    ...markdown([...head, "emulator", "p50, p99 ms", "processor time", "ratio", "to reach"], cells),
    "",
    "Where the processor time of one operation goes, by role:",
    "",
    ...markdown(["case × clients", ...roles.map(([title]) => title), "others"], places),
  ].join("\n");
}

const latencies = ({ result }: Row): string => `${result.p50Ms.toFixed(1)}, ${result.p99Ms.toFixed(1)}`;

const wantedText = ({ ratio, cpuMicros: cpu, p50Ms }: (typeof peerGoals)[string]): string =>
  [
    ...(ratio === undefined ? [] : [`ratio ${ratio}`]),
    ...(cpu === undefined ? [] : [micros(cpu)]),
    ...(p50Ms === undefined ? [] : [`p50 ${p50Ms} ms`]),
  ].join(", ");

const markdown = (head: readonly string[], rows: readonly (readonly string[])[]): string[] => [
  `| ${head.join(" | ")} |`,
  `|${"---|".repeat(head.length)}`,
  ...rows.map((row) => `| ${row.join(" | ")} |`),
];
