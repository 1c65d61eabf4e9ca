/** Messages over gRPC, for the holder of a token: the same queues, limits and codes as over HTTP. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { fromBase64, makeToken } from "@stamp/azure-rest";
import { type Outcome, unwrap } from "@stamp/base";
import { FrontEnd } from "@stamp/wire";
import { accountKey, accountName, startScriptedStamp } from "../scripted-stamp.ts";
import { QueueClients } from "./target.ts";

const codeOf = (outcome: Outcome<unknown>): string =>
  outcome.ok ? "done" : `${outcome.failure.code} ${outcome.failure.details?.["x-ms-error-code"] ?? ""}`;

test("the gRPC door puts, takes and deletes messages", async (t) => {
  const stamp = await startScriptedStamp();
  t.after(() => stamp.stop());
  const clients = new QueueClients({ endpoint: stamp.queueEndpoint, accountName, accountKey, stop: async () => {} });
  const queue = await clients.queue();
  const token = makeToken({ account: accountName, expiresMs: Date.now() + 60_000 }, fromBase64(accountKey) as Uint8Array, (key, message) =>
    createHmac("sha256", key).update(message).digest(),
  );
  const options = { timeoutMs: 5_000, metadata: { authorization: `Bearer ${token}` } };
  const door = stamp.world.transport.client("front-end-1", FrontEnd);
  const of = { account: accountName, queue: queue.name };

  const put = unwrap(await door.putQueueMessage({ ...of, text: "by gRPC <&>", timeToLiveSeconds: -1n }, options));
  assert.equal(put.expiresMs, undefined);
  assert.deepEqual(
    (await queue.peekMessages()).peekedMessageItems.map(({ messageText }) => messageText),
    ["by gRPC <&>"],
  );
  await queue.sendMessage("by HTTP");
  const { messages } = unwrap(await door.getQueueMessages({ ...of, count: 32, visibilityTimeoutSeconds: 5 }, options));
  assert.deepEqual(
    messages.map(({ text, dequeueCount }) => `${text} ${dequeueCount}`),
    ["by gRPC <&> 1", "by HTTP 1"],
  );
  assert.equal(unwrap(await door.getQueueMessages(of, options)).messages.length, 0);
  const { messageId, popReceipt } = messages[0] ?? { messageId: "", popReceipt: "" };
  assert.equal(
    codeOf(await door.deleteQueueMessage({ ...of, messageId, popReceipt: put.popReceipt }, options)),
    "notFound MessageNotFound",
  );
  unwrap(await door.deleteQueueMessage({ ...of, messageId, popReceipt }, options));
  assert.equal(codeOf(await door.deleteQueueMessage({ ...of, messageId, popReceipt }, options)), "notFound MessageNotFound");
  assert.equal((await queue.getProperties()).approximateMessagesCount, 1);

  const refusals: [Promise<Outcome<unknown>>, string][] = [
    [door.putQueueMessage({ ...of, text: "x".repeat(65_537) }, options), "invalidArgument RequestBodyTooLarge"],
    [door.putQueueMessage({ ...of, text: "\u0001" }, options), "invalidArgument InvalidXmlDocument"],
    [door.putQueueMessage({ ...of, text: "x", timeToLiveSeconds: 0n }, options), "invalidArgument OutOfRangeQueryParameterValue"],
    [door.getQueueMessages({ ...of, count: 33 }, options), "invalidArgument OutOfRangeQueryParameterValue"],
    [door.getQueueMessages({ ...of, visibilityTimeoutSeconds: 0 }, options), "invalidArgument OutOfRangeQueryParameterValue"],
    [door.getQueueMessages({ ...of, queue: "not-there" }, options), "notFound QueueNotFound"],
    [door.getQueueMessages({ ...of, queue: "No Name" }, options), "invalidArgument InvalidResourceName"],
    [door.getQueueMessages(of, { timeoutMs: 5_000 }), "unauthenticated "],
  ];
  for (const [refused, code] of refusals) assert.equal(codeOf(await refused), code);
});
