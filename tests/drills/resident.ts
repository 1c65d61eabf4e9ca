/** Resident memory of the processes of a running cluster, watched from outside. */
import { readFileSync } from "node:fs";
import type { DrillTarget } from "@stamp/drills";

const sampleEveryMs = 250;

export interface Residents {
  /** MiB when it was first seen, by process name; of a process that was started again: of its successor. */
  readonly first: ReadonlyMap<string, number>;
  /** The most that was seen, in MiB, by process name. */
  readonly largest: ReadonlyMap<string, number>;
  stop(): Promise<void>;
}

/** Takes a first sample before it returns. */
export async function watchResidents(target: DrillTarget): Promise<Residents> {
  const first = new Map<string, number>();
  const largest = new Map<string, number>();
  const pids = new Map<string, number>();
  const sample = async (): Promise<void> => {
    for (const { name, pid } of (await target.status()).processes) {
      const size = pid === null ? undefined : residentOf(pid);
      if (pid === null || size === undefined) continue;
      if (pids.get(name) !== pid) first.set(name, size.now);
      pids.set(name, pid);
      largest.set(name, Math.max(largest.get(name) ?? 0, size.peak));
    }
  };
  await sample();
  let watching = true;
  const watch = (async () => {
    while (watching) {
      await new Promise((resolve) => setTimeout(resolve, sampleEveryMs));
      await sample().catch(() => {});
    }
  })();
  return {
    first,
    largest,
    stop: async () => {
      watching = false;
      await watch;
      await sample();
    },
  };
}

/** In MiB. Undefined: it is gone. */
function residentOf(pid: number): { readonly now: number; readonly peak: number } | undefined {
  let status: string;
  try {
    status = readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return undefined;
  }
  const size = (name: string): number => Math.round(Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1] ?? "0") / 1024);
  const now = size("VmRSS");
  // A process that ended has a status without sizes.
  return now === 0 ? undefined : { now, peak: size("VmHWM") };
}
