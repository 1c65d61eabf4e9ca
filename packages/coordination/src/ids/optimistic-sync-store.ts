/**
 * A small text that many processes change by optimistic concurrency (article "Synchronizing multiple nodes", IOptimisticSyncStore).
 *
 * A version travels with each text that was read, and a write is conditional on that version. (An implementation that fetched the version
 * when it writes would let two processes hand out one range.)
 */
import type { TableClient } from "@azure/data-tables";
import type { BlockBlobClient, ContainerClient } from "@azure/storage-blob";
import { isConflict, isMissing } from "../storage/classify.ts";
import { inContainer } from "../storage/create.ts";

export interface StoredData {
  /** Text that is stored; undefined: nothing was stored yet. */
  readonly data: string | undefined;
  /** Version for `tryOptimisticWrite`; undefined if nothing was stored yet. */
  readonly version: string | undefined;
}

export interface OptimisticSyncStore {
  /** Name of the data's place, for messages. */
  readonly name: string;
  getData(signal: AbortSignal): Promise<StoredData>;
  /** Writes if nothing changed since `version` was read. False if something did. Throws if the outcome is unknown or an error. */
  tryOptimisticWrite(data: string, version: string | undefined, signal: AbortSignal): Promise<boolean>;
}

/** The text is the content of a blob. Container and blob are created by the first write. */
export class BlobOptimisticSyncStore implements OptimisticSyncStore {
  readonly name: string;
  readonly #container: ContainerClient;
  readonly #blob: BlockBlobClient;

  constructor(container: ContainerClient, blobName: string) {
    this.#container = container;
    this.#blob = container.getBlockBlobClient(blobName);
    this.name = `blob ${container.containerName}/${blobName}`;
  }

  async getData(signal: AbortSignal): Promise<StoredData> {
    try {
      const response = await this.#blob.download(0, contentMaxBytes, { abortSignal: signal });
      const chunks: Uint8Array[] = [];
      for await (const chunk of response.readableStreamBody ?? []) chunks.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
      return { data: Buffer.concat(chunks).toString("utf8"), version: response.etag };
    } catch (error) {
      if (isMissing(error)) return { data: undefined, version: undefined };
      // A range of an empty blob: it has no first byte.
      if ((error as { statusCode?: unknown }).statusCode !== 416) throw error;
      const { etag } = await this.#blob.getProperties({ abortSignal: signal });
      return { data: "", version: etag };
    }
  }

  async tryOptimisticWrite(data: string, version: string | undefined, signal: AbortSignal): Promise<boolean> {
    const conditions = version === undefined ? { ifNoneMatch: "*" } : { ifMatch: version };
    const body = Buffer.from(data);
    const write = () => this.#blob.upload(body, body.length, { conditions, abortSignal: signal });
    try {
      await (version === undefined ? inContainer(this.#container, signal, write) : write());
      return true;
    } catch (error) {
      if (isConflict(error) || isMissing(error)) return false;
      throw error;
    }
  }
}

/** Longest content that is read, in bytes. */
const contentMaxBytes = 4096;

/** The text is the property `data` of an entity. Table and entity are created by the first write. */
export class TableOptimisticSyncStore implements OptimisticSyncStore {
  readonly name: string;
  readonly #table: TableClient;
  readonly #key: { readonly partitionKey: string; readonly rowKey: string };

  constructor(table: TableClient, partitionKey: string, rowKey: string) {
    this.#table = table;
    this.#key = { partitionKey, rowKey };
    this.name = `entity ${partitionKey}/${rowKey} of table ${table.tableName}`;
  }

  async getData(signal: AbortSignal): Promise<StoredData> {
    try {
      const { partitionKey, rowKey } = this.#key;
      const entity = await this.#table.getEntity<{ data?: unknown }>(partitionKey, rowKey, { abortSignal: signal });
      return { data: String(entity.data ?? ""), version: entity.etag };
    } catch (error) {
      if (isMissing(error)) return { data: undefined, version: undefined };
      throw error;
    }
  }

  async tryOptimisticWrite(data: string, version: string | undefined, signal: AbortSignal): Promise<boolean> {
    const entity = { ...this.#key, data };
    try {
      if (version !== undefined) {
        await this.#table.updateEntity(entity, "Replace", { etag: version, abortSignal: signal });
        return true;
      }
      try {
        await this.#table.createEntity(entity, { abortSignal: signal });
      } catch (error) {
        if (!isMissing(error)) throw error;
        await this.#table.createTable({ abortSignal: signal });
        await this.#table.createEntity(entity, { abortSignal: signal });
      }
      return true;
    } catch (error) {
      if (isConflict(error) || (version !== undefined && isMissing(error))) return false;
      throw error;
    }
  }
}
