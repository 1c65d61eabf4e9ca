/** CPU time of processes, from /proc (Linux; elsewhere nothing is known). */
import { readFileSync } from "node:fs";

/** The kernel's USER_HZ, the same on every Linux that Node runs on. */
const ticksPerSecond = 100;

/** Milliseconds so far, user and system; undefined when it can't be known. */
export function cpuMsOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return ((Number(fields[11]) + Number(fields[12])) * 1_000) / ticksPerSecond;
  } catch {
    return undefined;
  }
}

export const cpuOfAll = (pids: ReadonlyMap<string, number>): Map<string, number> =>
  new Map(
    [...pids].flatMap(([name, pid]) => {
      const cpuMs = cpuMsOf(pid);
      return cpuMs === undefined ? [] : [[name, cpuMs] as const];
    }),
  );
