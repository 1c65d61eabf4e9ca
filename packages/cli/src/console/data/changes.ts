/**
 * Changes of what is stored, by path. The page sends the fields as JSON; each change is one line of the audit log.
 *
 * Invariants:
 * - A change of a thing that the page showed is done only if the thing is still as it was shown: its ETag goes along. Containers, tables and queues have
 *   none that the service compares.
 * - The audit log names what was changed, never content: no metadata, values of properties, texts of messages, signatures.
 */
import type { BlobClient } from "@azure/storage-blob";
import type { QueueClient } from "@azure/storage-queue";
import { deletePast, makeSnapshot, restoreBlob } from "./blob-history.ts";
import type { DataClients } from "./clients.ts";
import { deleteEntity, importEntities, putEntity } from "./entities/entity-changes.ts";
import { FieldError, type Fields, listIn, shown, textIn, wordIn } from "./fields.ts";
import { createContainer, createQueue, createTable, deleteContainer, deleteQueue, deleteTable } from "./make-remove.ts";
import { makeSas } from "./sas.ts";
import { commitBlob } from "./uploads.ts";

/** Makes one change. The signal is aborted when it is late. */
export type Change = (clients: DataClients, fields: Fields, abortSignal: AbortSignal) => Promise<object>;

/** The changes by path. */
export const changes: Readonly<Record<string, Change>> = {
  "/api/delete-blob": deleteBlob,
  "/api/undelete-blob": undeleteBlob,
  "/api/set-metadata": setMetadata,
  "/api/set-tags": setTags,
  "/api/commit-blob": commitBlob,
  "/api/put-entity": putEntity,
  "/api/delete-entity": deleteEntity,
  "/api/import-entities": importEntities,
  "/api/put-message": putMessage,
  "/api/take-message": takeMessage,
  "/api/clear-queue": clearQueue,
  "/api/make-sas": makeSas,
  "/api/make-snapshot": makeSnapshot,
  "/api/restore-blob": restoreBlob,
  "/api/delete-past": deletePast,
  "/api/create-container": createContainer,
  "/api/delete-container": deleteContainer,
  "/api/create-table": createTable,
  "/api/delete-table": deleteTable,
  "/api/create-queue": createQueue,
  "/api/delete-queue": deleteQueue,
};

/** Fields that say which thing is changed, and how far the change goes, in the order of the audit log. */
const places = [
  "account",
  "container",
  "table",
  "queue",
  "node",
  "range",
  "server",
  "drill",
  "fault",
  "rule",
  "operation",
  "seconds",
  "forced",
  "to",
  "step",
  "name",
  "kind",
  "id",
  "partitionKey",
  "rowKey",
  "permissions",
  "hours",
  "removed",
  "etag",
  "number",
  "versioning",
  "publicAccess",
  "containerDays",
];

/** No name of a thing is longer. What a page sends beyond that is not logged. */
const placeMax = 1_024;

/** Returns the thing that is changed, for the audit log. */
export function targetOf(fields: Fields): Fields {
  const entries = places.flatMap((place): [string, unknown][] => {
    const value = fields[place];
    if (typeof value === "string") return [[place, value.slice(0, placeMax)]];
    return typeof value === "number" || typeof value === "boolean" ? [[place, value]] : [];
  });
  return Object.fromEntries(entries);
}

/** Metadata of 8 KiB has no more names, each of which has a character at least. */
const pairsMax = 4_096;

/** Pairs as an object of the SDK. Throws if two have one name, of which the SDK would keep the last. */
function recordIn(fields: Fields, isSame: (name: string) => string): Record<string, string> {
  const record: Record<string, string> = Object.create(null);
  const known = new Set<string>();
  for (const { name, value } of listIn(fields, "pairs", ["name", "value"], pairsMax)) {
    if (known.has(isSame(name))) throw new FieldError(`${shown(name)} is there twice: take one out`);
    known.add(isSame(name));
    record[name] = value;
  }
  return record;
}

const blobIn = (clients: DataClients, fields: Fields): Promise<BlobClient> =>
  clients.blob(wordIn(fields, "account"), wordIn(fields, "container"), wordIn(fields, "name"));

const asShown = (fields: Fields): { readonly conditions: { readonly ifMatch: string } } => ({
  conditions: { ifMatch: wordIn(fields, "etag") },
});

async function deleteBlob(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  await (await blobIn(clients, fields)).delete({ abortSignal, deleteSnapshots: "include", ...asShown(fields) });
  return {};
}

async function undeleteBlob(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  await (await blobIn(clients, fields)).undelete({ abortSignal });
  return {};
}

async function setMetadata(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  const metadata = recordIn(fields, (name) => name.toLowerCase());
  for (const [name, value] of Object.entries(metadata)) {
    // Both become a header.
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name))
      throw new FieldError(`a name in metadata has no spaces and only ASCII: write ${shown(name)} so, or use a tag`);
    if (!/^[ -~]*$/.test(value)) throw new FieldError(`a value in metadata has one line and only ASCII: write that of ${shown(name)} so`);
  }
  await (await blobIn(clients, fields)).setMetadata(metadata, { abortSignal, ...asShown(fields) });
  return {};
}

async function setTags(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  await (await blobIn(clients, fields)).setTags(
    recordIn(fields, (name) => name),
    { abortSignal },
  );
  return {};
}

const queueIn = (clients: DataClients, fields: Fields): Promise<QueueClient> =>
  clients.queue(wordIn(fields, "account"), wordIn(fields, "queue"));

async function putMessage(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  await (await queueIn(clients, fields)).sendMessage(textIn(fields, "text"), { abortSignal });
  return {};
}

/** Takes the message at the front off the queue, and returns its text; null if none is visible. */
async function takeMessage(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  const queue = await queueIn(clients, fields);
  const [message] = (await queue.receiveMessages({ abortSignal, numberOfMessages: 1 })).receivedMessageItems;
  if (message === undefined) return { text: null };
  await queue.deleteMessage(message.messageId, message.popReceipt, { abortSignal });
  return { text: message.messageText };
}

async function clearQueue(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  await (await queueIn(clients, fields)).clearMessages({ abortSignal });
  return {};
}
