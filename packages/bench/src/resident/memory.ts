/** Memory of processes, from /proc (Linux), and the rows of a table of it. */
import { readFileSync } from "node:fs";

export interface Memory {
  /** Resident, in MiB. */
  readonly rss: number;
  /** Resident, each shared page divided by the number of processes that have it, in MiB. */
  readonly pss: number;
}

export interface Sample {
  /** Since the load began, in seconds. */
  readonly atS: number;
  readonly of: ReadonlyMap<string, Memory>;
}

/** Undefined if the process is gone or may not be looked at. */
export function memoryOf(pid: number): Memory | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
    const of = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text)?.[1] ?? Number.NaN) / 1024;
    return { rss: of("Rss"), pss: of("Pss") };
  } catch {
    return undefined;
  }
}

export const memoryOfAll = (pids: ReadonlyMap<string, number>): Map<string, Memory> =>
  new Map(
    [...pids].flatMap(([name, pid]) => [[name, memoryOf(pid)] as const].flatMap(([of, found]) => (found ? [[of, found] as const] : []))),
  );

export interface Row {
  readonly name: string;
  readonly idle: Memory;
  /** RSS at the end of each quarter of the load, in MiB. */
  readonly quarters: readonly number[];
  readonly peak: number;
  /** Mean RSS of the last third of the load as a multiple of that of the third before. */
  readonly growth: number;
  readonly after: Memory;
}

/** `samples`: in order of time. Processes that were not there all the time have no row. */
export function rowsOf(idle: ReadonlyMap<string, Memory>, samples: readonly Sample[], after: ReadonlyMap<string, Memory>): Row[] {
  const lastS = samples.at(-1)?.atS ?? 0;
  return [...idle].flatMap(([name, before]) => {
    const series = samples.flatMap(({ atS, of }) => {
      const found = of.get(name);
      return found === undefined ? [] : [{ atS, rss: found.rss }];
    });
    const later = after.get(name);
    if (later === undefined || series.length < samples.length) return [];
    const within = (from: number, to: number): number[] =>
      series.filter(({ atS }) => atS > from * lastS && atS <= to * lastS).map(({ rss }) => rss);
    const quarters = [1, 2, 3, 4].map((quarter) => within(0, quarter / 4).at(-1) ?? Number.NaN);
    const peak = Math.max(...series.map(({ rss }) => rss));
    return [{ name, idle: before, quarters, peak, growth: mean(within(2 / 3, 1)) / mean(within(1 / 3, 2 / 3)), after: later }];
  });
}

const mean = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
