/**
 * What clients do in a day, with names that are easy to find again, and what must not be found afterwards: such a name at a
 * health door, and a file that others on the machine can read.
 */
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { TableClient } from "@azure/data-tables";
import { BlobServiceClient } from "@azure/storage-blob";
import { QueueServiceClient } from "@azure/storage-queue";

/** In every name below, and in nothing else. */
const mark = "zqx";
const blobBytes = 5 * 1024 * 1024;
/** Enough in a second that one PartitionKey has most of the requests of its server. */
const repeats = 200;

/** `connectionString`: of an account whose name has the mark, too. */
export async function dayOfWork(connectionString: string): Promise<void> {
  const container = BlobServiceClient.fromConnectionString(connectionString).getContainerClient(`${mark}container`);
  await container.create({ metadata: { [`${mark}meta`]: `${mark}value` } });
  const blob = container.getBlockBlobClient(`${mark}/blob`);
  await blob.uploadData(Buffer.alloc(blobBytes, mark), {
    blobHTTPHeaders: { blobContentType: `text/${mark}` },
    tags: { [`${mark}tag`]: mark },
  });
  await blob.createSnapshot();
  await container.getAppendBlobClient(`${mark}log`).create();
  const queue = QueueServiceClient.fromConnectionString(connectionString).getQueueClient(`${mark}queue`);
  await queue.create();
  await queue.sendMessage(`${mark}message`);
  const table = TableClient.fromConnectionString(connectionString, `${mark}table`, { allowInsecureConnection: true });
  await table.createTable();
  const key = { partitionKey: `${mark}partition`, rowKey: `${mark}row` };
  await table.createEntity({ ...key, [`${mark}property`]: mark });
  await Promise.all(Array.from({ length: repeats }, () => table.getEntity(key.partitionKey, key.rowKey)));
  // Refused, with the name in the log.
  await container
    .getBlockBlobClient(`${mark}absent`)
    .download()
    .catch(() => undefined);
}

/** Returns the lines with a name of the day, of everything that the health doors answer. `doors`: host:port of each. */
export async function namesAt(doors: readonly string[]): Promise<string[]> {
  const asked = doors.flatMap((door) => ["/live", "/ready", "/metrics", "/turns", "/"].map((path) => `http://${door}${path}`));
  const answers = await Promise.all(asked.map(async (url) => ({ url, text: await (await fetch(url)).text() })));
  const silent = answers.filter(({ text }) => text === "").map(({ url }) => `${url} answers nothing`);
  return [
    ...silent,
    ...answers.flatMap(({ url, text }) =>
      text
        .split("\n")
        .filter((line) => line.includes(mark))
        .map((line) => `${url}: ${line}`),
    ),
  ];
}

/**
 * Returns what others on the machine can read or enter below a folder, with its mode. Certificates are for everybody;
 * their keys are not.
 */
export function openPathsIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).flatMap((name) => {
    const { mode } = lstatSync(join(folder, name));
    return (mode & 0o077) === 0 || /(^|\/)certs\/(ca|server)\.pem$/.test(name) ? [] : [`${name}: ${(mode & 0o777).toString(8)}`];
  });
}
