import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyBytes, ok } from "@stamp/base";
import type { Plan } from "@stamp/objects";
import { type Clock, turnSliceMs } from "@stamp/ports";
import type { RowView } from "./engine.ts";
import { runPlan } from "./run-plan.ts";

test("plans: one over many rows that are all in memory gives way after a slice", async () => {
  let nowMs = 0;
  let others = 0;
  const clock: Clock = {
    monotonicMs: () => nowMs,
    wallMs: () => nowMs,
    suspendedMs: () => 0,
    after: (_delayMs, callback) => {
      others++;
      queueMicrotask(callback);
      return { cancel: () => {} };
    },
  };
  const view: RowView = {
    get: async () => {
      nowMs++;
      return ok(Uint8Array.of(1));
    },
    scan: async () => ok({ rows: [], more: false, deleted: 0 }),
    walk: async () => ok(),
  };
  function* plan(): Plan<number> {
    let bytes = 0;
    for (let i = 0; i < 10 * turnSliceMs; i++) {
      const answer = yield { kind: "get", key: emptyBytes };
      bytes += answer.kind === "get" ? (answer.value?.length ?? 0) : 0;
    }
    return bytes;
  }
  assert.deepEqual(await runPlan(clock, plan(), view), ok(10 * turnSliceMs));
  assert.equal(others, 9);
});
