/**
 * Queues of an account at two stamps of real processes, by the SDK: messages are put, handed out and deleted under load while the account fails
 * over as planned. Afterwards the new primary has every message that was put and not deleted, and no other one; receipts from before the failover
 * delete. Then an account with queues moves to the other stamp.
 */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { type QueueClient, QueueServiceClient, type ReceivedMessageItem, StorageSharedKeyCredential } from "@azure/storage-queue";
import { isComplete, killProcess, type TwoStamps, untilCopy, waitMs } from "../testing/two-stamps.ts";

const account = "queued";
const mover = "queuemove";
const [writers, workers] = [3, 2];
const week = 7 * 24 * 3_600;

/** What clients were told. A request that failed may have happened. */
class Book {
  readonly put = new Set<string>();
  readonly maybePut = new Set<string>();
  readonly deleted = new Set<string>();
  readonly maybeDeleted = new Set<string>();

  /** Judges the texts of all messages that are left. */
  judge(left: readonly string[]): void {
    const found = new Set(left);
    assert.equal(found.size, left.length, "a message is there twice");
    const lost = [...this.put].filter((text) => !found.has(text) && !this.deleted.has(text) && !this.maybeDeleted.has(text));
    assert.deepEqual(lost, [], "acknowledged messages that nobody deleted are lost");
    assert.deepEqual(
      [...found].filter((text) => this.deleted.has(text)),
      [],
      "deleted messages came back",
    );
    assert.deepEqual(
      [...found].filter((text) => !this.put.has(text) && !this.maybePut.has(text)),
      [],
      "messages that nobody put",
    );
  }
}

type Doors = readonly [north: QueueClient, south: QueueClient];

/** Asks the stamp that answered last, and the other one after a failure. */
class Client {
  readonly #doors: Doors;
  #at = 0;

  constructor(doors: Doors) {
    this.#doors = doors;
  }

  /** Undefined: it failed, and may have happened. */
  async ask<T>(work: (queue: QueueClient) => Promise<T>): Promise<T | undefined> {
    try {
      return await work(this.#doors[this.#at % 2] as QueueClient);
    } catch {
      this.#at++;
      await waitMs(50);
      return undefined;
    }
  }
}

async function load(doors: Doors, book: Book, stopping: AbortSignal): Promise<void> {
  let next = 0;
  const writing = Array.from({ length: writers }, async () => {
    const client = new Client(doors);
    while (!stopping.aborted) {
      const text = `message-${next++}`;
      const put = await client.ask((queue) => queue.sendMessage(text, { messageTimeToLive: week }));
      (put === undefined ? book.maybePut : book.put).add(text);
      await waitMs(20);
    }
  });
  const working = Array.from({ length: workers }, async () => {
    const client = new Client(doors);
    while (!stopping.aborted) {
      const taken = await client.ask((queue) => queue.receiveMessages({ numberOfMessages: 2, visibilityTimeout: 2 }));
      for (const { messageId, popReceipt, messageText } of taken?.receivedMessageItems ?? []) {
        const gone = await client.ask((queue) => queue.deleteMessage(messageId, popReceipt));
        (gone === undefined ? book.maybeDeleted : book.deleted).add(messageText);
      }
      await waitMs(20);
    }
  });
  await Promise.all([...writing, ...working]);
}

/** Takes and deletes every message. Returns their texts. */
async function emptied(queue: QueueClient): Promise<string[]> {
  const texts: string[] = [];
  for (let count = 1; count > 0; ) {
    const { receivedMessageItems } = await queue.receiveMessages({ numberOfMessages: 32, visibilityTimeout: 600 });
    for (const { messageId, popReceipt, messageText } of receivedMessageItems) {
      texts.push(messageText);
      await queue.deleteMessage(messageId, popReceipt);
    }
    // Messages of workers that stopped are hidden for up to 2 s.
    count = (await queue.getProperties()).approximateMessagesCount ?? 0;
    if (receivedMessageItems.length === 0) await waitMs(200);
  }
  return texts;
}

const codeOf = async (asked: Promise<unknown>): Promise<string> =>
  asked.then(
    () => "ok",
    (error: { statusCode?: number; code?: string }) => `${error.statusCode} ${error.code}`,
  );

function serviceAt({ portBase }: TwoStamps, stamp: "north" | "south", name: string, key: string, host = name): QueueServiceClient {
  const port = portBase + (stamp === "north" ? 1 : 301);
  const credential = new StorageSharedKeyCredential(name, key);
  return new QueueServiceClient(`http://127.0.0.1:${port}/${host}`, credential, { retryOptions: { maxTries: 1 } });
}

export async function queuesAreCopied(t: TestContext, two: TwoStamps): Promise<void> {
  const { ok } = two;
  const place = ["--location", "north", "--geo", "south", "--with-queues", "--json"];
  const { keys } = JSON.parse(await ok("account", "create", account, ...place));
  const [here, there] = (["north", "south"] as const).map((stamp) => serviceAt(two, stamp, account, keys[0]).getQueueClient("jobs"));
  assert.ok(here !== undefined && there !== undefined);
  await here.create({ metadata: { purpose: "work" } });
  const copy = serviceAt(two, "south", account, keys[0], `${account}-secondary`);
  await untilCopy(two, account, "a complete copy", isComplete);
  await here.setMetadata({ purpose: "load" });
  for (const text of ["held-1", "held-2", "held-3"]) await here.sendMessage(text, { messageTimeToLive: week });
  const { receivedMessageItems: held } = await here.receiveMessages({ numberOfMessages: 3, visibilityTimeout: 3_600 });
  assert.equal(held.length, 3);

  const book = new Book();
  const stopping = new AbortController();
  const loaded = load([here, there], book, stopping.signal);
  await waitMs(3_000);
  await killProcess(two, "north-1", "partition-server-1");
  await waitMs(2_000);
  await untilCopy(two, account, "the backlog is known after the crash", ({ pendingOperations }) => pendingOperations !== undefined);
  const failedOver = ok("geo", "failover", account, "--planned", "--to", "south-1").finally(() =>
    setTimeout(() => stopping.abort(), 2_000),
  );
  await Promise.all([failedOver, loaded]);
  t.diagnostic(`put ${book.put.size}, perhaps ${book.maybePut.size}; deleted ${book.deleted.size}, perhaps ${book.maybeDeleted.size}`);
  assert.ok(book.put.size > 20 && book.deleted.size > 5, "there was a load");

  const [first, second, third] = held as [ReceivedMessageItem, ReceivedMessageItem, ReceivedMessageItem];
  await there.deleteMessage(first.messageId, first.popReceipt);
  const { popReceipt } = await there.updateMessage(second.messageId, second.popReceipt, "held-2, updated", 3_600);
  assert.equal(await codeOf(there.deleteMessage(second.messageId, second.popReceipt)), "404 MessageNotFound", "an older receipt");
  assert.ok(popReceipt !== undefined);
  await there.deleteMessage(second.messageId, popReceipt);
  assert.equal(await codeOf(here.sendMessage("at the old primary")), "503 ServerBusy");
  await there.deleteMessage(third.messageId, third.popReceipt);
  assert.equal((await there.getProperties()).metadata?.purpose, "load");
  book.judge(await emptied(there));

  // The old primary becomes the copy: it is read, and takes no writes.
  await untilCopy(two, account, "a complete copy at the old primary", isComplete);
  const back = serviceAt(two, "north", account, keys[0], `${account}-secondary`);
  await there.sendMessage("last", { messageTimeToLive: -1 });
  await untilCopy(two, account, "the last message is copied", isComplete);
  const atCopy = back.getQueueClient("jobs");
  assert.deepEqual(
    (await atCopy.peekMessages({ numberOfMessages: 32 })).peekedMessageItems.map(({ messageText }) => messageText),
    ["last"],
  );
  assert.equal(await codeOf(atCopy.receiveMessages()), "403 InsufficientAccountPermissions");
  // The SDK does not read this answer of queues.
  assert.match((await back.getStatistics())._response.bodyAsText, /<Status>live<\/Status>/);
  assert.match(await codeOf(copy.getStatistics()), /^503/, "south is primary");
  await ok("geo", "unprotect", account);
  await accountMoves(two);
}

async function accountMoves(two: TwoStamps): Promise<void> {
  const { ok, stamp } = two;
  const { keys } = JSON.parse(await ok("account", "create", mover, "--location", "north", "--json"));
  const queue = serviceAt(two, "north", mover, keys[0]).getQueueClient("jobs");
  await queue.create();
  for (let i = 0; i < 40; i++) await queue.sendMessage(`m-${i}`, { messageTimeToLive: -1 });
  const { receivedMessageItems: held } = await queue.receiveMessages({ numberOfMessages: 2, visibilityTimeout: 3_600 });
  const refused = await stamp("account", "migrate", mover, "--to", "south-1");
  assert.notEqual(refused.code, 0);
  assert.match(refused.output, /has queues \(jobs\): move them with --with-queues, or give them up with --drop-queues/);
  await ok("account", "migrate", mover, "--to", "south-1", "--with-queues");
  const moved = serviceAt(two, "south", mover, keys[0]).getQueueClient("jobs");
  for (const { messageId, popReceipt } of held) await moved.deleteMessage(messageId, popReceipt);
  const gone = new Set(held.map(({ messageText }) => messageText));
  const expected = Array.from({ length: 40 }, (_, i) => `m-${i}`).filter((text) => !gone.has(text));
  assert.deepEqual((await emptied(moved)).sort(), expected.sort());
}
