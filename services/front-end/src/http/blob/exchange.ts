/** A request of the Blob service whose operation is known. */
import {
  type BlobOperationName,
  type BlobResource,
  behavesAs,
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
  withoutSlashes,
} from "@stamp/azure-rest";
import type { HeldEntry } from "@stamp/objects";
import { resolve } from "@stamp/tree";
import { type Blob, type Container, fromWire, toWire } from "@stamp/wire";
import { type ContentKey, underKey } from "../../accounts/content-key.ts";
import type { BlobAddress, LocatedBlob } from "../../objects/objects.ts";
import { conditionsToWire, type WireConditions } from "../../objects/wire-conditions.ts";
import { treeError } from "../dfs/refusals.ts";
import { runInTree } from "../dfs/run.ts";
import type { Answer, Exchange } from "../exchange.ts";

export interface BlobExchange extends Exchange {
  readonly target: Target & BlobResource;
  readonly operation: BlobOperationName;
  /** Key of the content that the request writes; of what it reads, only one that it brings. */
  readonly key: ContentKey | undefined;
  /** Key that the request brings for the source's content. */
  readonly sourceKey: CustomerKey | undefined;
  /** Answer of `containerOfRequest` for this request. */
  readonly containerRow: Promise<Parsed<Container>> | undefined;
  /** Set by `blobOfRequest` in an account with a hierarchical namespace: what the path names. */
  readonly inTree?: { held?: HeldEntry; pathAccess?: string | undefined };
}

export const isHierarchical = ({ account }: Pick<Exchange, "account">): boolean => account.serviceProperties.blob.hierarchicalNamespace;

export const withContainerRow = (exchange: BlobExchange, row: Container): BlobExchange => ({
  ...exchange,
  containerRow: Promise.resolve(parsed(row)),
});

export type BlobOperationHandler = (exchange: BlobExchange) => Promise<Answer>;

const isPublicFor = (needs: "blob" | "container", publicAccess: string): boolean => publicAccess === "container" || publicAccess === needs;

/** Returns the container of the request, by a read of its row that is sent now or later. */
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

/** Returns the blob, or the named snapshot or version. */
export async function blobOfRequest(exchange: BlobExchange): Promise<Parsed<LocatedBlob>> {
  const stamps = parseStamps(exchange.target.query);
  if (!stamps.ok) return stamps;
  const { snapshotStamp, versionStamp } = stamps.value;
  if ((snapshotStamp > 0 || versionStamp > 0) && !blobOperations[exchange.operation].ofStates) return rejected("InvalidOperation");
  const container = await containerOfRequest(exchange);
  if (!container.ok) return container;
  const { account, container: name = "$root", blob = "" } = exchange.target;
  if (isHierarchical(exchange)) {
    // Files have no snapshots and no versions: none of them is ever there.
    if (snapshotStamp > 0 || versionStamp > 0) return rejected("BlobNotFound");
    return fileOfRequest(exchange, container.value, blob);
  }
  const address: BlobAddress = { account, container: name, blob };
  const located = { snapshotStamp: toWire(snapshotStamp), versionStamp: toWire(versionStamp) };
  return parsed(exchange.objects.located(address, container.value, located));
}

/** Returns the blob of the file or directory that the path names: its id is the blob's name. */
async function fileOfRequest(exchange: BlobExchange, container: Container, path: string): Promise<Parsed<LocatedBlob>> {
  const { objects, target } = exchange;
  const tree = { account: target.account, filesystem: container.name, incarnation: fromWire(container.incarnation) };
  const names = withoutSlashes(path).split("/");
  const found = await runInTree(exchange, tree, (context) => resolve(context, names));
  if (!found.ok) {
    const isAbsent = found.refusal === "notFound" || found.refusal === "notDirectory";
    return { ok: false, error: isAbsent ? restError("BlobNotFound") : treeError(found) };
  }
  const held = found.value.at(-1)?.held;
  if (!held) return rejected("BlobNotFound");
  if (exchange.inTree) exchange.inTree.held = held;
  return parsed(objects.located({ account: target.account, container: container.name, blob: held.id }, container));
}

/** Returns headers that name the key of the request, or the scope of the blob, which a request need not name. */
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

/** Returns the blob and the conditions of the request. */
export async function askedBlob(exchange: BlobExchange): Promise<Parsed<AskedBlob>> {
  const said = parseConditions(exchange.headers, ofTags.has(exchange.operation) ? "x-ms-blob-" : "");
  const combines = behavesAs(exchange.version, "combinedConditions") || !combining.has(exchange.operation);
  const conditions = !said.ok || combines ? said : uncombined(said.value);
  if (!conditions.ok) return conditions;
  const name = await blobOfRequest(exchange);
  return name.ok ? parsed({ name: name.value, conditions: underKey(exchange.key, conditionsToWire(conditions.value)) }) : name;
}
