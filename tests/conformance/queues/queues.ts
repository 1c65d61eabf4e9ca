/** Queues: create, metadata, count, list, delete, and creating again. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { type QueueClients, refusal } from "./target.ts";

export function queueSuite(clients: () => QueueClients): void {
  test("creating a queue again is 204 with equal metadata, else 409 QueueAlreadyExists", async () => {
    const queue = clients().queues.getQueueClient(`q-${randomUUID()}`);
    assert.equal((await queue.create({ metadata: { one: "1" } }))._response.status, 201);
    assert.equal((await queue.create({ metadata: { one: "1" } }))._response.status, 204);
    assert.equal(await refusal(queue.create()), "409 QueueAlreadyExists");
    assert.equal(await refusal(queue.create({ metadata: { one: "2" } })), "409 QueueAlreadyExists");
    assert.equal((await queue.createIfNotExists()).succeeded, false);
    assert.ok(await queue.exists());
  });

  test("metadata is replaced as a whole and comes with the count", async () => {
    const queue = await clients().queue({ old: "x", Mixed: "case" });
    assert.deepEqual((await queue.getProperties()).metadata, { old: "x", mixed: "case" });
    await queue.setMetadata({ fresh: "y z" });
    const properties = await queue.getProperties();
    assert.deepEqual(properties.metadata, { fresh: "y z" });
    assert.equal(properties.approximateMessagesCount, 0);
    const head = await clients().raw("HEAD", `/${queue.name}?comp=metadata`);
    assert.deepEqual([head.status, head.headers.get("x-ms-approximate-messages-count")], [200, "0"]);
  });

  test("the count is of all messages that have not expired, also those that are hidden", async () => {
    const queue = await clients().queue();
    const sent = [await queue.sendMessage("a"), await queue.sendMessage("b", { visibilityTimeout: 100 }), await queue.sendMessage("c")];
    await queue.receiveMessages();
    assert.equal((await queue.getProperties()).approximateMessagesCount, 3);
    await queue.deleteMessage(sent[1]?.messageId ?? "", sent[1]?.popReceipt ?? "");
    assert.equal((await queue.getProperties()).approximateMessagesCount, 2);
  });

  test("a deleted queue is 404, and so is what was in it; created again it is empty", async () => {
    const queue = await clients().queue();
    const { messageId, popReceipt } = await queue.sendMessage("ghost");
    await queue.delete();
    assert.equal(await refusal(queue.getProperties()), "404 QueueNotFound");
    assert.equal(await refusal(queue.sendMessage("x")), "404 QueueNotFound");
    assert.equal(await refusal(queue.receiveMessages()), "404 QueueNotFound");
    assert.equal(await refusal(queue.peekMessages()), "404 QueueNotFound");
    assert.equal(await refusal(queue.clearMessages()), "404 QueueNotFound");
    assert.equal(await refusal(queue.deleteMessage(messageId, popReceipt)), "404 QueueNotFound");
    assert.equal(await refusal(queue.updateMessage(messageId, popReceipt, "x", 1)), "404 QueueNotFound");
    assert.equal(await refusal(queue.setMetadata({})), "404 QueueNotFound");
    assert.equal(await refusal(queue.delete()), "404 QueueNotFound");
    assert.equal((await queue.deleteIfExists()).succeeded, false);
    await queue.create();
    assert.deepEqual((await queue.peekMessages()).peekedMessageItems, []);
    assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
    assert.equal(await refusal(queue.deleteMessage(messageId, popReceipt)), "404 MessageNotFound");
  });

  test("queues are listed by name, by prefix, in pages, with metadata when asked", async () => {
    const { queues } = clients();
    const prefix = `l-${randomUUID().slice(0, 8)}-`;
    const names = ["a", "b", "b1", "c", "d"].map((end) => prefix + end);
    for (const name of names) await queues.getQueueClient(name).create({ metadata: { end: name.slice(prefix.length) } });
    const listed: string[] = [];
    const sizes: number[] = [];
    for await (const page of queues.listQueues({ prefix }).byPage({ maxPageSize: 2 })) {
      sizes.push(page.queueItems?.length ?? 0);
      for (const item of page.queueItems ?? []) listed.push(item.name);
    }
    assert.deepEqual([listed, sizes], [names, [2, 2, 1]]);
    const withMetadata: Record<string, string | undefined> = {};
    for await (const item of queues.listQueues({ prefix: `${prefix}b`, includeMetadata: true }))
      withMetadata[item.name] = item.metadata?.end;
    assert.deepEqual(withMetadata, { [`${prefix}b`]: "b", [`${prefix}b1`]: "b1" });
    const raw = await (await clients().raw("GET", `/?comp=list&prefix=${prefix}&maxresults=1`)).text();
    assert.match(
      raw,
      /^<\?xml [^>]+><EnumerationResults ServiceEndpoint="http[^"]+"><Prefix>l-[^<]+<\/Prefix><MaxResults>1<\/MaxResults><Queues><Queue>/,
    );
    assert.match(raw, /<NextMarker>[^<]+<\/NextMarker>/);
  });
}
