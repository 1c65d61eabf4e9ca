/** Answers for the view "Data", by path: accounts, containers, blobs, tables, entities, queues and messages, in pages of the service. */

import type { BlobClient } from "@azure/storage-blob";
import { decodeServiceProperties } from "@stamp/azure-rest";
import type {
  AccountDetails,
  AccountRow,
  BlobDetails,
  BlobRow,
  ContainerRow,
  EntityRow,
  MessageRow,
  Named,
  Page,
  QueueRow,
  Value,
} from "@stamp/console-page";
import { usagePage } from "../../accounts/usage.ts";
import { blobHistory } from "./blob-history.ts";
import type { DataClients } from "./clients.ts";
import { blocksThere } from "./uploads.ts";

const pageMax = 500;
/** The service peeks at no more. */
const messagesMax = 32;

/** An answer at one path: its query, and a signal that is aborted when the answer is late. */
export type DataList = (query: URLSearchParams, abortSignal: AbortSignal) => Promise<unknown>;

/** Returns the answers by path. */
export const dataLists = (clients: DataClients): Readonly<Record<string, DataList>> => ({
  "/api/accounts": (query) => accounts(clients, query),
  "/api/account": (query) => account(clients, query),
  "/api/containers": (query, abortSignal) => containers(clients, query, abortSignal),
  "/api/blobs": (query, abortSignal) => blobs(clients, query, abortSignal),
  "/api/blob": (query, abortSignal) => blob(clients, query, abortSignal),
  "/api/usage": (query, abortSignal) =>
    usagePage(
      clients,
      { account: fieldIn(query, "account"), container: fieldIn(query, "container"), after: query.get("after") ?? "" },
      abortSignal,
    ),
  "/api/blob-past": (query, abortSignal) => blobHistory(clients, Object.fromEntries(query), abortSignal),
  "/api/blocks": (query, abortSignal) => blocksThere(clients, Object.fromEntries(query), abortSignal),
  "/api/tables": (query, abortSignal) => tables(clients, query, abortSignal),
  "/api/entities": (query, abortSignal) => entities(clients, query, abortSignal),
  "/api/queues": (query, abortSignal) => queues(clients, query, abortSignal),
  "/api/messages": (query, abortSignal) => messages(clients, query, abortSignal),
});

/** Throws if the page left the field out. */
export function fieldIn(query: URLSearchParams, name: string): string {
  const value = query.get(name) ?? "";
  if (value === "") throw new Error(`the request names no ${name}`);
  return value;
}

/** Client of the blob that the page names. */
export const blobIn = (clients: DataClients, query: URLSearchParams): Promise<BlobClient> =>
  clients.blob(fieldIn(query, "account"), fieldIn(query, "container"), fieldIn(query, "name"));

/** The first page of an iterator; undefined behind the last. */
const firstOf = async <T>(pages: AsyncIterableIterator<T>): Promise<T | undefined> => {
  const { done, value } = await pages.next();
  return done === true ? undefined : value;
};

/** Where the page of the service begins. */
function pagingOf(query: URLSearchParams): { readonly maxPageSize: number; readonly continuationToken?: string } {
  const after = query.get("after") ?? "";
  return { maxPageSize: pageMax, ...(after === "" ? {} : { continuationToken: after }) };
}

const nextOf = (token: string | undefined): string | null => (token === undefined || token === "" ? null : token);
const timeOf = (time: Date | undefined): number | null => time?.getTime() ?? null;
const pairsOf = (metadata: Readonly<Record<string, string>> | undefined): Named[] =>
  Object.entries(metadata ?? {}).map(([name, value]) => ({ name, value }));

async function accounts(clients: DataClients, query: URLSearchParams): Promise<Page<AccountRow>> {
  const page = await clients.accounts(query.get("after") ?? "");
  return { items: page.accounts.map(({ name, createdMs }) => ({ name, createdMs: Number(createdMs) })), next: nextOf(page.nextMarker) };
}

/** Without its keys. */
async function account(clients: DataClients, query: URLSearchParams): Promise<AccountDetails> {
  const { name, createdMs, serviceProperties, encryptionScopes } = await clients.account(fieldIn(query, "account"));
  const services = (["blob", "queue", "table"] as const).map((service) => ({
    service,
    properties: decodeServiceProperties(serviceProperties[service] ?? ""),
  }));
  const blob = services.find(({ service }) => service === "blob")?.properties;
  if (blob === undefined) throw new Error(`the settings of ${name} are of a newer release: use the console of that release`);
  const { versioning, publicAccessForbidden, containerDeleteRetention, deleteRetention, defaultServiceVersion = "" } = blob;
  const daysOf = ({ enabled, days = 0 }: { readonly enabled: boolean; readonly days?: number }): number => (enabled ? days : 0);
  return {
    name,
    createdMs: Number(createdMs),
    versioning,
    publicAccess: !publicAccessForbidden,
    containerDays: daysOf(containerDeleteRetention),
    blobDays: daysOf(deleteRetention),
    defaultServiceVersion,
    scopes: encryptionScopes.map(({ name: scope, disabled }) => ({ name: scope, value: disabled ? "disabled" : "enabled" })),
    cors: services.flatMap(({ service, properties }) =>
      (properties?.cors ?? []).map(({ allowedOrigins, allowedMethods }) => ({
        name: service,
        value: `${allowedMethods.join(", ")} from ${allowedOrigins.join(", ")}`,
      })),
    ),
  };
}

async function containers(clients: DataClients, query: URLSearchParams, abortSignal: AbortSignal): Promise<Page<ContainerRow>> {
  const service = await clients.blobs(fieldIn(query, "account"));
  const value = await firstOf(service.listContainers({ abortSignal, includeMetadata: true }).byPage(pagingOf(query)));
  const items = (value?.containerItems ?? []).map(({ name, properties, metadata }) => ({
    name,
    modifiedMs: timeOf(properties.lastModified),
    publicAccess: properties.publicAccess ?? "",
    lease: properties.leaseState ?? "",
    metadata: pairsOf(metadata),
  }));
  return { items, next: nextOf(value?.continuationToken) };
}

async function blobs(clients: DataClients, query: URLSearchParams, abortSignal: AbortSignal): Promise<Page<BlobRow>> {
  const container = await clients.container(fieldIn(query, "account"), fieldIn(query, "container"));
  const prefix = query.get("prefix") ?? "";
  const listed = container.listBlobsByHierarchy("/", {
    abortSignal,
    includeDeleted: query.get("deleted") === "yes",
    ...(prefix === "" ? {} : { prefix }),
  });
  const value = await firstOf(listed.byPage(pagingOf(query)));
  const folders = (value?.segment.blobPrefixes ?? []).map(({ name }) => ({ ...noBlob, name, isFolder: true }));
  const files = (value?.segment.blobItems ?? []).map(({ name, deleted, properties }) => ({
    name,
    isFolder: false,
    isDeleted: deleted === true,
    bytes: properties.contentLength ?? null,
    type: properties.blobType ?? "",
    contentType: properties.contentType ?? "",
    modifiedMs: timeOf(properties.lastModified),
  }));
  return { items: [...folders, ...files].sort(byName), next: nextOf(value?.continuationToken) };
}

const noBlob = { isDeleted: false, bytes: null, type: "", contentType: "", modifiedMs: null } as const;
const byName = (one: BlobRow, other: BlobRow): number => (one.name < other.name ? -1 : 1);

async function blob(clients: DataClients, query: URLSearchParams, abortSignal: AbortSignal): Promise<BlobDetails> {
  const client = await blobIn(clients, query);
  const properties = await client.getProperties({ abortSignal });
  const { tags } = (properties.tagCount ?? 0) > 0 ? await client.getTags({ abortSignal }) : { tags: {} };
  const { contentLength, lastModified, createdOn } = properties;
  const written = await writtenMetadata(clients, query, abortSignal);
  const shown: Readonly<Record<string, unknown>> = {
    "Kind of blob": properties.blobType,
    "Content type": properties.contentType,
    "Content encoding": properties.contentEncoding,
    "Content language": properties.contentLanguage,
    "Content disposition": properties.contentDisposition,
    "Cache control": properties.cacheControl,
    ETag: properties.etag,
    MD5: properties.contentMD5 === undefined ? undefined : Buffer.from(properties.contentMD5).toString("base64"),
    Tier: properties.accessTier,
    Version: properties.versionId,
    Lease: properties.leaseState,
    "Encryption scope": properties.encryptionScope,
    "Copied from": properties.copySource,
    "State of the copy": properties.copyStatus,
    "Legal hold": properties.legalHold === true ? "yes" : undefined,
  };
  return {
    etag: written?.etag ?? properties.etag ?? "",
    bytes: contentLength ?? 0,
    modifiedMs: timeOf(lastModified),
    createdMs: timeOf(createdOn),
    properties: Object.entries(shown).flatMap(([name, value]) =>
      value === undefined || value === "" ? [] : [{ name, value: String(value) }],
    ),
    metadata: pairsOf(written?.metadata ?? properties.metadata),
    tags: pairsOf(tags),
  };
}

/**
 * Metadata as it was written, and the ETag of that moment; undefined if no list has the blob. In headers the SDK makes names small and drops
 * empty values: who edits one of the pairs would change the others.
 */
async function writtenMetadata(
  clients: DataClients,
  query: URLSearchParams,
  abortSignal: AbortSignal,
): Promise<{ readonly etag: string; readonly metadata: Record<string, string> } | undefined> {
  const [container, name] = [await clients.container(fieldIn(query, "account"), fieldIn(query, "container")), fieldIn(query, "name")];
  // A name comes before all longer ones that begin with it.
  const listed = container.listBlobsFlat({ abortSignal, prefix: name, includeMetadata: true }).byPage({ maxPageSize: 1 });
  const [first] = (await firstOf(listed))?.segment.blobItems ?? [];
  if (first?.name !== name) return undefined;
  const pairs = Object.entries(first.metadata ?? {}).filter(([, value]) => typeof value === "string");
  return { etag: `"${first.properties.etag.replaceAll('"', "")}"`, metadata: Object.fromEntries(pairs) };
}

async function tables(clients: DataClients, query: URLSearchParams, abortSignal: AbortSignal): Promise<Page<{ readonly name: string }>> {
  const service = await clients.tables(fieldIn(query, "account"));
  const { value = [] } = await service.listTables({ abortSignal }).byPage(pagingOf(query)).next();
  const items = value.map(({ name = "" }: { readonly name?: string }) => ({ name }));
  return { items, next: nextOf(value.continuationToken) };
}

/** A page of entities, with their types. */
export async function entities(clients: DataClients, query: URLSearchParams, abortSignal: AbortSignal): Promise<Page<EntityRow>> {
  const table = await clients.table(fieldIn(query, "account"), fieldIn(query, "table"));
  const filter = query.get("filter") ?? "";
  const options = { abortSignal, disableTypeConversion: true, ...(filter === "" ? {} : { queryOptions: { filter } }) };
  const { value = [] } = await table.listEntities(options).byPage(pagingOf(query)).next();
  return { items: value.map(entityRow), next: nextOf(value.continuationToken) };
}

const notProperties = ["partitionKey", "rowKey", "timestamp", "etag"];

/** Values come with their types, as text: no number loses digits on its way to the page. */
export function entityRow(entity: Readonly<Record<string, unknown>>): EntityRow {
  const properties = Object.entries(entity).filter(([name]) => !notProperties.includes(name) && !name.startsWith("odata."));
  return {
    partitionKey: typedValue(entity.partitionKey).value,
    rowKey: typedValue(entity.rowKey).value,
    timestamp: typedValue(entity.timestamp).value,
    etag: typedValue(entity.etag).value,
    properties: properties.map(([name, value]) => ({ name, ...typedValue(value) })),
  };
}

function typedValue(value: unknown): Value {
  if (typeof value === "object" && value !== null && "value" in value) {
    const { value: inner, type = "String" } = value as { readonly value: unknown; readonly type?: string };
    return { type, value: inner instanceof Uint8Array ? Buffer.from(inner).toString("base64") : String(inner) };
  }
  const type = typeof value === "boolean" ? "Boolean" : typeof value === "number" ? "Double" : "String";
  return { type, value: value === undefined ? "" : String(value) };
}

async function queues(clients: DataClients, query: URLSearchParams, abortSignal: AbortSignal): Promise<Page<QueueRow>> {
  const service = await clients.queues(fieldIn(query, "account"));
  const value = await firstOf(service.listQueues({ abortSignal, includeMetadata: true }).byPage(pagingOf(query)));
  const items = (value?.queueItems ?? []).map(({ name, metadata }) => ({ name, metadata: pairsOf(metadata) }));
  return { items, next: nextOf(value?.continuationToken) };
}

/** The messages at the front, which stay there: nothing is taken, and no count of dequeues rises. */
async function messages(clients: DataClients, query: URLSearchParams, abortSignal: AbortSignal): Promise<Page<MessageRow>> {
  const queue = await clients.queue(fieldIn(query, "account"), fieldIn(query, "queue"));
  const { peekedMessageItems } = await queue.peekMessages({ abortSignal, numberOfMessages: messagesMax });
  const items = peekedMessageItems.map(({ messageId, messageText, dequeueCount, insertedOn, expiresOn }) => ({
    id: messageId,
    text: messageText,
    dequeueCount,
    insertedMs: insertedOn.getTime(),
    expiresMs: expiresOn.getTime(),
  }));
  return { items, next: null };
}
