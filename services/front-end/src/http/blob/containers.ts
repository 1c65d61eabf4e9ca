/** Operations on an account's containers, and on the account itself. */
import {
  badHeader,
  containerHeaders,
  containerVersionOf,
  encodeMarkerWithin,
  etagAndTime,
  listContainersXml,
  metadataHeaders,
  notImplemented,
  type Parsed,
  type PublicAccess,
  parseConditions,
  parseContainerScope,
  parseListQuery,
  parseMetadata,
  parsePublicAccess,
  rejected,
} from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import { fromWire, toWire } from "@stamp/wire";
import { conditionsToWire } from "../../objects/wire-conditions.ts";
import { containerOf } from "../../objects/wire-to-rest.ts";
import { type Answer, type Exchange, respond, serviceEndpoint } from "../exchange.ts";
import { type BlobExchange, containerOfRequest, isHierarchical } from "./exchange.ts";

const xml = { "Content-Type": "application/xml" } as const;

export async function listContainers(exchange: BlobExchange): Promise<Answer> {
  const query = parseListQuery(exchange.target.query, "containers", exchange.version);
  if (!query.ok) return query;
  const { prefix, marker, markerStamp, maxResults, include, echo } = query.value;
  const { account } = exchange.target;
  const question = { account, prefix, marker, markerStamp: toWire(markerStamp), maxResults, includeDeleted: include.has("deleted") };
  const page = await exchange.objects.listContainers(question, exchange.limits());
  if (!page.ok) return page;
  const shown = {
    serviceEndpoint: serviceEndpoint(exchange),
    ...echo,
    include,
    version: exchange.version,
  };
  const { containers, nextMarker, nextMarkerStamp } = page.value;
  const body = listContainersXml(shown, containers.map(containerOf), encodeMarkerWithin(nextMarker, fromWire(nextMarkerStamp)));
  return respond(200, xml, utf8(body));
}

/** Returns the public access that the request sets. */
export function publicAccessOf({ headers, account }: BlobExchange): Parsed<PublicAccess> {
  const access = parsePublicAccess(headers);
  if (!access.ok || access.value === "") return access;
  return account.publicAccessForbidden ? rejected("PublicAccessNotPermitted") : access;
}

/** Returns the encryption scope that the request gives its new container or filesystem; refused if the account has none of this name. */
export async function scopeOfNew({ objects, target, headers, version, limits }: Exchange) {
  const scope = parseContainerScope(headers, version);
  if (!scope.ok || scope.value.defaultEncryptionScope === "") return scope;
  const known = await objects.parts.scopes.named(target.account, scope.value.defaultEncryptionScope, limits());
  return known.ok ? scope : known;
}

export async function createContainer(exchange: BlobExchange): Promise<Answer> {
  const metadata = parseMetadata(exchange.headers, exchange.request.rawHeaders);
  if (!metadata.ok) return metadata;
  const access = publicAccessOf(exchange);
  if (!access.ok) return access;
  const { account, container = "" } = exchange.target;
  const scope = await scopeOfNew(exchange);
  if (!scope.ok) return scope;
  const value = { account, container, metadata: metadata.value, publicAccess: access.value, ...scope.value };
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

/** Reads a container under conditions, which are looked at where the row is. */
export async function conditionedContainer(exchange: BlobExchange) {
  const conditions = parseConditions(exchange.headers);
  if (!conditions.ok) return conditions;
  const row = exchange.anonymous || Object.keys(conditions.value).length === 0 ? await containerOfRequest(exchange) : undefined;
  if (row && (!row.ok || Object.keys(conditions.value).length === 0)) return row;
  const { account, container = "" } = exchange.target;
  const value = { account, container, conditions: conditionsToWire(conditions.value) };
  return exchange.objects.execute({ case: "getContainer", value }, "container", exchange.limits());
}

export async function setContainerMetadata(exchange: BlobExchange): Promise<Answer> {
  const metadata = parseMetadata(exchange.headers, exchange.request.rawHeaders);
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
  const gone = await exchange.objects.deleteContainer(value, exchange.limits);
  return gone.ok ? respond(202) : gone;
}

/** Restores a container under its former name, because keys of what was inside have that name. */
export async function restoreContainer(exchange: BlobExchange): Promise<Answer> {
  const { account, container = "" } = exchange.target;
  const name = exchange.headers["x-ms-deleted-container-name"];
  const version = exchange.headers["x-ms-deleted-container-version"];
  if (name === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-deleted-container-name" });
  if (version === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-deleted-container-version" });
  if (name !== container) return notImplemented("Restoring a container under another name");
  const incarnation = containerVersionOf(version);
  if (incarnation === undefined) return badHeader("x-ms-deleted-container-version", version);
  const value = { account, container, incarnation: toWire(incarnation) };
  const restored = await exchange.objects.execute({ case: "restoreContainer", value }, "container", exchange.limits());
  return restored.ok ? respond(201) : restored;
}

/** Answers account information: three copies in one place, blobs of every kind of account. */
export const getAccountInformation = async (exchange: BlobExchange): Promise<Answer> => {
  const kind = { "x-ms-sku-name": "Standard_LRS", "x-ms-account-kind": "StorageV2" };
  return respond(200, { ...kind, "x-ms-is-hns-enabled": String(isHierarchical(exchange)) });
};
