/** Behaviour of every Clock. */
import type { Clock } from "../clock.ts";
import { sleep, within } from "../clock.ts";
import type { RegisterTest } from "./conformance.ts";
import { check, checkEqual } from "./conformance.ts";

export function clockConformance(register: RegisterTest, make: () => Clock | Promise<Clock>): void {
  register("clock: monotonic time never goes back and passes while sleeping", async () => {
    const clock = await make();
    let last = clock.monotonicMs();
    for (let i = 0; i < 5; i++) {
      await sleep(clock, 2);
      const now = clock.monotonicMs();
      check(now >= last + 2, `slept 2 ms, the clock moved ${now - last}`);
      last = now;
    }
  });

  register("clock: wall time is a finite number of milliseconds", async () => {
    const clock = await make();
    check(Number.isFinite(clock.wallMs()) && clock.wallMs() >= 0, "wall time");
  });

  register("clock: a machine that runs was not suspended meanwhile", async () => {
    const clock = await make();
    const before = clock.suspendedMs();
    await sleep(clock, 150);
    check(Math.abs(clock.suspendedMs() - before) <= 20, `suspended for ${clock.suspendedMs() - before} ms`);
  });

  register("clock: a timer runs once, not synchronously, and not before its delay", async () => {
    const clock = await make();
    for (const delayMs of [0, 0.4, 1, 7.5]) {
      const start = clock.monotonicMs();
      let runs = 0;
      let passedMs = -1;
      await new Promise<void>((resolve) => {
        clock.after(delayMs, () => {
          runs += 1;
          passedMs = clock.monotonicMs() - start;
          resolve();
        });
        checkEqual(runs, 0, "ran synchronously");
      });
      check(passedMs >= delayMs, `a timer of ${delayMs} ms ran after ${passedMs}`);
      await sleep(clock, delayMs + 2);
      checkEqual(runs, 1, "runs");
    }
  });

  register("clock: timers run in order of their time, those of one delay in order of their making", async () => {
    const clock = await make();
    const order: string[] = [];
    clock.after(20, () => order.push("late"));
    for (const name of ["a", "b", "c"]) clock.after(4, () => order.push(name));
    await sleep(clock, 40);
    checkEqual(order, ["a", "b", "c", "late"], "order");
  });

  register("clock: a cancelled timer never runs, cancelling twice or after it ran does nothing", async () => {
    const clock = await make();
    let runs = 0;
    const cancelled = clock.after(2, () => {
      runs += 1;
    });
    cancelled.cancel();
    cancelled.cancel();
    const ran = clock.after(1, () => {
      runs += 10;
    });
    await sleep(clock, 10);
    ran.cancel();
    checkEqual(runs, 10, "runs");
  });

  register("clock: sleep ends early when its signal is aborted", async () => {
    const clock = await make();
    const stop = new AbortController();
    clock.after(2, () => stop.abort());
    checkEqual(await sleep(clock, 60_000, stop.signal), "aborted", "sleep");
    checkEqual(await sleep(clock, 60_000, stop.signal), "aborted", "sleep with a signal that was aborted before");
    checkEqual(await sleep(clock, 1, new AbortController().signal), "elapsed", "sleep");
  });

  register("clock: a round is within the delay", async () => {
    const clock = await make();
    for (const delayMs of [0, 0.4, 100, 250, 499, 500, 999.5, 1_000, 2_000, 60_000]) {
      const roundMs = clock.untilRoundMs?.(delayMs) ?? delayMs;
      check(roundMs >= 0 && roundMs <= delayMs, `a round ${roundMs} ms from now, for work that may wait ${delayMs} ms`);
    }
  });

  register("clock: within gives the value in time, else undefined", async () => {
    const clock = await make();
    checkEqual(await within(clock, 60_000, Promise.resolve(7)), 7, "in time");
    checkEqual(await within(clock, 2, new Promise<number>(() => {})), undefined, "too late");
  });
}
