import assert from "node:assert/strict";
import { uptime } from "node:os";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { SystemTimes } from "./suspend.ts";
import { SuspendWatch, systemTimes } from "./suspend.ts";

/** A machine: what each of its clocks shows after a step, after a suspend, and after a stop of this process. */
class Machine implements SystemTimes {
  #monotonicMs = 5_000;
  #wallMs = 1e12;
  #bootMs = 8_000;
  readings = 0;
  /** Time that passes inside a reading of the boot clock, after it was read or before, one entry a reading. */
  stops: { readonly beforeMs?: number; readonly afterMs?: number }[] = [];
  readonly bootMs: (() => number) | undefined;

  constructor(tellsBoot = true) {
    if (tellsBoot) this.bootMs = () => this.#readBoot();
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  wallMs(): number {
    return Math.floor(this.#wallMs);
  }

  pass(ms: number): void {
    this.#monotonicMs += ms;
    this.suspend(ms);
  }

  suspend(ms: number): void {
    this.#wallMs += ms;
    this.#bootMs += ms;
  }

  step(ms: number): void {
    this.#wallMs += ms;
  }

  #readBoot(): number {
    this.readings += 1;
    const { beforeMs = 0, afterMs = 0 } = this.stops.shift() ?? {};
    this.pass(beforeMs);
    const boot = Math.floor(this.#bootMs / 10) * 10;
    this.pass(afterMs);
    return boot;
  }
}

const near = (actual: number, expected: number): void =>
  assert.ok(Math.abs(actual - expected) <= 20, `suspended for ${actual} ms, not for ${expected}`);

test("suspend: steps of the wall clock in either direction are none, a suspend is, at once", () => {
  const machine = new Machine();
  const watch = new SuspendWatch(machine);
  const base = watch.suspendedMs();
  for (const stepMs of [3_600_000, -7_200_000, 1_100, -1]) {
    machine.step(stepMs);
    near(watch.suspendedMs() - base, 0);
    machine.pass(7);
    near(watch.suspendedMs() - base, 0);
  }
  machine.suspend(10_000);
  near(watch.suspendedMs() - base, 10_000);
  machine.pass(1_000_000);
  near(watch.suspendedMs() - base, 10_000);
});

test("suspend: a step back that hides the suspend from the wall clock hides it for 100 ms at most", () => {
  const machine = new Machine();
  const watch = new SuspendWatch(machine);
  const base = watch.suspendedMs();
  machine.suspend(10_000);
  machine.step(-10_000);
  machine.pass(100);
  near(watch.suspendedMs() - base, 10_000);
});

test("suspend: the boot clock is read rarely while nothing happens", () => {
  const machine = new Machine();
  const watch = new SuspendWatch(machine);
  for (let i = 0; i < 1_000; i++) {
    watch.suspendedMs();
    machine.pass(0.3);
  }
  assert.ok(machine.readings >= 2 && machine.readings <= 4, `${machine.readings} readings`);
});

test("suspend: a process that is stopped while it reads its clocks sees no suspend", () => {
  const machine = new Machine();
  const watch = new SuspendWatch(machine);
  const base = watch.suspendedMs();
  for (const stops of [[{ beforeMs: 30_000 }], [{ afterMs: 30_000 }], [{ beforeMs: 3_000 }, { afterMs: 9_000 }, { beforeMs: 5 }]]) {
    machine.pass(100);
    machine.stops = stops;
    near(watch.suspendedMs() - base, 0);
  }
});

test("suspend: a system that does not tell counts every step forward as a suspend", () => {
  const machine = new Machine(false);
  const watch = new SuspendWatch(machine);
  const base = watch.suspendedMs();
  machine.suspend(10_000);
  near(watch.suspendedMs() - base, 10_000);
  machine.step(5_000);
  near(watch.suspendedMs() - base, 15_000);
  assert.equal(systemTimes("darwin").bootMs, undefined);
});

test("suspend: this machine's clocks agree while it runs", { skip: process.platform !== "linux" }, async () => {
  const times = systemTimes();
  assert.ok(times.bootMs !== undefined, "/proc/uptime");
  assert.ok(Math.abs(times.bootMs() - uptime() * 1_000) < 60_000, "in milliseconds");
  const watch = new SuspendWatch(times);
  const base = watch.suspendedMs();
  for (let i = 0; i < 3; i++) {
    await delay(110);
    near(watch.suspendedMs() - base, 0);
  }
});
