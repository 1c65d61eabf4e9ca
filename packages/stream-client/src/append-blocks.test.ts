/** The memory of an append's blocks is free when it is acknowledged and its only call was answered, and after nothing else. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AppendBlocks } from "./append-blocks.ts";

type Step = "toSend" | "answered" | "settled";

for (const [steps, free] of [
  [["toSend", "answered", "settled"], 1],
  [["toSend", "settled", "answered"], 1],
  [["toSend", "settled"], 0],
  [["toSend", "answered"], 0],
  [["toSend", "toSend", "answered", "settled"], 0],
  [["toSend", "toSend", "settled", "answered"], 0],
] as readonly (readonly [readonly Step[], number])[]) {
  test(`blocks of an append: after ${steps.join(", ")} their memory is ${free === 1 ? "free" : "not free"}`, () => {
    let told = 0;
    const given = [new Uint8Array(3)];
    const blocks = new AppendBlocks(given, () => told++);
    for (const step of steps) {
      const result = blocks[step]();
      if (step === "toSend") assert.equal(result, given);
    }
    assert.equal(told, free);
  });
}
