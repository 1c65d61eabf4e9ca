/** Use of the machine by the processes of a cluster: resident memory, processor time, disk. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { DrillTarget } from "@stamp/drills";
import { cpuMsOf } from "../processor-time.ts";

export interface ProcessUse {
  readonly name: string;
  readonly residentBytes: number;
  readonly cpuMs: number;
}

export async function processUse(target: DrillTarget): Promise<readonly ProcessUse[]> {
  const { processes } = await target.status();
  return processes.flatMap(({ name, pid }) =>
    pid === null ? [] : [{ name, residentBytes: residentBytesOf(pid), cpuMs: cpuMsOf(pid) ?? Number.NaN }],
  );
}

function residentBytesOf(pid: number): number {
  try {
    return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? Number.NaN) * 1_024;
  } catch {
    return Number.NaN;
  }
}

/** Returns the bytes of a folder on its disk. */
export function diskBytes(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    try {
      bytes += entry.isDirectory() ? diskBytes(path) : statSync(path).blocks * 512;
    } catch {
      // Deleted meanwhile.
    }
  }
  return bytes;
}
