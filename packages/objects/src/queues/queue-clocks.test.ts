import assert from "node:assert/strict";
import { test } from "node:test";
import { QueueClocks, queueClocksMax } from "./queue-clocks.ts";

test("a queue acts at wall time, and at half speed while it is ahead, never back", () => {
  const clocks = new QueueClocks();
  const at = (wallMs: number, monotonicMs: number, clockMs: number): number => clocks.actingMs("q", { wallMs, monotonicMs }, clockMs);
  assert.equal(at(1_000, 0, 0), 1_000);
  // Set back by 1,000.
  assert.equal(at(0, 10, 1_000), 1_000);
  assert.equal(at(100, 110, 1_000), 1_050);
  assert.equal(at(200, 210, 1_050), 1_100);
  // Stored by somebody who was further.
  assert.equal(at(201, 211, 1_500), 1_500);
  // Caught up.
  assert.equal(at(1_600, 1_600, 1_500), 1_600);
  assert.equal(at(1_590, 1_610, 1_600), 1_600);
});

test("clocks of queues are bounded: who was forgotten starts from the stored time", () => {
  const clocks = new QueueClocks();
  const at = (name: string, monotonicMs: number): number => clocks.actingMs(name, { wallMs: 0, monotonicMs }, 1_000);
  assert.equal(at("first", 0), 1_000);
  assert.equal(at("first", 100), 1_050);
  for (let i = 0; i < queueClocksMax; i++) at(`q${i}`, 0);
  assert.equal(at("first", 200), 1_000);
});
