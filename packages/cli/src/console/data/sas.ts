/** Makes URLs with a shared access signature. The key of the account stays here. */
import type { DataClients } from "./clients.ts";
import { type Fields, wordIn } from "./fields.ts";

const hoursMax = 24 * 365;

/** Returns the URL of a blob, container, table or queue that whoever has it may use for a time: with these permissions, and no others. */
export async function makeSas(clients: DataClients, fields: Fields): Promise<object> {
  const account = wordIn(fields, "account");
  const permissions = wordIn(fields, "permissions");
  const hours = Number(fields.hours);
  if (!Number.isInteger(hours) || hours < 1 || hours > hoursMax) throw new Error(`a signature lasts 1 to ${hoursMax} whole hours`);
  const expiresOn = new Date(Date.now() + hours * 3_600_000);
  if (typeof fields.table === "string")
    return { url: await clients.tableSas(account, fields.table, permissions, expiresOn), expiresMs: expiresOn.getTime() };
  const url = typeof fields.queue === "string" ? await queueSas() : await blobSas();
  return { url, expiresMs: expiresOn.getTime() };

  async function queueSas(): Promise<string> {
    const { QueueSASPermissions } = await import("@azure/storage-queue");
    const queue = (await clients.queues(account)).getQueueClient(wordIn(fields, "queue"));
    return queue.generateSasUrl({ permissions: QueueSASPermissions.parse(permissions), expiresOn });
  }
  async function blobSas(): Promise<string> {
    const sdk = await import("@azure/storage-blob");
    const container = wordIn(fields, "container");
    if (fields.name !== undefined) {
      const blob = await clients.blob(account, container, wordIn(fields, "name"));
      return blob.generateSasUrl({ permissions: sdk.BlobSASPermissions.parse(permissions), expiresOn });
    }
    const client = (await clients.blobs(account)).getContainerClient(container);
    return client.generateSasUrl({ permissions: sdk.ContainerSASPermissions.parse(permissions), expiresOn });
  }
}
