import assert from "node:assert/strict";
import { test } from "node:test";
import type { DrillContext } from "./faults.ts";
import { strike } from "./run-drill.ts";

test("drill, a run that fails half-way: what it held down is started again, and its failure is told", async () => {
  const asked: unknown[] = [];
  const processes = [
    { name: "extent-node-1", state: "down" },
    { name: "extent-node-2", state: "serving" },
  ];
  const target = { status: async () => ({ processes }), ask: async (what: unknown) => asked.push(what) };
  const context = { target, note: () => {} } as unknown as DrillContext;
  const failing = {
    run: async () => {
      throw new Error("nobody took over");
    },
    mend: async () => void asked.push("mend"),
  };
  await assert.rejects(
    strike(failing, context, async () => void asked.push("the clients go on")),
    /nobody took over/,
  );
  assert.deepEqual(asked, [{ do: "start", name: "extent-node-1" }, "mend"]);
});
