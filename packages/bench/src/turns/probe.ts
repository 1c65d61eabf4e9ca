/**
 * The longest turn of the event loop of each process of a cluster, and the work that it is compared with.
 *
 * A turn counts with the larger of two measures, and other programs that take the processors make neither of them longer:
 *   - processor time of the thread (`/turns` of the health door, exact for each turn);
 *   - wall time of the longest turn (`/metrics`, `nodejs_eventloop_lag_max_seconds`) minus the time for which the thread was ready to run
 *     and was given no processor meanwhile (`/proc/PID/task/PID/schedstat`, Linux). This one sees a turn that waits inside a synchronous call.
 */
import { readFileSync } from "node:fs";
import { get } from "node:http";
import type { DrillTarget } from "@stamp/drills";

/** Longest turn since the last question, in milliseconds, by process name. */
export type LongestTurns = ReadonlyMap<string, number>;

/** One measurement: `begin`, then the work, then `end`. */
export interface Probe {
  begin(): Promise<void>;
  end(): Promise<LongestTurns>;
}

interface Watched {
  readonly name: string;
  readonly pid: number | null;
  readonly door: string;
}

export class TurnProbe implements Probe {
  readonly #processes: readonly Watched[];
  readonly #waitedBeforeMs = new Map<string, number>();

  private constructor(processes: readonly Watched[]) {
    this.#processes = processes;
  }

  static async of(target: DrillTarget): Promise<TurnProbe> {
    const { processes } = await target.status();
    return new TurnProbe(processes.map(({ name, pid, http }) => ({ name, pid, door: `http://${http}` })));
  }

  async begin(): Promise<void> {
    await this.#ofEach(async ({ name, pid, door }) => {
      // The page of metrics is work as well: it is asked for before the watch begins anew.
      await textOf(`${door}/metrics`);
      await textOf(`${door}/turns`);
      this.#waitedBeforeMs.set(name, waitedMs(pid));
    });
  }

  async end(): Promise<LongestTurns> {
    const longest = new Map<string, number>();
    await this.#ofEach(async ({ name, pid, door }) => {
      const { watching, longestCpuMs } = JSON.parse(await textOf(`${door}/turns`)) as { watching: boolean; longestCpuMs: number };
      if (!watching) throw new Error(`${name} did not watch its turns: it was started again meanwhile`);
      const waited = waitedMs(pid) - (this.#waitedBeforeMs.get(name) ?? 0);
      const wallMs = lagMsOf(await textOf(`${door}/metrics`));
      longest.set(name, longestTurnMs(longestCpuMs, wallMs, waited));
    });
    return longest;
  }

  async #ofEach(work: (process: Watched) => Promise<void>): Promise<void> {
    await Promise.all(this.#processes.map(work));
  }
}

/** Work that this process does in the place of one of that role, at once: its own processor time. */
export class OwnProbe implements Probe {
  readonly #role: string;
  #cpuMs = 0;

  constructor(role: string) {
    this.#role = role;
  }

  async begin(): Promise<void> {
    this.#cpuMs = 0;
  }

  run(work: () => unknown): void {
    const startMs = threadCpuMs();
    work();
    this.#cpuMs += threadCpuMs() - startMs;
  }

  async end(): Promise<LongestTurns> {
    return new Map([[this.#role, this.#cpuMs]]);
  }
}

/** `waited`: time for which the thread had no processor while the turns ran; NaN: not known. */
export const longestTurnMs = (cpuMs: number, wallMs: number, waited: number): number =>
  Number.isNaN(waited) ? cpuMs : Math.max(cpuMs, wallMs - waited);

/** Milliseconds for which the main thread of the process was ready to run and did not. NaN where the kernel does not tell. */
function waitedMs(pid: number | null): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
  } catch {
    return Number.NaN;
  }
}

const lagMsOf = (text: string): number => Number(/^nodejs_eventloop_lag_max_seconds\{[^}]*\} (\S+)$/m.exec(text)?.[1]) * 1_000;

function textOf(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
      });
      response.on("end", () => resolve(text));
    }).on("error", reject);
  });
}

/** Runs before the first measurement: the work is compiled by then, and takes the same time from there on. */
const warmRuns = 60;
let warm = false;

/**
 * Returns the processor time of the calibration loop in milliseconds: about 10 on the machine that the bound of 50 ms was set for. Least of five
 * runs.
 */
export function calibrate(): number {
  for (let run = 0; !warm && run < warmRuns; run++) work();
  warm = true;
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 5; run++) {
    const startMs = threadCpuMs();
    work();
    least = Math.min(least, threadCpuMs() - startMs);
  }
  return least;
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** Does work like that of servers: small objects, texts, maps. */
function work(): number {
  let sum = 0;
  for (let round = 0; round < 4; round++) {
    const held = new Map<string, { readonly at: number; readonly text: string }>();
    for (let i = 0; i < 18_000; i++) held.set(`key-${i % 9_000}`, { at: i, text: `value ${i}` });
    for (const { at, text } of held.values()) sum += at + text.length;
  }
  return sum;
}
