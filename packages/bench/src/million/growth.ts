/**
 * Shared by `bench queues` and `bench tables`: many clients fill something at once, and at some sizes on the way each
 * operation is measured for itself.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type DrillTarget, startOwn } from "@stamp/drills";
import { diskBytes, processUse } from "../rows/machine.ts";

/** Does it once more; throws when it was refused for good. False: the cluster was too busy, or there is nothing just now. */
export type Attempt = () => Promise<boolean>;

export interface Growing {
  /** Unit that is counted: messages, entities. */
  readonly unit: string;
  prepare(): Promise<void>;
  /** Adds `perFill` of them. */
  fill(): Promise<boolean>;
  readonly perFill: number;
  /** Each is measured for itself, in this order. */
  readonly operations: readonly (readonly [name: string, attempt: Attempt])[];
  close(): void;
}

interface Row {
  readonly size: number;
  readonly operation: string;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly busy: number;
  /** Microseconds of processor time for each, by process. */
  readonly cpu: readonly (readonly [name: string, micros: number])[];
}

const sizes = [1_000, 10_000, 100_000, 1_000_000];
const sayEveryMs = 10_000;
const busyPauseMs = 50;
const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function grow(args: string[], name: string, of: (target: DrillTarget, bytes: number) => Growing): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      count: { type: "string", default: "1000000" },
      clients: { type: "string", default: "32" },
      "measuring-clients": { type: "string", default: "8" },
      seconds: { type: "string", default: "4" },
      bytes: { type: "string", default: "200" },
      "port-base": { type: "string" },
      set: { type: "string", multiple: true, default: [] },
      help: { type: "boolean", default: false },
    },
  });
  const [count, clients, measuring, seconds, bytes] = [
    values.count,
    values.clients,
    values["measuring-clients"],
    values.seconds,
    values.bytes,
  ].map(Number);
  if (values.help || !count || !clients || !measuring || !seconds || !bytes) {
    console.log(
      `pnpm bench ${name} [--count 1000000] [--clients 32] [--measuring-clients 8] [--seconds 4] [--bytes 200] [--port-base N] [--set key=value]…\n` +
        "--clients: that fill; --measuring-clients: while an operation is measured, for --seconds; --set: of the cluster's configuration",
    );
    return;
  }
  const portBase = values["port-base"];
  const flags = Object.fromEntries(values.set.map((one) => [one.slice(0, one.indexOf("=")), one.slice(one.indexOf("=") + 1)]));
  const target = await startOwn({ ...flags, ...(portBase === undefined ? {} : { portBase }) }, false);
  const growing = of(target, bytes);
  try {
    await growing.prepare();
    const rows: Row[] = [];
    let filled = 0;
    for (const size of [...sizes.filter((one) => one < count), count]) {
      const fill = await filledTo(target, growing, filled, size, clients);
      filled = size;
      rows.push(fill);
      console.log(`\n${size} ${growing.unit}\n${lineOf(fill)}`);
      for (const [operation, attempt] of growing.operations) {
        const row = await measured(target, size, operation, attempt, measuring, seconds * 1_000);
        rows.push(row);
        console.log(lineOf(row));
      }
      console.log(await machineText(target));
    }
    console.log(`\n${markdown(rows, growing.unit)}`);
  } finally {
    growing.close();
    await target.close();
  }
}

async function filledTo(target: DrillTarget, growing: Growing, from: number, to: number, clients: number): Promise<Row> {
  let left = Math.ceil((to - from) / growing.perFill);
  let saidMs = performance.now();
  const take = (): boolean => left-- > 0;
  const latenciesMs: number[] = [];
  const onDone = (): void => {
    const nowMs = performance.now();
    if (nowMs - saidMs < sayEveryMs) return;
    saidMs = nowMs;
    console.log(`  … ${to - Math.max(left, 0) * growing.perFill} ${growing.unit}`);
  };
  return load(
    { target, size: to, operation: `fill, ${growing.perFill} at once`, each: growing.perFill, latenciesMs },
    clients,
    take,
    () => growing.fill(),
    onDone,
  );
}

function measured(target: DrillTarget, size: number, operation: string, attempt: Attempt, clients: number, ms: number): Promise<Row> {
  const endMs = performance.now() + ms;
  return load(
    { target, size, operation, each: 1, latenciesMs: [] },
    clients,
    () => performance.now() < endMs,
    attempt,
    () => {},
  );
}

async function load(
  what: {
    readonly target: DrillTarget;
    readonly size: number;
    readonly operation: string;
    readonly each: number;
    readonly latenciesMs: number[];
  },
  clients: number,
  goesOn: () => boolean,
  attempt: Attempt,
  onDone: () => void,
): Promise<Row> {
  const { target, size, operation, each, latenciesMs } = what;
  const cpuBefore = await cpuOf(target);
  let busy = 0;
  const startMs = performance.now();
  const client = async (): Promise<void> => {
    while (goesOn()) {
      for (;;) {
        const sentMs = performance.now();
        const done = await attempt();
        latenciesMs.push(performance.now() - sentMs);
        if (done) break;
        latenciesMs.pop();
        busy++;
        await pause(busyPauseMs);
      }
      onDone();
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  const ms = performance.now() - startMs;
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  const at = (part: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
  const done = sorted.length * each;
  const cpu = [...(await cpuOf(target))].map(([name, cpuMs]) => [name, ((cpuMs - (cpuBefore.get(name) ?? 0)) * 1_000) / done] as const);
  return { size, operation, perSecond: (done * 1_000) / ms, p50Ms: at(0.5), p99Ms: at(0.99), busy, cpu };
}

async function cpuOf(target: DrillTarget): Promise<ReadonlyMap<string, number>> {
  const { user, system } = process.cpuUsage();
  const all = (await processUse(target)).map(({ name, cpuMs }) => [name, cpuMs] as const);
  return new Map([...all, ["this client", (user + system) / 1_000]]);
}

function lineOf({ operation, perSecond, p50Ms, p99Ms, busy, cpu }: Row): string {
  const refused = busy > 0 ? `, ${busy} times busy or empty` : "";
  const used = cpu.filter(([, micros]) => micros >= 1).map(([name, micros]) => `${name} ${micros.toFixed(0)}`);
  return `  ${operation.padEnd(24)} ${perSecond.toFixed(0).padStart(6)}/s  p50 ${p50Ms.toFixed(1)} ms  p99 ${p99Ms.toFixed(1)} ms${refused}; µs CPU: ${used.join(", ")}`;
}

async function machineText(target: DrillTarget): Promise<string> {
  const { processes, dataDir } = await target.status();
  const nodes = processes.filter(({ role }) => role === "extent-node").map(({ name }) => join(dataDir, name));
  const disk = nodes.reduce((sum, node) => sum + diskBytes(node), 0);
  const journals = nodes.reduce((sum, node) => sum + diskBytes(join(node, "files", "journal")), 0);
  const resident = (await processUse(target)).map(({ name, residentBytes }) => `${name} ${mebibytes(residentBytes)}`);
  return `  disk of all nodes ${mebibytes(disk)}, of that journals ${mebibytes(journals)}\n  resident: ${resident.join(", ")}`;
}

/** A line for each operation, a column for each size. */
function markdown(rows: readonly Row[], unit: string): string {
  const columns = [...new Set(rows.map(({ size }) => size))];
  const operations = [...new Set(rows.map(({ operation }) => operation))];
  const cell = (operation: string, size: number): string => {
    const row = rows.find((one) => one.operation === operation && one.size === size);
    return row === undefined ? "" : `${row.perSecond.toFixed(0)} / ${row.p50Ms.toFixed(1)} / ${row.p99Ms.toFixed(1)}`;
  };
  return [
    `| per second / p50 ms / p99 ms | ${columns.map((size) => `${size} ${unit}`).join(" | ")} |`,
    `|${"---|".repeat(columns.length + 1)}`,
    ...operations.map((operation) => `| ${operation} | ${columns.map((size) => cell(operation, size)).join(" | ")} |`),
  ].join("\n");
}
