/** Operations on an account's queues. */
import {
  encodeMarker,
  listQueuesXml,
  metadataHeaders,
  parseListQuery,
  parseMetadata,
  parseSignedIdentifiers,
  signedIdentifiersXml,
} from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import { signedIdentifiersFromWire, signedIdentifiersToWire } from "@stamp/wire";
import { documentBody } from "../body.ts";
import { type Answer, respond, serviceEndpoint } from "../exchange.ts";
import { addressOf, isOfCopy, type QueueExchange, queuesOf } from "./exchange.ts";

const aclBytesMax = 64 * 1024;
const xml = { "Content-Type": "application/xml" } as const;

export async function listQueues(exchange: QueueExchange): Promise<Answer> {
  const query = parseListQuery(exchange.target.query, "queues", exchange.version);
  if (!query.ok) return query;
  const { prefix, marker, maxResults, include, echo } = query.value;
  const { account } = exchange.target;
  const page = await queuesOf(exchange).list({ account, prefix, marker, maxResults }, exchange.limits());
  if (!page.ok) return page;
  const shown = { serviceEndpoint: serviceEndpoint(exchange), ...echo, includeMetadata: include.has("metadata") };
  return respond(200, xml, utf8(listQueuesXml(shown, page.value.queues, encodeMarker(page.value.nextMarker))));
}

/** Creates a queue; answers 204 if it exists with the same metadata. */
export async function createQueue(exchange: QueueExchange): Promise<Answer> {
  const metadata = parseMetadata(exchange.headers, exchange.request.rawHeaders);
  if (!metadata.ok) return metadata;
  const value = { ...addressOf(exchange), metadata: metadata.value };
  const made = await queuesOf(exchange).execute({ case: "createQueue", value }, "queue", exchange.limits());
  return made.ok ? respond(made.value.created ? 201 : 204) : made;
}

export async function deleteQueue(exchange: QueueExchange): Promise<Answer> {
  const gone = await queuesOf(exchange).run({ case: "deleteQueue", value: addressOf(exchange) }, exchange.limits());
  return gone.ok ? respond(204) : gone;
}

export async function getQueueMetadata(exchange: QueueExchange): Promise<Answer> {
  const address = addressOf(exchange);
  const row = await queuesOf(exchange).row(address, exchange.limits());
  if (!row.ok) return row;
  const { incarnation, metadata } = row.value;
  const asked = { queue: { ...address, incarnation }, ofCopy: isOfCopy(exchange) };
  const count = await queuesOf(exchange).count(asked, exchange.limits());
  if (!count.ok) return count;
  return respond(200, { "x-ms-approximate-messages-count": String(count.value), ...metadataHeaders(metadata) });
}

export async function setQueueMetadata(exchange: QueueExchange): Promise<Answer> {
  const metadata = parseMetadata(exchange.headers, exchange.request.rawHeaders);
  if (!metadata.ok) return metadata;
  const value = { ...addressOf(exchange), metadata: metadata.value };
  const changed = await queuesOf(exchange).execute({ case: "setQueueMetadata", value }, "queue", exchange.limits());
  return changed.ok ? respond(204) : changed;
}

export async function getQueueAcl(exchange: QueueExchange): Promise<Answer> {
  const row = await queuesOf(exchange).row(addressOf(exchange), exchange.limits());
  return row.ok ? respond(200, xml, utf8(signedIdentifiersXml(signedIdentifiersFromWire(row.value.signedIdentifiers)))) : row;
}

export async function setQueueAcl(exchange: QueueExchange): Promise<Answer> {
  const body = await documentBody(exchange, aclBytesMax);
  if (!body.ok) return body;
  const identifiers = parseSignedIdentifiers(body.value, "queue");
  if (!identifiers.ok) return identifiers;
  const value = { ...addressOf(exchange), signedIdentifiers: signedIdentifiersToWire(identifiers.value) };
  const changed = await queuesOf(exchange).execute({ case: "setQueueAcl", value }, "queue", exchange.limits());
  return changed.ok ? respond(204) : changed;
}
