/** Facts about a share that a container does not have: quota, tier, whether its account may have shares at all, and how lists show it. */
import {
  containerVersionText,
  encodeMarkerWithin,
  encodeServiceProperties,
  etagAndTime,
  formatRfc1123,
  type ListedShare,
  metadataHeaders,
  notImplemented,
  type Parsed,
  parsed,
  parseListQuery,
  type ResponseHeaders,
  rejected,
  shareQuotaGibMax,
  sharesXml,
} from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import { clientEntriesOf, shareContainer, shareOfContainer } from "@stamp/objects";
import { type Container, fromWire, toWire } from "@stamp/wire";
import { containerOf } from "../../objects/wire-to-rest.ts";
import { type Answer, respond, serviceEndpoint } from "../exchange.ts";
import type { FileExchange } from "./exchange.ts";

const quotaGib = ":quota";
const tier = ":tier";
const tierChanged = ":tierChanged";
const created = ":created";
const defaultQuotaGib = 5_120;
const defaultTier = "TransactionOptimized";

interface AskedFacts {
  readonly quota: number | undefined;
  readonly tier: string | undefined;
}

/** Entries of the metadata for what a request names. `isNew`: also for what it does not. */
export function entriesOfShare(exchange: FileExchange, asked: AskedFacts, isNew: boolean): Record<string, string> {
  const nowMs = String(exchange.objects.parts.world.clock.wallMs());
  const wanted = isNew ? { quota: asked.quota ?? defaultQuotaGib, tier: asked.tier ?? defaultTier } : asked;
  return {
    ...(wanted.quota === undefined ? {} : { [quotaGib]: String(wanted.quota) }),
    ...(wanted.tier === undefined ? {} : { [tier]: wanted.tier, [tierChanged]: nowMs }),
    ...(isNew ? { [created]: nowMs } : {}),
  };
}

const numberOf = (text: string | undefined, otherwise: number): number => (text === undefined ? otherwise : Number(text));

export const createdMsOf = ({ metadata, lastModifiedMs }: Container): number => numberOf(metadata[created], fromWire(lastModifiedMs));

function listedShare(row: Container): ListedShare {
  const { name, etag, lastModifiedMs, lease, incarnation, deletedMs, remainingRetentionDays } = containerOf(row);
  return {
    name: shareOfContainer(name),
    etag,
    lastModifiedMs,
    quotaGib: Math.min(numberOf(row.metadata[quotaGib], defaultQuotaGib), shareQuotaGibMax),
    tier: row.metadata[tier] ?? defaultTier,
    tierChangedMs: numberOf(row.metadata[tierChanged], lastModifiedMs),
    lease,
    metadata: clientEntriesOf(row.metadata),
    deleted:
      deletedMs === undefined
        ? undefined
        : { version: containerVersionText(incarnation), deletedMs, remainingDays: remainingRetentionDays ?? 0 },
  };
}

export function shareHeaders(exchange: FileExchange, row: Container): ResponseHeaders {
  const share = listedShare(row);
  return {
    ...etagAndTime(exchange.version, share),
    ...metadataHeaders(share.metadata),
    "x-ms-share-quota": String(share.quotaGib),
    "x-ms-access-tier": share.tier,
    "x-ms-access-tier-change-time": formatRfc1123(share.tierChangedMs),
    "x-ms-has-immutability-policy": "false",
    "x-ms-has-legal-hold": "false",
    "x-ms-enabled-protocols": "SMB",
    "x-ms-lease-status": share.lease.status,
    "x-ms-lease-state": share.lease.state,
    ...(share.lease.duration === "" ? {} : { "x-ms-lease-duration": share.lease.duration }),
  };
}

export async function listShares(exchange: FileExchange): Promise<Answer> {
  const { query } = exchange.target;
  const include = (query.get("include") ?? []).join(",").split(",");
  // There are no snapshots, so a list with them is a list without.
  const without = new Map([
    ...query,
    ["include", [include.filter((item) => item.trim().toLowerCase() !== "snapshots").join(",")]] as const,
  ]);
  const asked = parseListQuery(without, "containers", exchange.version);
  if (!asked.ok) return asked;
  const { prefix, marker, markerStamp, maxResults, include: shown, echo } = asked.value;
  const { account } = exchange.target;
  const place = { prefix: shareContainer(prefix), marker: marker === "" ? shareContainer("") : marker, markerStamp: toWire(markerStamp) };
  const question = { account, ...place, maxResults, includeDeleted: shown.has("deleted"), ofShares: true };
  const page = await exchange.objects.listContainers(question, exchange.limits());
  if (!page.ok) return page;
  const { containers, nextMarker, nextMarkerStamp } = page.value;
  const text = sharesXml(
    { serviceEndpoint: serviceEndpoint(exchange), ...echo, withMetadata: shown.has("metadata") },
    containers.map(listedShare),
    encodeMarkerWithin(nextMarker, fromWire(nextMarkerStamp)),
  );
  return respond(200, { "Content-Type": "application/xml" }, utf8(text));
}

/** Marks of the account that meet each other. */
const attemptsMax = 8;

/**
 * True if the account may have shares. Shipments know nothing of trees, so an account with shares is at one stamp: the first share writes the
 * properties of the account's Files service, and an account that has them gets no copy (partition-manager, role-rows.ts).
 */
export async function mayMakeShare(exchange: FileExchange): Promise<Parsed<void>> {
  const { objects, target, accounts } = exchange;
  if (!objects.parts.mayMakeShares()) return notImplemented("Shares below feature level 4 (./stamp upgrade finalize)");
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const row = await objects.execute({ case: "getAccount", value: { account: target.account } }, "account", exchange.limits());
    if (!row.ok) return row;
    const { geoRole, serviceProperties } = row.value;
    if (geoRole !== "") return notImplemented("Shares of an account that has, or had, a copy at another stamp");
    if ((serviceProperties.file ?? "") !== "") return parsed(undefined);
    const value = {
      account: target.account,
      serviceProperties: { file: encodeServiceProperties(exchange.serviceProperties) },
      expectedServiceProperties: { file: "" },
    };
    const marked = await objects.execute({ case: "changeAccount", value }, "account", exchange.limits());
    if (marked.ok) {
      accounts.forget(target.account);
      if (marked.value.geoRole === "") return parsed(undefined);
    } else if (marked.error.code !== "ConditionNotMet") return marked;
  }
  return rejected("ServerBusy");
}
