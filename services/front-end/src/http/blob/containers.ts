/** Operations on an account's containers, and what is asked of the account itself. */
import {
  containerHeaders,
  encodeMarker,
  etagAndTime,
  listContainersXml,
  metadataHeaders,
  parseConditions,
  parseListQuery,
  parseMetadata,
  parsePublicAccess,
} from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import { conditionsToWire } from "../../objects.ts";
import { containerOf } from "../../wire-to-rest.ts";
import { type Answer, respond, serviceEndpoint } from "../exchange.ts";
import { type BlobExchange, containerOfRequest } from "./exchange.ts";

const xml = { "Content-Type": "application/xml" } as const;

export async function listContainers(exchange: BlobExchange): Promise<Answer> {
  const query = parseListQuery(exchange.target.query, "containers");
  if (!query.ok) return query;
  const { prefix, marker, maxResults, include, echo } = query.value;
  const { account } = exchange.target;
  const page = await exchange.objects.listContainers({ account, prefix, marker, maxResults }, exchange.limits());
  if (!page.ok) return page;
  const shown = {
    serviceEndpoint: serviceEndpoint(exchange),
    ...echo,
    includeMetadata: include.has("metadata"),
    version: exchange.version,
  };
  const body = listContainersXml(shown, page.value.containers.map(containerOf), encodeMarker(page.value.nextMarker));
  return respond(200, xml, utf8(body));
}

export async function createContainer(exchange: BlobExchange): Promise<Answer> {
  const metadata = parseMetadata(exchange.headers);
  if (!metadata.ok) return metadata;
  const access = parsePublicAccess(exchange.headers);
  if (!access.ok) return access;
  const { account, container = "" } = exchange.target;
  const value = { account, container, metadata: metadata.value, publicAccess: access.value };
  const made = await exchange.objects.execute({ case: "createContainer", value }, "container", exchange.limits());
  return made.ok ? respond(201, etagAndTime(exchange.version, containerOf(made.value))) : made;
}

export async function getContainerProperties(exchange: BlobExchange): Promise<Answer> {
  const row = await conditionedContainer(exchange);
  return row.ok ? respond(200, containerHeaders(exchange.version, containerOf(row.value))) : row;
}

export async function getContainerMetadata(exchange: BlobExchange): Promise<Answer> {
  const row = await conditionedContainer(exchange);
  if (!row.ok) return row;
  const container = containerOf(row.value);
  return respond(200, { ...etagAndTime(exchange.version, container), ...metadataHeaders(container.metadata) });
}

/** Conditions are looked at where the row is. */
export async function conditionedContainer(exchange: BlobExchange) {
  const conditions = parseConditions(exchange.headers);
  if (!conditions.ok) return conditions;
  if (exchange.anonymous || Object.keys(conditions.value).length === 0) return containerOfRequest(exchange);
  const { account, container = "" } = exchange.target;
  const value = { account, container, conditions: conditionsToWire(conditions.value) };
  return exchange.objects.execute({ case: "getContainer", value }, "container", exchange.limits());
}

export async function setContainerMetadata(exchange: BlobExchange): Promise<Answer> {
  const metadata = parseMetadata(exchange.headers);
  if (!metadata.ok) return metadata;
  const conditions = parseConditions(exchange.headers);
  if (!conditions.ok) return conditions;
  const { account, container = "" } = exchange.target;
  const value = { account, container, metadata: metadata.value, conditions: conditionsToWire(conditions.value) };
  const changed = await exchange.objects.execute({ case: "setContainerMetadata", value }, "container", exchange.limits());
  return changed.ok ? respond(200, etagAndTime(exchange.version, containerOf(changed.value))) : changed;
}

export async function deleteContainer(exchange: BlobExchange): Promise<Answer> {
  const conditions = parseConditions(exchange.headers);
  if (!conditions.ok) return conditions;
  const { account, container = "" } = exchange.target;
  const value = { account, container, conditions: conditionsToWire(conditions.value) };
  const gone = await exchange.objects.execute({ case: "deleteContainer", value }, "done", exchange.limits());
  return gone.ok ? respond(202) : gone;
}

/** Three copies in one place, blobs of every kind of account, no namespace of folders. */
export const getAccountInformation = async (): Promise<Answer> =>
  respond(200, { "x-ms-sku-name": "Standard_LRS", "x-ms-account-kind": "StorageV2", "x-ms-is-hns-enabled": "false" });
