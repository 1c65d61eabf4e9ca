import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "./clock.ts";
import { type LogFields, silentLogger } from "./logger.ts";
import { SlowLog, slowMs } from "./slow-log.ts";

function start() {
  const at = { nowMs: 10_000 };
  const lines: LogFields[] = [];
  const clock = { monotonicMs: () => at.nowMs } as Clock;
  const slow = new SlowLog({ clock, logger: { ...silentLogger, info: (_message, fields = {}) => lines.push(fields) } });
  return { at, lines, slow };
}

test("slow log: what was quick costs nothing and is not told", () => {
  const { at, lines, slow } = start();
  slow.ended("slow", at.nowMs - slowMs + 1, () => assert.fail("facts of what was quick"));
  slow.ended("slow", at.nowMs - slowMs, () => ({ why: "it waited" }));
  assert.deepEqual(lines, [{ tookMs: slowMs, why: "it waited" }]);
});

test("slow log: five lines a second, and then how many there would have been", () => {
  const { at, lines, slow } = start();
  for (let i = 0; i < 100; i++) slow.ended("slow", at.nowMs - 2_000, () => ({ i }));
  assert.deepEqual(
    lines.map(({ i }) => i),
    [0, 1, 2, 3, 4],
  );
  at.nowMs += 1_000;
  slow.ended("slow", at.nowMs - 2_000, () => ({ i: 100 }));
  slow.ended("slow", at.nowMs - 2_000, () => ({ i: 101 }));
  assert.deepEqual(lines.slice(5), [
    { tookMs: 2_000, i: 100, notLogged: 95 },
    { tookMs: 2_000, i: 101 },
  ]);
});
