/** Operations on an account's queues. */
import { encodeMarker, listQueuesXml, metadataHeaders, parseListQuery, parseMetadata } from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import { countMessages, executeOnQueue, listQueues as listOverRanges, queueRow } from "../../queues.ts";
import { type Answer, respond, serviceEndpoint } from "../exchange.ts";
import { addressOf, type QueueExchange } from "./exchange.ts";

const xml = { "Content-Type": "application/xml" } as const;

export async function listQueues(exchange: QueueExchange): Promise<Answer> {
  const query = parseListQuery(exchange.target.query, "queues");
  if (!query.ok) return query;
  const { prefix, marker, maxResults, include, echo } = query.value;
  const { account } = exchange.target;
  const page = await listOverRanges(exchange.objects, { account, prefix, marker, maxResults }, exchange.limits());
  if (!page.ok) return page;
  const shown = { serviceEndpoint: serviceEndpoint(exchange), ...echo, includeMetadata: include.has("metadata") };
  return respond(200, xml, utf8(listQueuesXml(shown, page.value.queues, encodeMarker(page.value.nextMarker))));
}

/** 204: it was there, with this metadata. */
export async function createQueue(exchange: QueueExchange): Promise<Answer> {
  const metadata = parseMetadata(exchange.headers);
  if (!metadata.ok) return metadata;
  const value = { ...addressOf(exchange), metadata: metadata.value };
  const made = await executeOnQueue(exchange.objects, { case: "createQueue", value }, "queue", exchange.limits());
  return made.ok ? respond(made.value.created ? 201 : 204) : made;
}

export async function deleteQueue(exchange: QueueExchange): Promise<Answer> {
  const value = { kind: { case: "deleteQueue", value: addressOf(exchange) } } as const;
  const gone = await exchange.objects.execute({ case: "queue", value }, "done", exchange.limits());
  return gone.ok ? respond(204) : gone;
}

export async function getQueueMetadata(exchange: QueueExchange): Promise<Answer> {
  const address = addressOf(exchange);
  const row = await queueRow(exchange.objects, address, exchange.limits());
  if (!row.ok) return row;
  const { incarnation, metadata } = row.value;
  const count = await countMessages(exchange.objects, { ...address, incarnation }, exchange.limits());
  if (!count.ok) return count;
  return respond(200, { "x-ms-approximate-messages-count": String(count.value), ...metadataHeaders(metadata) });
}

export async function setQueueMetadata(exchange: QueueExchange): Promise<Answer> {
  const metadata = parseMetadata(exchange.headers);
  if (!metadata.ok) return metadata;
  const value = { ...addressOf(exchange), metadata: metadata.value };
  const changed = await executeOnQueue(exchange.objects, { case: "setQueueMetadata", value }, "queue", exchange.limits());
  return changed.ok ? respond(204) : changed;
}
