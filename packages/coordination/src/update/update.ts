/**
 * Optimistic updates (article "Managing concurrency"): read with ETag, change, write on the condition that the ETag is still the same, and
 * begin again if it is not.
 *
 * A write whose answer was lost may have happened, and the SDK's own repetition of it then meets its own ETag and is refused. A change that
 * is not idempotent (a counter) would happen twice. So each update leaves an id of its own among the last ones of the blob's metadata or of
 * a property of the entity, and who is refused looks for its id first.
 */
import { randomBytes } from "node:crypto";
import type { TableClient } from "@azure/data-tables";
import type { BlockBlobClient, ContainerClient } from "@azure/storage-blob";
import { RetriesExhaustedError, requireInteger, requireNumber } from "../errors.ts";
import { isConflict, isMissing, isPermanent } from "../storage/classify.ts";
import { inContainer } from "../storage/create.ts";
import { backoffMs } from "../time/backoff.ts";
import { type Clock, sleep, systemClock, TimeoutError, withTimeout } from "../time/clock.ts";

export interface UpdateOptions {
  /** Attempts after the first. Default 25. */
  readonly maxRetries?: number;
  /** Longest time that one attempt may take, in milliseconds. Default 30,000. */
  readonly attemptTimeoutMs?: number;
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

/** Key of the metadata and name of the property with the ids of the last updates. */
const updatesKey = "lastupdates";
/** Number of kept ids: an update whose answer was lost is recognized until this many others have followed. */
const updatesKept = 16;
const delays = { firstMs: 20, maxMs: 2_000 };

const newId = (): string => randomBytes(9).toString("base64url");
const withId = (ids: string | undefined, id: string): string =>
  [id, ...(ids ?? "").split(" ").filter(Boolean)].slice(0, updatesKept).join(" ");
const hasId = (ids: string | undefined, id: string): boolean => (ids ?? "").split(" ").includes(id);

/** Reads, looks for the id, and writes. Returns undefined if another writer was first. */
type Attempt<T> = (id: string, signal: AbortSignal) => Promise<{ readonly value: T } | undefined>;

async function repeated<T>(what: string, options: UpdateOptions, attempt: Attempt<T>): Promise<T> {
  const { maxRetries = 25, attemptTimeoutMs = 30_000, signal = new AbortController().signal, clock = systemClock } = options;
  requireInteger("maxRetries", maxRetries, 0, 10_000);
  requireNumber("attemptTimeoutMs", attemptTimeoutMs, 1, 3_600_000);
  const id = newId();
  let last: unknown;
  for (let tries = 0; tries <= maxRetries; tries++) {
    if (tries > 0) await sleep(clock, backoffMs(clock, delays, tries - 1), signal);
    try {
      const done = await withTimeout(clock, attemptTimeoutMs, signal, (each) => attempt(id, each));
      if (done !== undefined) return done.value;
      last = undefined;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ChangeFailed) throw error.cause;
      if (isPermanent(error) || !isUnanswered(error)) throw error;
      last = error;
    }
  }
  const why = last === undefined ? "each met another writer" : `the last failed: ${last instanceof Error ? last.message : last}`;
  throw new RetriesExhaustedError(`${what} was not updated after ${maxRetries + 1} attempts; ${why}`, { cause: last });
}

/** True for errors of the SDK that leave open whether the write happened, or that a repetition may mend. */
const isUnanswered = (error: unknown): boolean =>
  error instanceof TimeoutError || (error instanceof Error && (error.name === "RestError" || "statusCode" in error));

/** Carries what the caller's `change` threw, which is the caller's even if it is an error of the service. */
class ChangeFailed extends Error {}

async function changed<A, B>(change: (current: A) => B | Promise<B>, current: A): Promise<B> {
  try {
    return await change(current);
  } catch (error) {
    throw new ChangeFailed("change threw", { cause: error });
  }
}

/**
 * Changes a block blob's content. `change` gets the content, or undefined if there is no blob, and returns the new content, or undefined to
 * leave the blob as it is; it may be called several times. HTTP headers and metadata are kept, tags are not. Returns the content that is
 * stored then.
 */
export async function updateBlob(
  container: ContainerClient,
  blobName: string,
  change: (content: Uint8Array | undefined) => Uint8Array | undefined | Promise<Uint8Array | undefined>,
  options: UpdateOptions = {},
): Promise<Uint8Array | undefined> {
  const blob = container.getBlockBlobClient(blobName);
  return await repeated(`blob ${container.containerName}/${blobName}`, options, async (id, signal) => {
    const current = await readBlob(blob, signal);
    if (hasId(current?.metadata[updatesKey], id)) return { value: current?.content };
    const content = await changed(change, current?.content);
    if (content === undefined) return { value: current?.content };
    const conditions = current === undefined ? { ifNoneMatch: "*" } : { ifMatch: current.etag };
    const metadata = { ...current?.metadata, [updatesKey]: withId(current?.metadata[updatesKey], id) };
    const headers = current === undefined ? {} : { blobHTTPHeaders: current.headers };
    try {
      await inContainer(container, signal, () =>
        blob.upload(Buffer.from(content), content.length, { conditions, metadata, ...headers, abortSignal: signal }),
      );
    } catch (error) {
      if (isConflict(error) || (current !== undefined && isMissing(error))) return undefined;
      throw error;
    }
    return { value: content };
  });
}

async function readBlob(blob: BlockBlobClient, signal: AbortSignal) {
  try {
    const response = await blob.download(0, undefined, { abortSignal: signal });
    const chunks: Buffer[] = [];
    for await (const chunk of response.readableStreamBody ?? []) chunks.push(Buffer.from(chunk));
    const { etag = "", metadata = {} } = response;
    const headers = {
      blobContentType: response.contentType,
      blobContentEncoding: response.contentEncoding,
      blobContentLanguage: response.contentLanguage,
      blobContentDisposition: response.contentDisposition,
      blobCacheControl: response.cacheControl,
    };
    const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
    return { content: new Uint8Array(Buffer.concat(chunks)), etag, metadata, headers: given };
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Values of an entity's properties, as @azure/data-tables converts them. */
export type EntityValues = Readonly<Record<string, unknown>>;

/**
 * Changes an entity. `change` gets its properties, or undefined if there is no entity, and returns the properties to write, or undefined to
 * leave the entity as it is; it may be called several times. Properties that it does not return stay as they are.
 */
export async function updateEntity(
  table: TableClient,
  partitionKey: string,
  rowKey: string,
  change: (entity: EntityValues | undefined) => EntityValues | undefined | Promise<EntityValues | undefined>,
  options: UpdateOptions = {},
): Promise<void> {
  await repeated(`entity ${partitionKey}/${rowKey} of table ${table.tableName}`, options, async (id, signal) => {
    const current = await readEntity(table, partitionKey, rowKey, signal);
    const ids = typeof current?.[updatesKey] === "string" ? current[updatesKey] : undefined;
    if (hasId(ids, id)) return { value: undefined };
    const values = await changed(change, current);
    if (values === undefined) return { value: undefined };
    const entity = { ...values, partitionKey, rowKey, [updatesKey]: withId(ids, id) };
    try {
      if (current === undefined) await createEntity(table, entity, signal);
      else await table.updateEntity(entity, "Merge", { etag: String(current.etag), abortSignal: signal });
    } catch (error) {
      if (isConflict(error) || (current !== undefined && isMissing(error))) return undefined;
      throw error;
    }
    return { value: undefined };
  });
}

async function readEntity(
  table: TableClient,
  partitionKey: string,
  rowKey: string,
  signal: AbortSignal,
): Promise<EntityValues | undefined> {
  try {
    return await table.getEntity(partitionKey, rowKey, { abortSignal: signal });
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

async function createEntity(table: TableClient, entity: { partitionKey: string; rowKey: string }, signal: AbortSignal): Promise<void> {
  try {
    await table.createEntity(entity, { abortSignal: signal });
  } catch (error) {
    if (!isMissing(error)) throw error;
    await table.createTable({ abortSignal: signal });
    await table.createEntity(entity, { abortSignal: signal });
  }
}
