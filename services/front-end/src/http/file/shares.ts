/**
 * Shares. A share is a container whose name no client of containers can write (`shareContainer`), so it is created, listed, kept after a
 * deletion and collected as containers are. Quota and tier are entries of its metadata that no client can name (share-facts.ts).
 */
import {
  allParsed,
  badHeader,
  containerVersionOf,
  etagAndTime,
  metadataHeaders,
  notImplemented,
  type Parsed,
  parseMetadata,
  parseQuota,
  parseShareTier,
  parseSignedIdentifiers,
  queryValue,
  rejected,
  shareStatsXml,
  signedIdentifiersXml,
} from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import { clientEntriesOf, doorEntriesOf, shareContainer } from "@stamp/objects";
import { type Container, fromWire, signedIdentifiersFromWire, signedIdentifiersToWire, toWire } from "@stamp/wire";
import type { WireConditions } from "../../objects/wire-conditions.ts";
import { containerOf } from "../../objects/wire-to-rest.ts";
import { leased, leaseOf as leaseRequestOf } from "../blob/leases.ts";
import { documentBody } from "../body.ts";
import { type Answer, respond } from "../exchange.ts";
import { containerName, type FileExchange, leaseOf, shareRow } from "./exchange.ts";
import { entriesOfShare, mayMakeShare, shareHeaders } from "./share-facts.ts";

const xml = { "Content-Type": "application/xml" } as const;
const aclBytesMax = 64 * 1024;
/** Changes of one share that meet each other. */
const attemptsMax = 16;

const unsupported = ["x-ms-enabled-protocols", "x-ms-root-squash"] as const;

function refusedFeature({ headers }: FileExchange): ReturnType<typeof notImplemented> | undefined {
  const name = unsupported.find((one) => headers[one] !== undefined && headers[one]?.toUpperCase() !== "SMB");
  return name === undefined ? undefined : notImplemented(`Shares for NFS (${name})`);
}

export async function createShare(exchange: FileExchange): Promise<Answer> {
  const refused = refusedFeature(exchange);
  if (refused) return refused;
  const asked = allParsed({
    metadata: parseMetadata(exchange.headers, exchange.request.rawHeaders),
    quota: parseQuota(exchange.headers),
    tier: parseShareTier(exchange.headers),
  });
  if (!asked.ok) return asked;
  const may = await mayMakeShare(exchange);
  if (!may.ok) return may;
  const { metadata, quota, tier } = asked.value;
  const entries = { ...metadata, ...entriesOfShare(exchange, { quota, tier }, true) };
  const value = { account: exchange.target.account, container: containerName(exchange), metadata: entries, publicAccess: "" };
  const made = await exchange.objects.execute({ case: "createContainer", value }, "container", exchange.limits());
  return made.ok ? respond(201, etagAndTime(exchange.version, containerOf(made.value))) : made;
}

/** Reads the share, under the request's lease if it names one. */
async function leasedShare(exchange: FileExchange): Promise<Parsed<Container>> {
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  if (lease.value.leaseId === undefined) return shareRow(exchange);
  const value = { account: exchange.target.account, container: containerName(exchange), conditions: lease.value };
  return exchange.objects.execute({ case: "getContainer", value }, "container", exchange.limits());
}

export async function getShareProperties(exchange: FileExchange): Promise<Answer> {
  const row = await leasedShare(exchange);
  return row.ok ? respond(200, shareHeaders(exchange, row.value)) : row;
}

export async function getShareMetadata(exchange: FileExchange): Promise<Answer> {
  const row = await leasedShare(exchange);
  if (!row.ok) return row;
  return respond(200, {
    ...etagAndTime(exchange.version, containerOf(row.value)),
    ...metadataHeaders(clientEntriesOf(row.value.metadata)),
  });
}

/** Writes metadata made of what is there; again if somebody else wrote meanwhile. */
async function changeMetadata(exchange: FileExchange, change: (held: Container) => Record<string, string>): Promise<Answer> {
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const row = await shareRow(exchange);
    if (!row.ok) return row;
    const conditions: WireConditions = { ...lease.value, ifMatch: row.value.etag };
    const value = { account: exchange.target.account, container: row.value.name, metadata: change(row.value), conditions };
    const changed = await exchange.objects.execute({ case: "setContainerMetadata", value }, "container", exchange.limits());
    if (changed.ok) return respond(200, etagAndTime(exchange.version, containerOf(changed.value)));
    if (changed.error.code !== "ConditionNotMet") return changed;
  }
  return rejected("ServerBusy");
}

export async function setShareMetadata(exchange: FileExchange): Promise<Answer> {
  const metadata = parseMetadata(exchange.headers, exchange.request.rawHeaders);
  if (!metadata.ok) return metadata;
  return changeMetadata(exchange, (held) => ({ ...metadata.value, ...doorEntriesOf(held.metadata) }));
}

export async function setShareProperties(exchange: FileExchange): Promise<Answer> {
  const refused = refusedFeature(exchange);
  if (refused) return refused;
  const asked = allParsed({ quota: parseQuota(exchange.headers), tier: parseShareTier(exchange.headers) });
  if (!asked.ok) return asked;
  return changeMetadata(exchange, (held) => ({ ...held.metadata, ...entriesOfShare(exchange, asked.value, false) }));
}

export async function getShareAcl(exchange: FileExchange): Promise<Answer> {
  const row = await leasedShare(exchange);
  if (!row.ok) return row;
  const text = signedIdentifiersXml(signedIdentifiersFromWire(row.value.signedIdentifiers));
  return respond(200, { ...etagAndTime(exchange.version, containerOf(row.value)), ...xml }, utf8(text));
}

export async function setShareAcl(exchange: FileExchange): Promise<Answer> {
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  const body = await documentBody(exchange, aclBytesMax);
  if (!body.ok) return body;
  const identifiers = body.value.length === 0 ? { ok: true as const, value: [] } : parseSignedIdentifiers(body.value, "file");
  if (!identifiers.ok) return identifiers;
  const value = {
    account: exchange.target.account,
    container: containerName(exchange),
    publicAccess: "",
    signedIdentifiers: signedIdentifiersToWire(identifiers.value),
    conditions: lease.value,
  };
  const changed = await exchange.objects.execute({ case: "setContainerAcl", value }, "container", exchange.limits());
  return changed.ok ? respond(200, etagAndTime(exchange.version, containerOf(changed.value))) : changed;
}

/** Sums the lengths of all files: what nobody wrote counts, too. */
export async function getShareStats(exchange: FileExchange): Promise<Answer> {
  const row = await leasedShare(exchange);
  if (!row.ok) return row;
  const question = { prefix: "", delimiter: "", maxResults: 5_000, includeMetadata: false, includeUncommitted: false };
  let usageBytes = 0;
  const limits = exchange.limits();
  for (let marker = ""; ; ) {
    const page = await exchange.objects.listBlobs(exchange.target.account, row.value, { ...question, marker }, limits);
    if (!page.ok) return page;
    for (const { kind } of page.value.entries) if (kind.case === "blob") usageBytes += fromWire(kind.value.contentLengthBytes);
    if (page.value.nextMarker === "") break;
    marker = page.value.nextMarker;
  }
  return respond(200, { ...etagAndTime(exchange.version, containerOf(row.value)), ...xml }, utf8(shareStatsXml(usageBytes)));
}

export async function deleteShare(exchange: FileExchange): Promise<Answer> {
  if (queryValue(exchange.target.query, "sharesnapshot") !== undefined) return notImplemented("Snapshots of shares (sharesnapshot)");
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  const value = { account: exchange.target.account, container: containerName(exchange), conditions: lease.value };
  const gone = await exchange.objects.deleteContainer(value, exchange.limits);
  return gone.ok ? respond(202) : gone;
}

export async function restoreShare(exchange: FileExchange): Promise<Answer> {
  const name = exchange.headers["x-ms-deleted-share-name"];
  const version = exchange.headers["x-ms-deleted-share-version"];
  if (name === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-deleted-share-name" });
  if (version === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-deleted-share-version" });
  if (shareContainer(name) !== containerName(exchange)) return notImplemented("Restoring a share under another name");
  const incarnation = containerVersionOf(version);
  if (incarnation === undefined) return badHeader("x-ms-deleted-share-version", version);
  const value = { account: exchange.target.account, container: containerName(exchange), incarnation: toWire(incarnation) };
  const restored = await exchange.objects.execute({ case: "restoreContainer", value }, "container", exchange.limits());
  return restored.ok ? respond(201, etagAndTime(exchange.version, containerOf(restored.value))) : restored;
}

export async function leaseShare(exchange: FileExchange): Promise<Answer> {
  const lease = leaseRequestOf(exchange);
  if (!lease.ok) return lease;
  const value = { ...lease.value.init, account: exchange.target.account, container: containerName(exchange) };
  const result = await exchange.objects.execute({ case: "leaseContainer", value }, "leased", exchange.limits());
  return result.ok ? leased(exchange, lease.value.asked, result.value) : result;
}
