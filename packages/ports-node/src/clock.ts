/** Time of this machine. Timers do not keep the process alive. */
import type { Clock, Timer } from "@stamp/ports";
import { SuspendWatch, systemTimes } from "./process/suspend.ts";
import { untilRoundMs } from "./time/rounds.ts";
import { TimerQueue } from "./time/timer-queue.ts";

export class NodeClock implements Clock {
  readonly #suspends = new SuspendWatch(systemTimes());
  readonly #timers = new TimerQueue();

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
    return this.#timers.add(performance.now() + Math.max(0, delayMs), callback);
  }

  untilRoundMs(delayMs: number): number {
    return untilRoundMs(delayMs);
  }
}
