/**
 * Several workers on one queue. The service has neither ETags nor leases for messages, but what does their work. Optimistic: a pop receipt
 * is a fence, whoever holds an old one is refused. Pessimistic: who got a message has it alone while it is invisible, and may prolong that.
 * Last writer wins: what an update writes is compared with nothing, and the queue's own properties check nothing.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { QueueClient, ReceivedMessageItem } from "@azure/storage-queue";
import { refused, type World } from "./clients.ts";

const take = async (queue: QueueClient, visibilityTimeout: number): Promise<ReceivedMessageItem | undefined> =>
  (await queue.receiveMessages({ visibilityTimeout })).receivedMessageItems[0];

/** Waits until a message is visible. */
async function taken(queue: QueueClient, visibilityTimeout: number): Promise<ReceivedMessageItem> {
  for (let tries = 0; tries < 600; tries++) {
    const message = await take(queue, visibilityTimeout);
    if (message) return message;
    await pause(50);
  }
  throw new Error("no message became visible");
}

export function messageScenarios(world: () => World): void {
  describe("messages", () => {
    test("optimistic: who got a message before another did is refused with the old receipt, gets it again and deletes it", async () => {
      const queue = await world().queue();
      await queue.sendMessage("work");
      const slow = await taken(queue, 1);
      const other = await taken(queue, 1);
      assert.equal(other.messageId, slow.messageId);
      assert.notEqual(other.popReceipt, slow.popReceipt);
      assert.equal(await refused(queue.deleteMessage(slow.messageId, slow.popReceipt)), 404);
      assert.equal(await refused(queue.updateMessage(slow.messageId, slow.popReceipt, "mine", 0)), 404);
      const again = await taken(queue, 60);
      assert.equal(again.messageText, "work");
      await queue.deleteMessage(again.messageId, again.popReceipt);
      assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
    });

    test("optimistic: an update gives a new receipt; the one before it is refused", async () => {
      const queue = await world().queue();
      await queue.sendMessage("step 1");
      const mine = await taken(queue, 60);
      const updated = await queue.updateMessage(mine.messageId, mine.popReceipt, "step 2", 60);
      assert.equal(await refused(queue.updateMessage(mine.messageId, mine.popReceipt, "step 3", 60)), 404);
      await queue.deleteMessage(mine.messageId, updated.popReceipt ?? "");
      assert.equal(await refused(queue.deleteMessage(mine.messageId, updated.popReceipt ?? "")), 404);
    });

    test("optimistic: of several who delete with one receipt, one succeeds; the others are told 404", async () => {
      const queue = await world().queue();
      await queue.sendMessage("work");
      const { messageId, popReceipt } = await taken(queue, 60);
      const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => queue.deleteMessage(messageId, popReceipt)));
      const refusals = outcomes.filter((outcome) => outcome.status === "rejected").map(({ reason }) => reason.statusCode);
      assert.deepEqual(refusals, [404, 404, 404, 404]);
    });

    test("pessimistic: while one has a message nobody else gets or peeks it; when its time is over another does", async () => {
      const queue = await world().queue();
      await queue.sendMessage("work");
      const mine = await taken(queue, 2);
      assert.equal(await take(queue, 2), undefined);
      assert.deepEqual((await queue.peekMessages()).peekedMessageItems, []);
      const other = await taken(queue, 60);
      assert.deepEqual([other.messageId, other.dequeueCount], [mine.messageId, 2]);
    });

    test("pessimistic: who updates a message in time keeps it, with what was done so far", async () => {
      const queue = await world().queue();
      await queue.sendMessage("nothing done");
      const mine = await taken(queue, 2);
      const kept = await queue.updateMessage(mine.messageId, mine.popReceipt, "half done", 60);
      await pause(2_500);
      assert.equal(await take(queue, 60), undefined);
      const released = await queue.updateMessage(mine.messageId, kept.popReceipt ?? "", "half done", 0);
      const other = await taken(queue, 60);
      assert.equal(other.messageText, "half done");
      assert.equal(await refused(queue.deleteMessage(mine.messageId, released.popReceipt ?? "")), 404);
    });

    test("pessimistic: twenty messages, four workers: each is done once, none by two", async () => {
      const queue = await world().queue();
      await Promise.all(Array.from({ length: 20 }, (_, i) => queue.sendMessage(`work ${i}`)));
      const done: string[] = [];
      const worker = async (): Promise<void> => {
        for (let message = await take(queue, 60); message; message = await take(queue, 60)) {
          done.push(message.messageText);
          await queue.deleteMessage(message.messageId, message.popReceipt);
        }
      };
      await Promise.all([worker(), worker(), worker(), worker()]);
      assert.deepEqual(done.sort(), Array.from({ length: 20 }, (_, i) => `work ${i}`).sort());
    });

    test("pessimistic: a worker that dies has a message only for its time; another does the work", async () => {
      const queue = await world().queue();
      await queue.sendMessage("work");
      await taken(queue, 1);
      const other = await taken(queue, 60);
      assert.equal(other.dequeueCount, 2);
      await queue.deleteMessage(other.messageId, other.popReceipt);
      assert.equal(await take(queue, 1), undefined);
    });

    test("last writer wins: a queue's metadata, access policies and the service's properties check nothing", async () => {
      const queue = await world().queue();
      await Promise.all(Array.from({ length: 8 }, (_, i) => queue.setMetadata({ a: String(i), b: String(i) })));
      const { metadata } = await queue.getProperties();
      assert.equal(metadata?.a, metadata?.b);
      await queue.setMetadata({ a: "last" });
      assert.deepEqual((await queue.getProperties()).metadata, { a: "last" });
      await Promise.all(["x", "y"].map((id) => queue.setAccessPolicy([{ id, accessPolicy: { permissions: "r" } }])));
      await queue.setAccessPolicy([{ id: "last", accessPolicy: { permissions: "r" } }]);
      assert.deepEqual(
        (await queue.getAccessPolicy()).signedIdentifiers.map(({ id }) => id),
        ["last"],
      );
    });
  });
}
