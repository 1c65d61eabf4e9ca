/**
 * Clients of an account for the console: the official SDKs, as in any program. The account's key comes from the partition manager for each
 * request, so that a key that was rotated ends at once; it stays in this process, and the page never sees it.
 */
import type { TableClient, TableServiceClient, TableServiceClientOptions } from "@azure/data-tables";
import type { BlobClient, BlobServiceClient, ContainerClient } from "@azure/storage-blob";
import type { QueueClient, QueueServiceClient } from "@azure/storage-queue";
import { type Account, Accounts } from "@stamp/wire";
import { type ServiceUrls, urlsOf } from "../../accounts/endpoints.ts";
import type { Transport } from "../../running.ts";
import { exactEntities } from "./entity-answers.ts";

const callTimeoutMs = 3_000;
const accountsInPage = 500;
/** A person waits: an attempt that fails is told, and made again by the person. */
const retryOptions = { maxTries: 1 } as const;

/** Functions that take the name of a container, queue or table throw if nothing can have it: the SDKs would ask for something else. */
export interface DataClients {
  accounts(after: string): Promise<{ readonly accounts: readonly Account[]; readonly nextMarker: string }>;
  /** The account with its keys and settings. */
  account(name: string): Promise<Account>;
  blobs(account: string): Promise<BlobServiceClient>;
  container(account: string, name: string): Promise<ContainerClient>;
  /** Throws if the name has "." or ".." between slashes: the SDK would ask for another blob. */
  blob(account: string, container: string, name: string): Promise<BlobClient>;
  queues(account: string): Promise<QueueServiceClient>;
  queue(account: string, name: string): Promise<QueueClient>;
  tables(account: string): Promise<TableServiceClient>;
  table(account: string, name: string): Promise<TableClient>;
  /** URL of a table with a signature. `permissions`: letters of raud, e.g. "ra". */
  tableSas(account: string, name: string, permissions: string, expiresOn: Date): Promise<string>;
}

export interface StampNow {
  readonly transport: Transport;
  /** Address of the partition manager that leads. Throws if none does. */
  manager(): Promise<string>;
  /** URLs of the services of any account. */
  readonly endpoints: ServiceUrls;
}

/** `stamp`: the stamp that runs now; throws if none answers. The SDKs are loaded with the first request. */
export function dataClients(stamp: () => StampNow): DataClients {
  async function accountOf(name: string): Promise<Account> {
    const { transport, manager } = stamp();
    const found = await transport.client(await manager(), Accounts).get({ account: name }, { timeoutMs: callTimeoutMs });
    if (!found.ok) throw new Error(found.failure.message);
    return found.value;
  }
  async function opened(account: string): Promise<{ readonly key: string; readonly urls: ServiceUrls }> {
    const { name, keys } = await accountOf(account);
    const [key] = keys;
    if (key === undefined) throw new Error(`account ${account} has no key here`);
    return { key, urls: urlsOf(stamp().endpoints, name) };
  }
  async function blobService(account: string): Promise<BlobServiceClient> {
    const { key, urls } = await opened(account);
    const sdk = await import("@azure/storage-blob");
    return new sdk.BlobServiceClient(urls.blob, new sdk.StorageSharedKeyCredential(account, key), { retryOptions });
  }
  async function containerOf(account: string, name: string): Promise<ContainerClient> {
    const plain = plainName("container", name);
    return (await blobService(account)).getContainerClient(plain);
  }
  async function queueService(account: string): Promise<QueueServiceClient> {
    const { key, urls } = await opened(account);
    const sdk = await import("@azure/storage-queue");
    return new sdk.QueueServiceClient(urls.queue, new sdk.StorageSharedKeyCredential(account, key), { retryOptions });
  }
  return {
    async accounts(after) {
      const { transport, manager } = stamp();
      const accounts = transport.client(await manager(), Accounts);
      const page = await accounts.list({ marker: after, maxResults: accountsInPage }, { timeoutMs: callTimeoutMs });
      if (!page.ok) throw new Error(page.failure.message);
      return page.value;
    },
    account: accountOf,
    blobs: blobService,
    async blob(account, container, name) {
      if (name.split("/").some((part) => part === "." || part === ".."))
        throw new Error(`no blob is named ${JSON.stringify(name)}: services of Azure resolve "." and ".." in names`);
      return (await containerOf(account, container)).getBlobClient(name);
    },
    container: containerOf,
    queues: queueService,
    async queue(account, name) {
      const plain = plainName("queue", name);
      return (await queueService(account)).getQueueClient(plain);
    },
    async tables(account) {
      const { key, urls } = await opened(account);
      const sdk = await import("@azure/data-tables");
      return new sdk.TableServiceClient(urls.table, new sdk.AzureNamedKeyCredential(account, key), tableOptions);
    },
    async table(account, name) {
      const plain = plainName("table", name);
      const { key, urls } = await opened(account);
      const sdk = await import("@azure/data-tables");
      return new sdk.TableClient(urls.table, plain, new sdk.AzureNamedKeyCredential(account, key), tableOptions);
    },
    async tableSas(account, name, permissions, expiresOn) {
      const plain = plainName("table", name);
      const { key, urls } = await opened(account);
      const sdk = await import("@azure/data-tables");
      const has = (letter: string): boolean => permissions.includes(letter);
      const may = { query: has("r"), add: has("a"), update: has("u"), delete: has("d") };
      const sas = sdk.generateTableSas(plain, new sdk.AzureNamedKeyCredential(account, key), { permissions: may, expiresOn });
      return `${urls.table.replace(/\/$/, "")}/${plain}?${sas}`;
    },
  };
}

/** Letters, digits, "-" and "$" pass all SDKs unchanged. Whether a name has the rest of its form says the service. */
function plainName(kind: string, name: string): string {
  if (/^[\w$-]{1,63}$/.test(name)) return name;
  throw new Error(`no ${kind} is named ${JSON.stringify(name.slice(0, 100))}: a name has 3 to 63 letters, digits and hyphens`);
}

const tableOptions: TableServiceClientOptions = {
  allowInsecureConnection: true,
  retryOptions: { maxRetries: 0 },
  additionalPolicies: exactEntities,
};
