import assert from "node:assert/strict";
import { test } from "node:test";
import { ExtentCounts } from "./extent-counts.ts";
import type { ExtentRecord } from "./records.ts";

test("extent counts: one sealed with accepted loss counts from its seal until it is dropped", () => {
  const counts = new ExtentCounts();
  const common = { replicas: [{ nodeId: "n1" }] };
  const loss = { knownCommittedBytes: 9, wallMs: 1, note: "ada" };
  const sealing = { ...common, phase: "sealing" } as unknown as ExtentRecord;
  const sealed = { ...common, phase: "sealed", loss } as unknown as ExtentRecord;
  const dropped = { ...common, phase: "dropped", loss } as unknown as ExtentRecord;
  const seen: number[] = [];
  for (const [before, after] of [
    [undefined, sealing],
    [sealing, sealed],
    [sealed, sealed],
    [sealed, dropped],
    [dropped, undefined],
  ] as const) {
    counts.changed(before, after);
    seen.push(counts.lossy);
  }
  assert.deepEqual(seen, [0, 1, 1, 0, 0]);
});
