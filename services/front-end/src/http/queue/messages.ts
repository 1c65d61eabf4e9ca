/** Operations on the messages of a queue. */
import {
  formatRfc1123,
  messageBodyBytesMax,
  messagesXml,
  type Parsed,
  parsed,
  parseMessageCount,
  parsePopReceipt,
  parsePutTimes,
  parseTakeTimeout,
  parseUpdateTimeout,
  type ShownMessage,
  textOfMessage,
  XmlTreeReader,
} from "@stamp/azure-rest";
import type { QueueMessage } from "@stamp/wire";
import { documentBody } from "../body.ts";
import { type Answer, respond } from "../exchange.ts";
import { readInTurns, textInTurns } from "../turns.ts";
import { isOfCopy, type QueueExchange, queueOfRequest, queuesOf } from "./exchange.ts";

const xml = { "Content-Type": "application/xml" } as const;
/** No cache between may keep the answer of a poll. */
const uncached = { ...xml, "Cache-Control": "no-cache" } as const;

const shown = (message: QueueMessage): ShownMessage => ({
  ...message,
  insertedMs: Number(message.insertedMs),
  expiresMs: message.expiresMs === undefined ? undefined : Number(message.expiresMs),
  visibleMs: Number(message.visibleMs),
});

const xmlOf = (exchange: QueueExchange, messages: readonly ShownMessage[], of: "put" | "get" | "peek"): Promise<Uint8Array> =>
  textInTurns(exchange.objects.parts.world.clock, messagesXml(messages, of));

async function textOfBody(exchange: QueueExchange): Promise<Parsed<string>> {
  const body = await documentBody(exchange, messageBodyBytesMax);
  if (!body.ok) return body;
  const root = await readInTurns(exchange.objects.parts.world.clock, new XmlTreeReader(), body.value);
  return root.ok ? textOfMessage(root.value) : root;
}

export async function putMessage(exchange: QueueExchange): Promise<Answer> {
  const times = parsePutTimes(exchange.target.query, exchange.version);
  if (!times.ok) return times;
  const text = await textOfBody(exchange);
  if (!text.ok) return text;
  const queue = await queueOfRequest(exchange);
  if (!queue.ok) return queue;
  const { visibilityTimeoutSeconds, timeToLiveSeconds } = times.value;
  const value = { queue: queue.value, text: text.value, visibilityTimeoutSeconds, timeToLiveSeconds: BigInt(timeToLiveSeconds) };
  const put = await queuesOf(exchange).execute({ case: "putMessage", value }, "message", exchange.limits());
  return put.ok ? respond(201, xml, await xmlOf(exchange, [shown(put.value)], "put")) : put;
}

export async function getMessages(exchange: QueueExchange): Promise<Answer> {
  const { query } = exchange.target;
  const count = parseMessageCount(query);
  if (!count.ok) return count;
  const visibilityTimeoutSeconds = parseTakeTimeout(query);
  if (!visibilityTimeoutSeconds.ok) return visibilityTimeoutSeconds;
  const queue = await queueOfRequest(exchange);
  if (!queue.ok) return queue;
  const value = { queue: queue.value, count: count.value, visibilityTimeoutSeconds: visibilityTimeoutSeconds.value };
  const messages = await queuesOf(exchange).messages({ case: "getMessages", value }, exchange.limits());
  return messages.ok ? respond(200, uncached, await xmlOf(exchange, messages.value.map(shown), "get")) : messages;
}

export async function peekMessages(exchange: QueueExchange): Promise<Answer> {
  const count = parseMessageCount(exchange.target.query);
  if (!count.ok) return count;
  const queue = await queueOfRequest(exchange);
  if (!queue.ok) return queue;
  const value = { queue: queue.value, count: count.value, ofCopy: isOfCopy(exchange) };
  const messages = await queuesOf(exchange).messages({ case: "peekMessages", value }, exchange.limits());
  return messages.ok ? respond(200, uncached, await xmlOf(exchange, messages.value.map(shown), "peek")) : messages;
}

export async function clearMessages(exchange: QueueExchange): Promise<Answer> {
  const queue = await queueOfRequest(exchange);
  if (!queue.ok) return queue;
  const cleared = await queuesOf(exchange).run({ case: "clearMessages", value: { queue: queue.value } }, exchange.limits());
  return cleared.ok ? respond(204) : cleared;
}

/** Updates a message; a request without a body changes only the time. */
export async function updateMessage(exchange: QueueExchange): Promise<Answer> {
  const popReceipt = parsePopReceipt(exchange.target.query);
  if (!popReceipt.ok) return popReceipt;
  const visibilityTimeoutSeconds = parseUpdateTimeout(exchange.target.query);
  if (!visibilityTimeoutSeconds.ok) return visibilityTimeoutSeconds;
  // A body in chunks has no length, and is refused for that.
  const { "content-length": length = "0", "transfer-encoding": coding } = exchange.headers;
  const hasBody = length !== "0" || coding !== undefined;
  const text = hasBody ? await textOfBody(exchange) : parsed(undefined);
  if (!text.ok) return text;
  const queue = await queueOfRequest(exchange);
  if (!queue.ok) return queue;
  const which = { queue: queue.value, messageId: exchange.target.messageId ?? "", popReceipt: popReceipt.value };
  const change = { visibilityTimeoutSeconds: visibilityTimeoutSeconds.value, ...(text.value === undefined ? {} : { text: text.value }) };
  const value = { ...which, ...change };
  const updated = await queuesOf(exchange).execute({ case: "updateMessage", value }, "message", exchange.limits());
  if (!updated.ok) return updated;
  return respond(204, {
    "x-ms-popreceipt": updated.value.popReceipt,
    "x-ms-time-next-visible": formatRfc1123(Number(updated.value.visibleMs)),
  });
}

export async function deleteMessage(exchange: QueueExchange): Promise<Answer> {
  const popReceipt = parsePopReceipt(exchange.target.query);
  if (!popReceipt.ok) return popReceipt;
  const queue = await queueOfRequest(exchange);
  if (!queue.ok) return queue;
  const { messageId = "" } = exchange.target;
  const value = { queue: queue.value, messageId, popReceipt: popReceipt.value };
  const gone = await queuesOf(exchange).run({ case: "deleteMessage", value }, exchange.limits());
  return gone.ok ? respond(204) : gone;
}
