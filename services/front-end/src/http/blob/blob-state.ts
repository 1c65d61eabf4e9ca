/**
 * Operations on a blob apart from its content: snapshots, undeleting, tags, tier, expiry, immutability policy, legal
 * hold.
 */
import {
  encodeMarker,
  etagAndTime,
  formatIsoMicros,
  formatRfc1123,
  foundByTagsXml,
  type Parsed,
  parsed,
  parseExpiry,
  parseListQuery,
  parseMetadata,
  parseTagsXml,
  queryValue,
  rejected,
  requiredImmutability,
  requiredLegalHold,
  requiredTier,
  tagsBytesMax,
  tagsXml,
  writtenHeaders,
} from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import { containerOfWhere, parseWhere } from "@stamp/objects";
import { toWire } from "@stamp/wire";
import { blobOf } from "../../objects/wire-to-rest.ts";
import { documentBody } from "../body.ts";
import { type Answer, respond, serviceEndpoint } from "../exchange.ts";
import { askedBlob, type BlobExchange, containerOfRequest, encryptedAs } from "./exchange.ts";

const xml = { "Content-Type": "application/xml" } as const;

export async function snapshotBlob(exchange: BlobExchange): Promise<Answer> {
  const metadata = parseMetadata(exchange.headers, exchange.request.rawHeaders);
  if (!metadata.ok) return metadata;
  const asked = await askedBlob(exchange);
  if (!asked.ok) return asked;
  const hasMetadata = Object.keys(metadata.value).length > 0;
  const value = { ...asked.value, hasMetadata, metadata: metadata.value };
  const made = await exchange.objects.execute({ case: "snapshotBlob", value }, "blob", exchange.limits());
  if (!made.ok) return made;
  const snapshot = blobOf(made.value);
  return respond(201, {
    ...writtenHeaders(exchange.version, snapshot),
    "x-ms-snapshot": formatIsoMicros(snapshot.snapshotStamp),
    ...encryptedAs(exchange.key, made.value),
  });
}

export async function undeleteBlob(exchange: BlobExchange): Promise<Answer> {
  const asked = await askedBlob(exchange);
  if (!asked.ok) return asked;
  for (;;) {
    const value = { name: asked.value.name };
    const restored = await exchange.objects.execute({ case: "undeleteBlob", value }, "deleted", exchange.limits());
    if (!restored.ok) return restored;
    if (!restored.value.more) return respond(200);
  }
}

export async function setBlobTags(exchange: BlobExchange): Promise<Answer> {
  const body = await documentBody(exchange, tagsBytesMax);
  if (!body.ok) return body;
  const tags = parseTagsXml(body.value);
  if (!tags.ok) return tags;
  const asked = await askedBlob(exchange);
  if (!asked.ok) return asked;
  const value = { ...asked.value, tags: tags.value };
  const changed = await exchange.objects.execute({ case: "setBlobTags", value }, "blob", exchange.limits());
  return changed.ok ? respond(204) : changed;
}

export async function getBlobTags(exchange: BlobExchange): Promise<Answer> {
  const asked = await askedBlob(exchange);
  if (!asked.ok) return asked;
  const value = { ...asked.value, withoutContent: true, withoutKey: true };
  const blob = await exchange.objects.execute({ case: "getBlob", value }, "blob", exchange.limits());
  return blob.ok ? respond(200, xml, utf8(tagsXml(blob.value.tags))) : blob;
}

export async function setBlobTier(exchange: BlobExchange): Promise<Answer> {
  const tier = requiredTier(exchange.headers);
  if (!tier.ok) return tier;
  const asked = await askedBlob(exchange);
  if (!asked.ok) return asked;
  const value = { ...asked.value, tier: tier.value };
  const changed = await exchange.objects.execute({ case: "setBlobTier", value }, "blob", exchange.limits());
  return changed.ok ? respond(200) : changed;
}

export async function setBlobExpiry(exchange: BlobExchange): Promise<Answer> {
  const expiry = parseExpiry(exchange.headers);
  if (!expiry.ok) return expiry;
  const asked = await askedBlob(exchange);
  if (!asked.ok) return asked;
  const value = { ...asked.value, option: expiry.value.option, timeMs: toWire(expiry.value.timeMs) };
  const changed = await exchange.objects.execute({ case: "setBlobExpiry", value }, "blob", exchange.limits());
  return changed.ok ? respond(200, etagAndTime(exchange.version, blobOf(changed.value))) : changed;
}

export async function setBlobImmutabilityPolicy(exchange: BlobExchange): Promise<Answer> {
  const policy = requiredImmutability(exchange.headers);
  if (!policy.ok) return policy;
  const asked = await askedBlob(exchange);
  if (!asked.ok) return asked;
  const { untilMs, mode } = policy.value;
  const value = { ...asked.value, untilMs: toWire(untilMs), mode };
  const changed = await exchange.objects.execute({ case: "setImmutabilityPolicy", value }, "blob", exchange.limits());
  if (!changed.ok) return changed;
  return respond(200, {
    "x-ms-immutability-policy-until-date": formatRfc1123(untilMs),
    "x-ms-immutability-policy-mode": mode.toLowerCase(),
  });
}

export async function deleteBlobImmutabilityPolicy(exchange: BlobExchange): Promise<Answer> {
  const asked = await askedBlob(exchange);
  if (!asked.ok) return asked;
  const changed = await exchange.objects.execute({ case: "deleteImmutabilityPolicy", value: asked.value }, "blob", exchange.limits());
  return changed.ok ? respond(200) : changed;
}

export async function setBlobLegalHold(exchange: BlobExchange): Promise<Answer> {
  const hold = requiredLegalHold(exchange.headers);
  if (!hold.ok) return hold;
  const asked = await askedBlob(exchange);
  if (!asked.ok) return asked;
  const value = { ...asked.value, hold: hold.value };
  const changed = await exchange.objects.execute({ case: "setLegalHold", value }, "blob", exchange.limits());
  return changed.ok ? respond(200, { "x-ms-legal-hold": String(hold.value) }) : changed;
}

interface Search {
  readonly where: string;
  readonly container: string | undefined;
  readonly marker: string;
  readonly maxResults: number;
}

function searchOf(exchange: BlobExchange, kind: "search" | "containerSearch"): Parsed<Search> {
  const { query } = exchange.target;
  const where = queryValue(query, "where");
  if (where === undefined || where.trim() === "") return rejected("MissingRequiredQueryParameter", { QueryParameterName: "where" });
  const expression = parseWhere(where, kind);
  if (!expression.ok) {
    const details = { QueryParameterName: "where", QueryParameterValue: where };
    return rejected("InvalidQueryParameterValue", details, { message: expression.reason });
  }
  const page = parseListQuery(query, "containers", exchange.version);
  if (!page.ok) return page;
  const { marker, maxResults } = page.value;
  return parsed({ where, container: containerOfWhere(expression.where), marker, maxResults });
}

export async function findBlobsByTagsInContainer(exchange: BlobExchange): Promise<Answer> {
  const search = searchOf(exchange, "containerSearch");
  if (!search.ok) return search;
  const container = await containerOfRequest(exchange);
  if (!container.ok) return container;
  const { account } = exchange.target;
  const page = await exchange.objects.findBlobs(account, container.value, search.value, exchange.limits());
  return page.ok ? found(exchange, search.value, page.value.found, page.value.nextMarker) : page;
}

/** Searches container after container; a marker is the container's name with the position in it. */
export async function findBlobsByTags(exchange: BlobExchange): Promise<Answer> {
  const search = searchOf(exchange, "search");
  if (!search.ok) return search;
  const page = await exchange.objects.findBlobsInAccount(exchange.target.account, search.value, exchange.limits);
  return page.ok ? found(exchange, search.value, page.value.found, page.value.nextMarker) : page;
}

type Found = Parameters<typeof foundByTagsXml>[2];

const found = (exchange: BlobExchange, { where }: Search, blobs: Found, nextMarker: string): Answer =>
  respond(200, xml, utf8(foundByTagsXml(serviceEndpoint(exchange), where, blobs, encodeMarker(nextMarker))));
