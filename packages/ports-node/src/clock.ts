/** Time of this machine. Timers do not keep the process alive. */
import type { Clock, Timer } from "@stamp/ports";

/** The longest delay setTimeout takes; longer ones are re-armed. */
const delayMaxMs = 2 ** 31 - 1;

export class NodeClock implements Clock {
  monotonicMs(): number {
    return performance.now();
  }

  wallMs(): number {
    return Date.now();
  }

  after(delayMs: number, callback: () => void): Timer {
    const dueMs = performance.now() + delayMs;
    let handle: NodeJS.Timeout | undefined;
    const arm = (leftMs: number): void => {
      handle = setTimeout(fire, Math.min(Math.ceil(leftMs), delayMaxMs));
      handle.unref();
    };
    // setTimeout counts in whole milliseconds of the event loop's own time and may be early by a part of one: never run early.
    const fire = (): void => {
      const leftMs = dueMs - performance.now();
      if (leftMs > 0) arm(leftMs);
      else callback();
    };
    arm(delayMs);
    return { cancel: () => clearTimeout(handle) };
  }
}
