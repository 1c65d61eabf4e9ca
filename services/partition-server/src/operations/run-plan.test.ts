import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyBytes, ok } from "@stamp/base";
import type { Plan } from "@stamp/objects";
import { type Clock, turnSliceMs } from "@stamp/ports";
import type { RowView } from "./engine.ts";
import { runPlan } from "./run-plan.ts";

/** A clock that goes on by `work`, a row that takes 1 ms, and how often others had their turn. */
function surroundings() {
  const seen = { nowMs: 0, others: 0 };
  const clock: Clock = {
    monotonicMs: () => seen.nowMs,
    wallMs: () => seen.nowMs,
    suspendedMs: () => 0,
    after: (_delayMs, callback) => {
      seen.others++;
      queueMicrotask(callback);
      return { cancel: () => {} };
    },
  };
  const view: RowView = {
    get: async () => {
      seen.nowMs++;
      return ok(Uint8Array.of(1));
    },
    scan: async () => ok({ rows: [], more: false, deleted: 0 }),
    walk: async () => ok(),
  };
  return { seen, clock, view };
}

test("plans: one over many rows that are all in memory gives way after a slice", async () => {
  const { seen, clock, view } = surroundings();
  function* plan(): Plan<number> {
    let bytes = 0;
    for (let i = 0; i < 10 * turnSliceMs; i++) {
      const answer = yield { kind: "get", key: emptyBytes };
      bytes += answer.kind === "get" ? (answer.value?.length ?? 0) : 0;
    }
    return bytes;
  }
  assert.deepEqual(await runPlan(clock, plan(), view), ok(10 * turnSliceMs));
  assert.equal(seen.others, 9);
});

test("plans: one that works for long without a read gives way at its pauses, once in a slice", async () => {
  const { seen, clock, view } = surroundings();
  function* plan(): Plan<string> {
    for (let i = 0; i < 20 * turnSliceMs; i++) {
      seen.nowMs += 1 / 2;
      const answer = yield { kind: "pause" };
      assert.deepEqual(answer, { kind: "pause" });
    }
    return "done";
  }
  assert.deepEqual(await runPlan(clock, plan(), view), ok("done"));
  assert.equal(seen.others, 10);
});
