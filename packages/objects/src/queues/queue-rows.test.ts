/** Rows of the Message table as they are stored: golden files, and there and back. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import {
  decodeOrder,
  decodeQueue,
  decodeState,
  decodeText,
  encodeOrder,
  encodeQueue,
  encodeState,
  encodeText,
  expiryMark,
  type MessageFacts,
  type MessagesState,
  type QueueState,
} from "./queue-rows.ts";

const queue: QueueState = {
  createdMs: 1_700_000_000_000,
  metadata: { owner: "me" },
  incarnation: 9,
  signedIdentifiers: [{ id: "p", startMs: 1, expiryMs: 2, permissions: "raup" }],
};
const state: MessagesState = {
  generation: 3,
  clockMs: 1_700_000_000_123,
  count: 1_000_000,
  head: { visibleMs: 1_700_000_000_100, ticket: 77, index: 31 },
  sweptMs: 1_700_000_000_000,
  sweptMessage: 2 ** 53 - 1,
  garbage: Uint8Array.of(5, 2, 0),
};
const facts: MessageFacts = {
  message: 76,
  insertedMs: 1_700_000_000_001,
  expiresMs: 1_700_604_800_001,
  dequeueCount: 2,
  receiptSecret: new Uint8Array(0),
};
const secured: MessageFacts = { ...facts, receiptSecret: Uint8Array.from({ length: 16 }, (_, index) => index + 1) };

const rows: Readonly<Record<string, Uint8Array>> = {
  queue: encodeQueue(queue),
  state: encodeState(state),
  order: encodeOrder(facts),
  "order-with-secret": encodeOrder(secured),
  text: encodeText("é<text>", facts.expiresMs),
  expiry: expiryMark,
};

test("rows of queues and messages are as they were", () => {
  for (const [name, row] of Object.entries(rows)) {
    const path = new URL(`../../../../tests/golden/row/v1/message-${name}.bin`, import.meta.url);
    if (process.env.STAMP_WRITE_GOLDEN === "1" && !existsSync(path)) writeFileSync(path, row);
    assert.deepEqual(new Uint8Array(readFileSync(path)), row, name);
  }
});

test("rows of queues and messages go there and back", () => {
  const read = decodeQueue(rows.queue as Uint8Array);
  assert.deepEqual({ ...read, metadata: { ...read.metadata } }, queue);
  assert.deepEqual(decodeState(rows.state as Uint8Array), state);
  assert.deepEqual(decodeOrder(rows.order as Uint8Array), facts);
  assert.deepEqual(decodeOrder(rows["order-with-secret"] as Uint8Array), secured);
  assert.deepEqual(decodeText(rows.text as Uint8Array), { text: "é<text>", expiresMs: facts.expiresMs });
  const forEver = { ...facts, expiresMs: undefined };
  assert.deepEqual(decodeOrder(encodeOrder(forEver)), forEver);
});
