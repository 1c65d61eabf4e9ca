/** An account at the REST API of a stamp or of another server: clients of the official SDKs, and entities as the API has them. */
import { AzureNamedKeyCredential, TableClient, TableServiceClient, type TableServiceClientOptions } from "@azure/data-tables";
import { BlobServiceClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import { newPipeline, StorageSharedKeyCredential as QueueKeyCredential, QueueServiceClient } from "@azure/storage-queue";
import { EntityDoor } from "./entity-door.ts";
import type { AccountPlace } from "./place.ts";
import { returnPolicy } from "./returns.ts";

/** A stamp in which a process has died answers again within seconds; a server that was stopped gets about a minute. */
const tries = 8;
const longestDelayMs = 15_000;
const retryOptions = { maxTries: tries, retryDelayInMs: 500, maxRetryDelayInMs: longestDelayMs } as const;

export interface AccountDoors {
  readonly place: AccountPlace;
  readonly blobs: BlobServiceClient;
  readonly queues: QueueServiceClient;
  readonly tables: TableServiceClient;
  readonly entities: EntityDoor;
  table(name: string): TableClient;
}

export function accountDoors(place: AccountPlace): AccountDoors {
  const { account, key, urls } = place;
  const credential = new AzureNamedKeyCredential(account, key);
  const tableOptions: TableServiceClientOptions = {
    allowInsecureConnection: true,
    retryOptions: { maxRetries: tries - 1, retryDelayInMs: 500, maxRetryDelayInMs: longestDelayMs },
  };
  const queuePipeline = newPipeline(new QueueKeyCredential(account, key), { retryOptions });
  queuePipeline.factories.push(returnPolicy);
  return {
    place,
    blobs: new BlobServiceClient(urls.blob, new StorageSharedKeyCredential(account, key), { retryOptions }),
    queues: new QueueServiceClient(urls.queue, queuePipeline),
    tables: new TableServiceClient(urls.table, credential, tableOptions),
    entities: new EntityDoor(place),
    table: (name) => new TableClient(urls.table, name, credential, tableOptions),
  };
}
