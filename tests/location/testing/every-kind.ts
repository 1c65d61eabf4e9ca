/**
 * An account with everything that is copied to a second stamp, written by the SDK before the copy is begun and afterwards: the copy at the
 * `-secondary` name tells the SDK the same of each object.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { AzureNamedKeyCredential, TableClient, TableServiceClient } from "@azure/data-tables";
import { BlobServiceClient } from "@azure/storage-blob";
import { StorageSharedKeyCredential as QueueCredential, QueueServiceClient } from "@azure/storage-queue";
import { setBlobService, sharedKey, toldOfBlobs, writeContainers } from "./kinds-of-blobs.ts";
import { setQueueService, toldOfQueues, writeQueues } from "./kinds-of-queues.ts";
import { setTableService, type TableNamed, toldOfTables, writeTables } from "./kinds-of-tables.ts";
import { differences, type Told } from "./told.ts";
import { type TwoStamps, untilCopy } from "./two-stamps.ts";

const shownMax = 3;

interface Doors {
  readonly blobs: BlobServiceClient;
  readonly queues: QueueServiceClient;
  readonly tables: TableServiceClient;
  readonly tableNamed: TableNamed;
}

function doorsAt(portBase: number, account: string, host: string, key: string): Doors {
  const credential = new AzureNamedKeyCredential(account, key);
  const address = `http://127.0.0.1:${portBase + 2}/${host}`;
  const options = { allowInsecureConnection: true };
  return {
    blobs: new BlobServiceClient(`http://127.0.0.1:${portBase}/${host}`, sharedKey(account, key)),
    queues: new QueueServiceClient(`http://127.0.0.1:${portBase + 1}/${host}`, new QueueCredential(account, key)),
    tables: new TableServiceClient(address, credential, options),
    tableNamed: (name) => new TableClient(address, name, credential, options),
  };
}

const toldOf = async ({ blobs, queues, tables, tableNamed }: Doors): Promise<Told[]> => [
  ...(await toldOfBlobs(blobs)),
  ...(await toldOfQueues(queues)),
  ...(await toldOfTables(tables, tableNamed)),
];

/** Returns how many facts were compared. */
export async function everyKindIsCopied(two: TwoStamps, account: string): Promise<number> {
  const { data, portBase, ok } = two;
  const north = join(data, "north-1");
  const { keys } = JSON.parse(await ok("account", "create", account, "--location", "north", "--json"));
  await ok("account", "set", account, "--versioning", "on", "--keep-deleted-containers", "3", "--data", north);
  await ok("account", "scope", "create", account, "tenant-1", "--data", north);
  const here = doorsAt(portBase, account, account, keys[0]);
  const there = doorsAt(portBase + 300, account, `${account}-secondary`, keys[0]);
  await setBlobService(here.blobs);
  await setQueueService(here.queues);
  await setTableService(here.tables);
  await writeContainers(here.blobs, "before");
  await writeQueues(here.queues, "before");
  await writeTables(here.tableNamed, "before");
  await ok("geo", "protect", account, "--location", "south", "--with-queues");
  await writeContainers(here.blobs, "beside");
  await writeQueues(here.queues, "beside");
  await writeTables(here.tableNamed, "beside");
  await untilCopy(two, account, "a complete copy", ({ seeded, pendingOperations }) => seeded && pendingOperations === 0);
  const [written, copied] = [await toldOf(here), await toldOf(there)];
  assert.deepEqual(differences(written, copied).slice(0, shownMax), []);
  return written.length;
}
