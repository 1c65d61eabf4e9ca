import assert from "node:assert/strict";
import { test } from "node:test";
import type { QueueClient } from "@azure/storage-queue";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { processQueue } from "./process-queue.ts";

test("an abort while all handlers are busy: the time of the drain begins then, and their signals are aborted after it", async () => {
  const clock = new VirtualClock();
  const deleted: string[] = [];
  const message = { messageId: "1", popReceipt: "r", messageText: "", dequeueCount: 1, insertedOn: new Date(0) };
  const queue = {
    receiveMessages: async () => ({ receivedMessageItems: [message] }),
    updateMessage: async () => ({ popReceipt: "r" }),
    deleteMessage: async (id: string) => void deleted.push(id),
  } as unknown as QueueClient;
  const stop = new AbortController();
  let stoppedMs = 0;
  const working = processQueue(
    queue,
    (_, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          stoppedMs = clock.monotonicMs();
          reject(signal.reason);
        });
      }),
    stop.signal,
    { clock, drainMs: 5_000 },
  );
  await clock.advance(1_000);
  stop.abort();
  await clock.until(working, 60_000);
  assert.equal(stoppedMs, 6_000);
  assert.deepEqual(deleted, []);
});

for (const ends of ["returns when its signal is aborted", "ignores its signal"] as const) {
  test(`a handler that ${ends}: the worker stops, and the message is left to others`, async () => {
    const clock = new VirtualClock();
    const calls: string[] = [];
    const message = { messageId: "1", popReceipt: "r", messageText: "", dequeueCount: 1, insertedOn: new Date(0) };
    const queue = {
      receiveMessages: async () => ({ receivedMessageItems: [message] }),
      updateMessage: async () => {
        calls.push(`extended at ${clock.monotonicMs()}`);
        return { popReceipt: "r" };
      },
      deleteMessage: async () => void calls.push("deleted"),
    } as unknown as QueueClient;
    const stop = new AbortController();
    const handler = (_: unknown, signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        if (ends !== "ignores its signal") signal.addEventListener("abort", () => resolve());
      });
    const working = processQueue(queue, handler, stop.signal, { clock, visibilitySeconds: 30, drainMs: 15_000 });
    await clock.advance(1_000);
    stop.abort();
    await clock.until(working, 60_000);
    await clock.advance(120_000);
    assert.deepEqual(calls, ["extended at 10000"]);
  });
}
