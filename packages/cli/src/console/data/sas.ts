/** Makes URLs with a shared access signature. The key of the account stays here. */
import type { DataClients } from "./clients.ts";
import { FieldError, type Fields, wholeIn, wordIn } from "./fields.ts";

const hoursMax = 24 * 365;

/** Returns the URL of a blob, container, table or queue that whoever has it may use for a time: with these permissions, and no others. */
export async function makeSas(clients: DataClients, fields: Fields): Promise<object> {
  const account = wordIn(fields, "account");
  const permissions = wordIn(fields, "permissions");
  const hours = wholeIn(fields, "hours", 1, hoursMax);
  const kinds = ["table", "queue", "container"].filter((kind) => fields[kind] !== undefined);
  if (kinds.length !== 1) throw new FieldError("a signature is for one table, queue or container: load the page again");
  const expiresOn = new Date(Date.now() + hours * 3_600_000);
  const url = await { table: tableSas, queue: queueSas, container: blobSas }[kinds[0] as "table"]();
  return { url, expiresMs: expiresOn.getTime() };

  async function tableSas(): Promise<string> {
    // The SDK of tables has no letters, and a signature without permissions would be made without a word.
    if (!/^[raud]+$/.test(permissions)) throw new FieldError("permissions of a table are letters of raud: r, a, u, d");
    return clients.tableSas(account, wordIn(fields, "table"), permissions, expiresOn);
  }
  async function queueSas(): Promise<string> {
    const { QueueSASPermissions } = await import("@azure/storage-queue");
    const queue = await clients.queue(account, wordIn(fields, "queue"));
    return queue.generateSasUrl({ permissions: QueueSASPermissions.parse(permissions), expiresOn });
  }
  async function blobSas(): Promise<string> {
    const sdk = await import("@azure/storage-blob");
    const container = wordIn(fields, "container");
    if (fields.name !== undefined) {
      const blob = await clients.blob(account, container, wordIn(fields, "name"));
      return blob.generateSasUrl({ permissions: sdk.BlobSASPermissions.parse(permissions), expiresOn });
    }
    const client = await clients.container(account, container);
    return client.generateSasUrl({ permissions: sdk.ContainerSASPermissions.parse(permissions), expiresOn });
  }
}
