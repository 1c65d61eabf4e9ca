import assert from "node:assert/strict";
import { test } from "node:test";
import { compareBytes } from "@stamp/base";
import { encodeKey } from "../rows/key.ts";
import type { QueueEdit } from "./queue-edit.ts";
import { generationFrom } from "./queue-keys.ts";
import { collectGarbage } from "./upkeep.ts";

test("upkeep: what is cleared of a queue is looked for in the queue alone, whatever its row says", () => {
  const messages = encodeKey([["acct"], [1, "queue", 7]]);
  const lowFor = (garbage: Uint8Array): Uint8Array => {
    const step = collectGarbage({ messages, generation: 3, state: { garbage } } as unknown as QueueEdit).next();
    return (step.value as unknown as { low: Uint8Array }).low;
  };
  const cleared = generationFrom(messages, 2);
  assert.equal(compareBytes(lowFor(cleared), cleared), 0);
  for (const garbage of [encodeKey([["abba"]]), new Uint8Array(0), encodeKey([["acct"], [1, "other", 7]])])
    assert.equal(compareBytes(lowFor(garbage), generationFrom(messages, 0)), 0, Buffer.from(garbage).toString("hex"));
});
