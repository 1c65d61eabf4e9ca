/** Messages: put, get, peek, update, delete, clear; visibility, time to live, receipts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { QueueClient } from "@azure/storage-queue";
import { type QueueClients, refusal, seconds } from "./target.ts";

const hour = 3_600_000;

async function peeked(queue: QueueClient): Promise<string[]> {
  return (await queue.peekMessages({ numberOfMessages: 32 })).peekedMessageItems.map(({ messageText }) => messageText);
}

async function take(queue: QueueClient, numberOfMessages = 32, visibilityTimeout = 30) {
  return (await queue.receiveMessages({ numberOfMessages, visibilityTimeout })).receivedMessageItems;
}

async function takeOne(queue: QueueClient, visibilityTimeout?: number) {
  const [message, ...others] = await take(queue, 1, visibilityTimeout);
  assert.ok(message !== undefined && others.length === 0);
  return message;
}

export function messageSuite(clients: () => QueueClients): void {
  test("a body in chunks has no length: an update is refused like a put, and changes nothing", async () => {
    const queue = await clients().queue();
    const sent = await queue.sendMessage("before");
    const xml = "<QueueMessage><MessageText>after</MessageText></QueueMessage>";
    const path = `/${queue.name}/messages/${sent.messageId}?popreceipt=${encodeURIComponent(sent.popReceipt)}&visibilitytimeout=0`;
    for (const [method, at] of [
      ["PUT", path],
      ["POST", `/${queue.name}/messages`],
    ] as const) {
      const answer = await clients().raw(method, at, { stream: new Blob([xml]).stream() });
      assert.deepEqual([answer.status, answer.statusText], [411, "Content-Length HTTP header is missing."], method);
      await answer.arrayBuffer();
    }
    assert.deepEqual(await peeked(queue), ["before"]);
    await queue.updateMessage(sent.messageId, sent.popReceipt, "after", 0);
    assert.deepEqual(await peeked(queue), ["after"]);
  });

  test("white space and U+FEFF around a text belong to it", async () => {
    const queue = await clients().queue();
    for (const text of ["\ufeff[1]", " \t x \n ", "\ufeff"]) {
      const xml = `<QueueMessage><MessageText>${text}</MessageText></QueueMessage>`;
      assert.equal((await clients().raw("POST", `/${queue.name}/messages`, { body: xml })).status, 201);
      const answer = await clients().raw("GET", `/${queue.name}/messages`);
      const body = new TextDecoder("utf-8", { ignoreBOM: true }).decode(await answer.arrayBuffer());
      assert.equal(/<MessageText>([^<]*)<\/MessageText>/.exec(body)?.[1], text);
    }
  });

  test("what is put is got: text, times, count; an empty queue gives nothing", async () => {
    const queue = await clients().queue();
    assert.deepEqual(await take(queue), []);
    const sent = await queue.sendMessage("first");
    assert.equal(sent._response.status, 201);
    assert.ok(Math.abs(sent.insertedOn.getTime() - Date.now()) < hour);
    assert.equal(sent.expiresOn.getTime() - sent.insertedOn.getTime(), 7 * 24 * hour);
    assert.deepEqual(sent.nextVisibleOn, sent.insertedOn);
    const [seen] = (await queue.peekMessages()).peekedMessageItems;
    assert.deepEqual([seen?.messageId, seen?.messageText, seen?.dequeueCount], [sent.messageId, "first", 0]);
    assert.deepEqual([seen?.insertedOn, seen?.expiresOn], [sent.insertedOn, sent.expiresOn]);
    const got = await takeOne(queue);
    assert.deepEqual([got.messageId, got.messageText, got.dequeueCount], [sent.messageId, "first", 1]);
    assert.ok(Math.abs(got.nextVisibleOn.getTime() - Date.now() - 30_000) < hour);
    assert.notEqual(got.popReceipt, sent.popReceipt);
    assert.deepEqual(await take(queue), []);
  });

  test("messages come in the order in which they became visible, at most 32 at a time, one by default", async () => {
    const queue = await clients().queue();
    const texts = Array.from({ length: 40 }, (_, i) => `m${i}`);
    for (const text of texts) await queue.sendMessage(text);
    assert.deepEqual(await peeked(queue), texts.slice(0, 32));
    assert.deepEqual(
      (await queue.receiveMessages()).receivedMessageItems.map(({ messageText }) => messageText),
      ["m0"],
    );
    const rest = [...(await take(queue)), ...(await take(queue))];
    assert.deepEqual(
      rest.map(({ messageText }) => messageText),
      texts.slice(1),
    );
  });

  test("a taken message is visible again after its time, behind what was visible before, with its count", async () => {
    const queue = await clients().queue();
    await queue.sendMessage("a");
    await takeOne(queue, 1);
    await queue.sendMessage("b");
    assert.deepEqual(await peeked(queue), ["b"]);
    await seconds(1.1);
    assert.deepEqual(await peeked(queue), ["b", "a"]);
    assert.deepEqual(
      (await take(queue)).map(({ messageText, dequeueCount }) => `${messageText}${dequeueCount}`),
      ["b1", "a2"],
    );
  });

  test("a delayed message is hidden until its time", async () => {
    const queue = await clients().queue();
    const sent = await queue.sendMessage("later", { visibilityTimeout: 1 });
    assert.equal(sent.nextVisibleOn.getTime() - sent.insertedOn.getTime(), 1000);
    assert.deepEqual(await peeked(queue), []);
    await seconds(1.1);
    assert.deepEqual(await peeked(queue), ["later"]);
  });

  test("an expired message is never seen again, and -1 never expires", async () => {
    const queue = await clients().queue();
    const short = await queue.sendMessage("short", { messageTimeToLive: 1 });
    const ever = await queue.sendMessage("ever", { messageTimeToLive: -1 });
    const long = await queue.sendMessage("long", { messageTimeToLive: 100 * 24 * 3600 });
    assert.equal(ever.expiresOn.getUTCFullYear(), 9999);
    assert.equal(long.expiresOn.getTime() - long.insertedOn.getTime(), 100 * 24 * hour);
    await seconds(1.1);
    assert.equal((await queue.getProperties()).approximateMessagesCount, 2);
    assert.deepEqual(await peeked(queue), ["ever", "long"]);
    assert.equal(await refusal(queue.deleteMessage(short.messageId, short.popReceipt)), "404 MessageNotFound");
    assert.equal((await take(queue)).length, 2);
  });

  test("the receipt is the fence: after another took the message the old one finds no message", async () => {
    const queue = await clients().queue();
    const sent = await queue.sendMessage("x");
    const first = await takeOne(queue, 1);
    assert.equal(await refusal(queue.deleteMessage(sent.messageId, sent.popReceipt)), "404 MessageNotFound");
    await seconds(1.1);
    const second = await takeOne(queue);
    assert.equal(await refusal(queue.deleteMessage(first.messageId, first.popReceipt)), "404 MessageNotFound");
    assert.equal(await refusal(queue.updateMessage(first.messageId, first.popReceipt, "y", 1)), "404 MessageNotFound");
    await queue.deleteMessage(second.messageId, second.popReceipt);
    assert.equal(await refusal(queue.deleteMessage(second.messageId, second.popReceipt)), "404 MessageNotFound");
    assert.equal(await refusal(queue.updateMessage(second.messageId, second.popReceipt, "y", 1)), "404 MessageNotFound");
  });

  test("a message whose time ran out can still be deleted by who took it last", async () => {
    const queue = await clients().queue();
    await queue.sendMessage("x");
    const taken = await takeOne(queue, 1);
    await seconds(1.1);
    assert.deepEqual(await peeked(queue), ["x"]);
    await queue.deleteMessage(taken.messageId, taken.popReceipt);
    assert.deepEqual(await peeked(queue), []);
  });

  test("update extends the time, replaces the text, gives a new receipt; without a text it stays", async () => {
    const queue = await clients().queue();
    await queue.sendMessage("old");
    const taken = await takeOne(queue, 1);
    const longer = await queue.updateMessage(taken.messageId, taken.popReceipt, undefined, 100);
    assert.ok((longer.nextVisibleOn?.getTime() ?? 0) - Date.now() > 60_000);
    assert.equal(await refusal(queue.deleteMessage(taken.messageId, taken.popReceipt)), "404 MessageNotFound");
    await seconds(1.1);
    assert.deepEqual(await peeked(queue), []);
    const visible = await queue.updateMessage(taken.messageId, longer.popReceipt ?? "", undefined, 0);
    assert.deepEqual(await peeked(queue), ["old"]);
    const changed = await queue.updateMessage(taken.messageId, visible.popReceipt ?? "", "new", 0);
    const [again] = await take(queue);
    assert.deepEqual([again?.messageText, again?.dequeueCount], ["new", 2]);
    assert.equal(await refusal(queue.deleteMessage(taken.messageId, changed.popReceipt ?? "")), "404 MessageNotFound");
  });

  test("what was put can be changed and deleted by the receipt of its put", async () => {
    const queue = await clients().queue();
    const sent = await queue.sendMessage("hidden", { visibilityTimeout: 1000 });
    const changed = await queue.updateMessage(sent.messageId, sent.popReceipt, "shown", 0);
    assert.deepEqual(await peeked(queue), ["shown"]);
    await queue.deleteMessage(sent.messageId, changed.popReceipt ?? "");
    assert.deepEqual(await peeked(queue), []);
  });

  test("clearing takes all, also what is hidden", async () => {
    const queue = await clients().queue();
    for (let i = 0; i < 10; i++) await queue.sendMessage(`m${i}`, { visibilityTimeout: i % 2 });
    const taken = await takeOne(queue);
    await queue.clearMessages();
    assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
    assert.equal(await refusal(queue.deleteMessage(taken.messageId, taken.popReceipt)), "404 MessageNotFound");
    await queue.sendMessage("next");
    await seconds(1.1);
    assert.deepEqual(await peeked(queue), ["next"]);
  });

  test("a text comes as it was sent: base64, markup, white space, every plane of Unicode", async () => {
    const queue = await clients().queue();
    const texts = ["", " ", "  two\n\tlines  ", "aGVsbG8=", "<a href='x'>&amp; \"q\" ]]></a>", "éß漢字🦊", '{"json": [1, 2]}', "&#65;"];
    for (const text of texts) await queue.sendMessage(text);
    assert.deepEqual(
      (await take(queue)).map(({ messageText }) => messageText),
      texts,
    );
  });

  test("64 KiB of text of which every character is escaped come back, from put, peek, get and update", async () => {
    const queue = await clients().queue();
    const text = '<&>"'.repeat(16 * 1024);
    await queue.sendMessage(text);
    assert.equal((await queue.peekMessages()).peekedMessageItems[0]?.messageText, text);
    const [taken] = await take(queue);
    assert.equal(taken?.messageText, text);
    const other = "&".repeat(64 * 1024);
    await queue.updateMessage(taken?.messageId ?? "", taken?.popReceipt ?? "", other, 0);
    assert.deepEqual(await peeked(queue), [other]);
    assert.equal(await refusal(queue.sendMessage(`${other}&`)), "413 RequestBodyTooLarge");
  });

  test("many takers at once: everybody gets other messages, and all of them are handed out", async () => {
    const queue = await clients().queue();
    const texts = Array.from({ length: 100 }, (_, i) => `m${i}`);
    await Promise.all(texts.map((text) => queue.sendMessage(text)));
    const taken = (await Promise.all(Array.from({ length: 25 }, () => take(queue, 5)))).flat();
    assert.deepEqual(taken.map(({ messageText }) => messageText).sort(), [...texts].sort());
    await Promise.all(taken.map(({ messageId, popReceipt }) => queue.deleteMessage(messageId, popReceipt)));
    assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
  });
}
