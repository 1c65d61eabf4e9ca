/** Queues and messages in every state that the SDK can make, and everything that the SDK tells of them without changing them. */
import type { QueueServiceClient } from "@azure/storage-queue";
import { type Told, told } from "./told.ts";

const week = 7 * 24 * 3_600;

export async function setQueueService(service: QueueServiceClient): Promise<void> {
  await service.setProperties({
    cors: [{ allowedOrigins: "*", allowedMethods: "GET", allowedHeaders: "*", exposedHeaders: "*", maxAgeInSeconds: 5 }],
  });
}

/**
 * Queues whose names begin with `prefix`: with metadata and stored access policies, with messages that are new, hidden, handed out, updated and
 * deleted, cleared, empty, deleted. No message becomes visible or expires soon, so that two looks at them see the same.
 */
export async function writeQueues(service: QueueServiceClient, prefix: string): Promise<void> {
  const queue = service.getQueueClient(`${prefix}-jobs`);
  await queue.create({ metadata: { purpose: "work", team: "north" } });
  const policy = { startsOn: new Date(1_700_000_000_000), expiresOn: new Date(1_900_000_000_000), permissions: "rp" };
  await queue.setAccessPolicy([{ id: "readers", accessPolicy: policy }]);
  for (const text of ["handed out", "updated", "deleted", "given back"]) await queue.sendMessage(text, { messageTimeToLive: week });
  const { receivedMessageItems: taken } = await queue.receiveMessages({ numberOfMessages: 4, visibilityTimeout: week - 1 });
  for (const { messageId, popReceipt, messageText } of taken) {
    if (messageText === "updated") await queue.updateMessage(messageId, popReceipt, "updated text", week - 1);
    if (messageText === "deleted") await queue.deleteMessage(messageId, popReceipt);
    if (messageText === "given back") await queue.updateMessage(messageId, popReceipt, undefined, 0);
  }
  for (const text of ["plain", "<&>\"'", "日本語 😀", "x".repeat(60_000)]) await queue.sendMessage(text, { messageTimeToLive: -1 });
  await queue.sendMessage("hidden", { visibilityTimeout: week - 1, messageTimeToLive: week });
  const cleared = service.getQueueClient(`${prefix}-cleared`);
  await cleared.create();
  await cleared.sendMessage("before");
  await cleared.clearMessages();
  await cleared.sendMessage("after", { messageTimeToLive: -1 });
  await service.getQueueClient(`${prefix}-empty`).create();
  const gone = service.getQueueClient(`${prefix}-gone`);
  await gone.create();
  await gone.sendMessage("m");
  await gone.delete();
}

export async function toldOfQueues(service: QueueServiceClient): Promise<Told[]> {
  const all: Told[] = [told("queue service", await service.getProperties())];
  for await (const { name, metadata } of service.listQueues({ includeMetadata: true })) {
    const queue = service.getQueueClient(name);
    all.push(told(`queue ${name}`, { name, metadata }), told(`properties of queue ${name}`, await queue.getProperties()));
    all.push(told(`policies of queue ${name}`, await queue.getAccessPolicy()));
    const { peekedMessageItems } = await queue.peekMessages({ numberOfMessages: 32 });
    all.push(told(`messages of queue ${name}`, peekedMessageItems));
  }
  return all;
}
