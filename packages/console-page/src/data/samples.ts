/** Samples of code that use a URL with a signature, for people who share one. */

export type Shared = "blob" | "container" | "table" | "queue";

export interface Sample {
  readonly title: string;
  readonly text: string;
}

/** Returns samples that read: content of a blob, names in a container, entities of a table, messages at the front of a queue. */
export function samplesOf(kind: Shared, url: string): readonly Sample[] {
  const [base = "", query = ""] = url.split("?");
  const quoted = JSON.stringify(url);
  const table = JSON.stringify(base.slice(base.lastIndexOf("/") + 1));
  const service = JSON.stringify(base.slice(0, base.lastIndexOf("/")));
  const [curl, python, javascript] = {
    blob: [
      `curl ${shell(url)}`,
      `from azure.storage.blob import BlobClient\nprint(BlobClient.from_blob_url(${quoted}).download_blob().readall())`,
      `import { BlobClient } from "@azure/storage-blob";\nconsole.log(await new BlobClient(${quoted}).downloadToBuffer());`,
    ],
    container: [
      `curl ${shell(`${url}&restype=container&comp=list`)}`,
      `from azure.storage.blob import ContainerClient\nfor name in ContainerClient.from_container_url(${quoted}).list_blob_names():\n    print(name)`,
      `import { ContainerClient } from "@azure/storage-blob";\nfor await (const { name } of new ContainerClient(${quoted}).listBlobsFlat()) console.log(name);`,
    ],
    table: [
      `curl -H 'Accept: application/json;odata=nometadata' ${shell(`${base}()?${query}`)}`,
      `from azure.core.credentials import AzureSasCredential\nfrom azure.data.tables import TableClient\ntable = TableClient(${service}, ${table}, credential=AzureSasCredential(${JSON.stringify(query)}))\nfor entity in table.list_entities():\n    print(entity)`,
      `import { AzureSASCredential, TableClient } from "@azure/data-tables";\nconst table = new TableClient(${service}, ${table}, new AzureSASCredential(${JSON.stringify(query)}), { allowInsecureConnection: true });\nfor await (const entity of table.listEntities()) console.log(entity);`,
    ],
    queue: [
      `curl ${shell(`${base}/messages?peekonly=true&${query}`)}`,
      `from azure.storage.queue import QueueClient\nprint(QueueClient.from_queue_url(${quoted}).peek_messages())`,
      `import { QueueClient } from "@azure/storage-queue";\nconsole.log((await new QueueClient(${quoted}).peekMessages()).peekedMessageItems);`,
    ],
  }[kind] as [string, string, string];
  return [
    { title: "curl", text: curl },
    { title: "Python", text: python },
    { title: "JavaScript", text: javascript },
  ];
}

/** A word of a shell. The SDKs leave quotes in URLs as they are, and names of blobs are those of strangers. */
const shell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
