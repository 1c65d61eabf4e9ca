import assert from "node:assert/strict";
import { test } from "node:test";
import { Bench, pollsAfter } from "../testing/queue-costs.ts";
import type { Message } from "./operation.ts";

test("a poll after 100,000 deleted messages costs what the first one does", () => pollsAfter(100_000));

test("10,000 hidden messages cost a poll nothing, and it takes them in order when they are visible", () => {
  const bench = new Bench();
  for (let i = 0; i < 10_000; i++) bench.put(1_000);
  assert.equal(bench.poll(32), 0);
  bench.wallMs += 1_000_000;
  assert.ok(bench.poll(32) <= 33);
});

test("messages deleted after they were visible again are stepped over once, a bounded piece at a time", () => {
  const bench = new Bench();
  for (let i = 0; i < 10_000; i++) bench.put();
  const held: Message[] = [];
  for (let taken = bench.take(32, 1); taken.length > 0; taken = bench.take(32, 1)) held.push(...taken);
  assert.equal(held.length, 10_000);
  bench.wallMs += 2_000;
  // Slow workers, whose receipts still fit: 10,000 rows vanish behind the head.
  for (const message of held) bench.remove(message);
  const costs: number[] = [];
  do costs.push(bench.poll(1));
  while ((costs.at(-1) ?? 0) > 64);
  assert.ok(Math.max(...costs) <= 2_100, "a piece");
  assert.ok(costs.reduce((sum, cost) => sum + cost, 0) <= 11_000, "each row once");
});
