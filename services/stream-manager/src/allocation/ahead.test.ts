import assert from "node:assert/strict";
import { test } from "node:test";
import { extentId, ok, ownerEpoch, refused } from "@stamp/base";
import type { Term } from "../term/term.ts";
import { ExtentsAhead } from "./ahead.ts";
import type { Allocator } from "./allocator.ts";

test("successors ahead: one that could not be made is not kept, and the next call makes one", async () => {
  const answers = [
    () => Promise.reject(new Error("a bug")),
    async () => refused("unavailable", "noPlacement", "no node"),
    async () => ok(extentId(9)),
  ];
  const allocator = { allocate: () => answers.shift()?.(), drop: () => {} } as unknown as Allocator;
  const state = { stream: () => undefined };
  const term = { state, nodes: { address: () => undefined }, world: { clock: { monotonicMs: () => 0 } } } as unknown as Term;
  const ahead = new ExtentsAhead(term, allocator);
  const epoch = ownerEpoch(1);
  for (const left of [0, 0, 1]) {
    await ahead.prepare("/s", epoch, undefined);
    assert.equal(ahead.count, left);
  }
});
