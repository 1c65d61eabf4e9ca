/** Time of this machine. Timers do not keep the process alive. */
import type { Clock, Timer } from "@stamp/ports";
import { SuspendWatch, systemTimes } from "./process/suspend.ts";

/** The longest delay setTimeout takes; longer ones are re-armed. */
const delayMaxMs = 2 ** 31 - 1;

interface Early {
  readonly dueMs: number;
  readonly run: () => void;
}

export class NodeClock implements Clock {
  readonly #suspends = new SuspendWatch(systemTimes());
  /** Timers that wait once more, in the order in which they came too early: one that is due later must not overtake them. */
  readonly #early = new Set<Early>();

  monotonicMs(): number {
    return performance.now();
  }

  wallMs(): number {
    return Date.now();
  }

  suspendedMs(): number {
    return this.#suspends.suspendedMs();
  }

  after(delayMs: number, callback: () => void): Timer {
    const dueMs = performance.now() + delayMs;
    let handle: NodeJS.Timeout | undefined;
    const arm = (leftMs: number): void => {
      handle = setTimeout(fire, Math.min(Math.ceil(leftMs), delayMaxMs));
      handle.unref();
    };
    let over = false;
    const cancel = (): void => {
      over = true;
      clearTimeout(handle);
      this.#early.delete(early);
    };
    const early: Early = {
      dueMs,
      run: () => {
        if (over) return;
        cancel();
        callback();
      },
    };
    // setTimeout counts from when the event loop looked at the time last, and may be early by as much: never run early.
    const fire = (): void => {
      const leftMs = dueMs - performance.now();
      if (leftMs > 0) {
        this.#early.add(early);
        arm(leftMs);
        return;
      }
      for (const one of this.#early) if (one.dueMs <= dueMs) one.run();
      early.run();
    };
    arm(delayMs);
    return { cancel };
  }
}
