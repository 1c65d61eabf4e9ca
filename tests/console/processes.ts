/** Processor time and memory of processes, as Linux tells them. */
import { readdirSync, readFileSync } from "node:fs";

/** Ticks of the kernel in a second. */
const ticksPerSecond = 100;

/** Processor time of a process so far, in seconds. */
export function secondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

export const mebibytesOf = (pid: number): number =>
  Number(/^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0) / 1_024;

/** Process of the console: the one whose command line has the folder and the word. */
export function consoleOf(dataDir: string): number {
  const found = readdirSync("/proc").find((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0");
      return words.includes("console") && words.includes(dataDir);
    } catch {
      return false;
    }
  });
  if (found === undefined) throw new Error("the console does not run");
  return Number(found);
}
