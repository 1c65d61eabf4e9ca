/** Criteria of a process and its machine. Every threshold can be changed; the second one is four fifths of the first by default. */
import { statfsSync } from "node:fs";
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import type { Criterion } from "./availability.ts";

interface Thresholds {
  readonly unavailableAbove: number;
  readonly availableBelow?: number;
}

const of = (name: string, unit: string, { unavailableAbove, availableBelow }: Thresholds, measure: () => number): Criterion => ({
  name,
  unit,
  measure,
  unavailableAbove,
  availableBelow: availableBelow ?? unavailableAbove * 0.8,
});

/** Returns the processor time of this process since the last measurement, in percent of one processor. */
export function cpu(thresholds: Thresholds = { unavailableAbove: 90 }): Criterion {
  let lastMs = performance.now();
  let last = process.cpuUsage();
  return of("processor time", "%", thresholds, () => {
    const nowMs = performance.now();
    const used = process.cpuUsage(last);
    const percent = ((used.user + used.system) / 1000 / Math.max(1, nowMs - lastMs)) * 100;
    last = process.cpuUsage();
    lastMs = nowMs;
    return percent;
  });
}

/** Returns the mean delay of this process's event loop since the last measurement, in milliseconds. */
export function eventLoopDelay(thresholds: Thresholds = { unavailableAbove: 100 }): Criterion {
  const resolutionMs = 10;
  const delays = monitorEventLoopDelay({ resolution: resolutionMs });
  delays.enable();
  return of("event loop delay", "ms", thresholds, () => {
    // The histogram counts the interval of its own timer.
    const meanMs = Number.isNaN(delays.mean) ? 0 : Math.max(0, delays.mean / 1e6 - resolutionMs);
    delays.reset();
    return meanMs;
  });
}

/** Returns a number that the program keeps, such as open connections. */
export const connections = (count: () => number, thresholds: Thresholds): Criterion => of("connections", "open", thresholds, count);

/** Returns a number that the program keeps: requests that wait. */
export const queueDepth = (count: () => number, thresholds: Thresholds): Criterion => of("queue", "waiting", thresholds, count);

/** Returns the used share of the file system that holds `path`, in percent, as `df` tells it: without blocks that are kept for the administrator. */
export function usedDisk(path: string, thresholds: Thresholds = { unavailableAbove: 95 }): Criterion {
  return of(`disk of ${path}`, "% used", thresholds, () => {
    const { blocks, bfree, bavail } = statfsSync(path);
    const used = blocks - bfree;
    return used + bavail === 0 ? 100 : (used / (used + bavail)) * 100;
  });
}
