import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "@stamp/ports";
import { RangeLoad, ServerLoad } from "./load.ts";

const counted = { nowMs: 0 };
const clock = { monotonicMs: () => counted.nowMs } as Clock;

test("load: rates of the last ten seconds; what is older does not count", () => {
  counted.nowMs = 0;
  const load = new RangeLoad(clock);
  const key = Uint8Array.of(1);
  const ended = load.begin("write", key);
  load.moved(1_000, 50);
  assert.equal(load.figures.pending, 1);
  counted.nowMs = 500;
  ended();
  load.begin("read", key)();
  load.throttled();
  const { readsPerSecond, writesPerSecond, throttledPerSecond, bytesInPerSecond, bytesOutPerSecond, pending, latencyMs } = load.figures;
  assert.deepEqual([readsPerSecond, writesPerSecond, throttledPerSecond, pending], [0.1, 0.1, 0.1, 0]);
  assert.deepEqual([bytesInPerSecond, bytesOutPerSecond, latencyMs], [100, 5, 250]);
  counted.nowMs = 11_000;
  const totals = { reads: 1, writes: 1, throttled: 1, bytesIn: 1_000, bytesOut: 50, ended: 2, latencyMs: 500 };
  assert.deepEqual(load.totals, totals, "what only grows");
  assert.deepEqual([load.figures.writesPerSecond, load.figures.bytesInPerSecond], [0, 0]);
});

test("load of a server: counts go on when a range leaves it", () => {
  const server = new ServerLoad({ clock });
  new RangeLoad(clock, server.totals).begin("read", Uint8Array.of(1))();
  const another = new RangeLoad(clock, server.totals);
  another.moved(7, 8);
  assert.deepEqual([server.totals.reads, server.totals.ended, server.totals.bytesIn, another.totals.reads], [1, 1, 7, 0]);
});

test("load of a server: the sum of its ranges, latency by their requests, CPU over the last seconds", () => {
  counted.nowMs = 0;
  let cpuMs = 5_000;
  const server = new ServerLoad({ clock, cpuMs: () => cpuMs });
  const range = {
    readsPerSecond: 10,
    writesPerSecond: 0,
    throttledPerSecond: 1,
    bytesInPerSecond: 2,
    bytesOutPerSecond: 3,
    latencyMs: 1,
    pending: 1,
    rowBytes: 1_000,
  };
  assert.equal(server.figures([]).processors, 0, "nothing is known at first");
  for (let second = 1; second <= 30; second++) {
    counted.nowMs = second * 1_000;
    cpuMs += second <= 20 ? 1_500 : 500;
    server.figures([]);
  }
  const figures = server.figures([range, { ...range, readsPerSecond: 30, latencyMs: 5 }]);
  assert.ok(Math.abs(figures.processors - 0.5) < 0.1, `${figures.processors}`);
  assert.deepEqual(
    [figures.readsPerSecond, figures.latencyMs, figures.pending, figures.bytesOutPerSecond, figures.rowBytes],
    [40, 4, 2, 6, 2_000],
  );
  assert.equal(new ServerLoad({ clock }).figures([range]).processors, 0, "where CPU is not known");
});
