/** A request of the Blob service whose operation is known. */
import {
  type BlobOperationName,
  type BlobResource,
  behaves,
  blobOperations,
  type CustomerKey,
  type Parsed,
  parseConditions,
  parsed,
  parseStamps,
  type ResponseHeaders,
  rejected,
  requestEncryptedHeaders,
  restError,
  type Target,
  uncombined,
} from "@stamp/azure-rest";
import { type Blob, type Container, toWire } from "@stamp/wire";
import { type ContentKey, underKey } from "../../accounts/content-key.ts";
import type { BlobAddress, LocatedBlob } from "../../objects/objects.ts";
import { conditionsToWire, type WireConditions } from "../../objects/wire-conditions.ts";
import type { Answer, Exchange } from "../exchange.ts";

export interface BlobExchange extends Exchange {
  readonly target: Target & BlobResource;
  readonly operation: BlobOperationName;
  /** Key of the content that the request writes; of what it reads, only one that it brings. */
  readonly key: ContentKey | undefined;
  /** Key that it brings for the content of the blob that is copied from. */
  readonly sourceKey: CustomerKey | undefined;
  /** Answer of `containerOfRequest` for this request. */
  readonly containerRow: Promise<Parsed<Container>> | undefined;
}

export type BlobOperationHandler = (exchange: BlobExchange) => Promise<Answer>;

const isPublicFor = (needs: "blob" | "container", publicAccess: string): boolean => publicAccess === "container" || publicAccess === needs;

/** The container of the request, by a read of its row that is sent now or later. */
export const containerOfRequest = (exchange: BlobExchange): Promise<Parsed<Container>> => exchange.containerRow ?? readContainer(exchange);

async function readContainer(exchange: BlobExchange): Promise<Parsed<Container>> {
  const { account, container = "$root" } = exchange.target;
  const row = await exchange.objects.container(account, container, exchange.limits());
  if (!exchange.anonymous) return row;
  const needs = exchange.access.publicFor;
  const allowed = row.ok && needs !== undefined && isPublicFor(needs, row.value.publicAccess);
  // Strangers are not told whether it is there.
  if (row.ok ? allowed : row.error.status >= 500) return row;
  return { ok: false, error: restError("ResourceNotFound") };
}

/** The blob, or the snapshot or version that is named. */
export async function blobOfRequest(exchange: BlobExchange): Promise<Parsed<LocatedBlob>> {
  const stamps = parseStamps(exchange.target.query);
  if (!stamps.ok) return stamps;
  const { snapshotStamp, versionStamp } = stamps.value;
  if ((snapshotStamp > 0 || versionStamp > 0) && !blobOperations[exchange.operation].ofStates) return rejected("InvalidOperation");
  const container = await containerOfRequest(exchange);
  if (!container.ok) return container;
  const { account, container: name = "$root", blob = "" } = exchange.target;
  const address: BlobAddress = { account, container: name, blob };
  const located = { snapshotStamp: toWire(snapshotStamp), versionStamp: toWire(versionStamp) };
  return parsed(exchange.objects.located(address, container.value, located));
}

/** How an answer tells the key that the request brought, or the scope of the blob, which it did not have to name. */
export const encryptedAs = (key: ContentKey | undefined, { encryptionScope: scope }: Blob): ResponseHeaders =>
  requestEncryptedHeaders(key ?? (scope === undefined ? undefined : { scope }));

export interface AskedBlob {
  readonly name: LocatedBlob;
  readonly conditions: WireConditions;
}

/** Tags have no ETag: conditions on them are the blob's, under names of their own. */
const ofTags: ReadonlySet<BlobOperationName> = new Set(["GetBlobTags", "SetBlobTags"]);

/** Reads that combine conditions, since 2013-08-15. */
const combining: ReadonlySet<BlobOperationName> = new Set(["GetBlob", "GetBlobProperties"]);

/** Returns the blob of the request and its conditions. */
export async function askedBlob(exchange: BlobExchange): Promise<Parsed<AskedBlob>> {
  const said = parseConditions(exchange.headers, ofTags.has(exchange.operation) ? "x-ms-blob-" : "");
  const combines = behaves(exchange.version, "combinedConditions") || !combining.has(exchange.operation);
  const conditions = !said.ok || combines ? said : uncombined(said.value);
  if (!conditions.ok) return conditions;
  const name = await blobOfRequest(exchange);
  return name.ok ? parsed({ name: name.value, conditions: underKey(exchange.key, conditionsToWire(conditions.value)) }) : name;
}
