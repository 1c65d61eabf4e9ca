/** Versions and snapshots of a blob, which can be read, made the current one again, and deleted; and a new snapshot. */
import type { BlobClient, ContainerClient } from "@azure/storage-blob";
import type { BlobPast, Page } from "@stamp/console-page";
import type { DataClients } from "./clients.ts";
import { FieldError, type Fields, wordIn } from "./fields.ts";

const pageMax = 500;
const kinds = ["version", "snapshot"] as const;

const containerIn = (clients: DataClients, fields: Fields): Promise<ContainerClient> =>
  clients.container(wordIn(fields, "account"), wordIn(fields, "container"));

const currentIn = (clients: DataClients, fields: Fields): Promise<BlobClient> =>
  clients.blob(wordIn(fields, "account"), wordIn(fields, "container"), wordIn(fields, "name"));

/** Returns a client of the version or snapshot that the fields name, if they name one; else of the blob as it is. */
export function pastOf(client: BlobClient, fields: Fields): BlobClient {
  const { kind, id } = fields;
  if (kind === undefined || kind === "") return client;
  if (!(kinds as readonly unknown[]).includes(kind) || typeof id !== "string" || id === "")
    throw new FieldError("the request names no version and no snapshot: load the page again");
  return kind === "version" ? client.withVersion(id) : client.withSnapshot(id);
}

/** Versions and snapshots of one blob, the oldest first. A listing is in the order of names: those of one blob come one after another. */
export async function blobHistory(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<Page<BlobPast>> {
  const container = await containerIn(clients, fields);
  const name = wordIn(fields, "name");
  const after = fields.after;
  const listed = container.listBlobsFlat({ abortSignal, prefix: name, includeSnapshots: true, includeVersions: true });
  const token = typeof after === "string" && after !== "" ? { continuationToken: after } : {};
  const page = await listed.byPage({ maxPageSize: pageMax, ...token }).next();
  const value = page.done === true ? undefined : page.value;
  const all = value?.segment.blobItems ?? [];
  const items = all.flatMap((item): BlobPast[] => {
    const { snapshot, versionId, isCurrentVersion, properties } = item;
    if (item.name !== name || (snapshot === undefined && (versionId === undefined || isCurrentVersion === true))) return [];
    const [kind, id] = snapshot === undefined ? (["version", versionId ?? ""] as const) : (["snapshot", snapshot] as const);
    return [{ kind, id, bytes: properties.contentLength ?? null, modifiedMs: properties.lastModified?.getTime() ?? null }];
  });
  const isBehind = all.length === 0 || all.at(-1)?.name !== name;
  return { items, next: isBehind || !value?.continuationToken ? null : value.continuationToken };
}

/** Copies a version or snapshot over the blob, which is still as it was shown; absent: the blob is gone, and is made anew. */
export async function restoreBlob(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  const client = await currentIn(clients, fields);
  const past = pastOf(client, fields);
  if (past === client) throw new FieldError("the request names no version and no snapshot: load the page again");
  const copying = await client.beginCopyFromURL(past.url, { abortSignal, conditions: { ifMatch: wordIn(fields, "etag") } });
  // The signal ends the request that begins the copy, not the questions whether it is done.
  const stop = (): void => copying.stopPolling();
  abortSignal.addEventListener("abort", stop, { once: true });
  if (abortSignal.aborted) stop();
  await copying.pollUntilDone().finally(() => abortSignal.removeEventListener("abort", stop));
  return {};
}

export async function deletePast(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  const client = await currentIn(clients, fields);
  const past = pastOf(client, fields);
  if (past === client) throw new FieldError("the request names no version and no snapshot: load the page again");
  await past.delete({ abortSignal });
  return {};
}

export async function makeSnapshot(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  const { snapshot } = await (await currentIn(clients, fields)).createSnapshot({ abortSignal });
  return { id: snapshot ?? "" };
}
