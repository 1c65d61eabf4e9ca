/** Fills an account with everything that an archive has, and tells what an account has, by the SDKs alone. */
import { createHash } from "node:crypto";
import { type TableClient, TableServiceClient, type TableServiceClientOptions } from "@azure/data-tables";
import { BlobServiceClient, type ContainerClient } from "@azure/storage-blob";
import { QueueServiceClient } from "@azure/storage-queue";

export const names = [
  "plain.txt",
  "a folder/with a + and 100%.txt",
  "Ünïcödé/日本語/😀",
  "back\\slash",
  "question?mark#hash&amp",
  "quote'\"quote",
  "trailing.dot.",
];

const mebibyte = 1024 * 1024;
export const bytesOf = (length: number, seed: number): Buffer => {
  const bytes = Buffer.alloc(length);
  let state = seed + 1;
  for (let at = 0; at < length; at += 4) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    for (let byte = 0; byte < 4 && at + byte < length; byte++) bytes[at + byte] = state >>> (8 * byte);
  }
  return bytes;
};

export const clientsOf = (connectionString: string) => ({
  blobs: BlobServiceClient.fromConnectionString(connectionString),
  queues: QueueServiceClient.fromConnectionString(connectionString),
  tables: TableServiceClient.fromConnectionString(connectionString, { allowInsecureConnection: true }),
});
type Clients = ReturnType<typeof clientsOf>;

export async function fill(clients: Clients, tableClient: (name: string) => TableClient): Promise<void> {
  await clients.blobs.setProperties({
    cors: [{ allowedOrigins: "https://example.org", allowedMethods: "GET", allowedHeaders: "", exposedHeaders: "", maxAgeInSeconds: 60 }],
  });
  const kinds = clients.blobs.getContainerClient("kinds");
  await kinds.create({ metadata: { Owner: "me" } });
  await kinds.setAccessPolicy(undefined, [
    {
      id: "readers",
      accessPolicy: { permissions: "r", startsOn: new Date("2026-01-02T03:04:05Z"), expiresOn: new Date("2030-01-01T00:00:00Z") },
    },
  ]);
  for (const [at, name] of names.entries()) await kinds.getBlockBlobClient(name).upload(bytesOf(100 + at, at), 100 + at);
  await kinds.getBlockBlobClient("empty").upload("", 0);
  await kinds.getBlockBlobClient("described").upload("content", 7, {
    blobHTTPHeaders: {
      blobContentType: "text/plain",
      blobContentEncoding: "gzip",
      blobContentLanguage: "de",
      blobContentDisposition: "attachment",
      blobCacheControl: "no-cache",
    },
    metadata: { Upper: "A", lower: "b" },
    tags: { project: "x", "a b": "" },
    tier: "Cool",
  });
  await kinds.getBlockBlobClient("large").uploadData(bytesOf(9 * mebibyte + 17, 5), { blockSize: mebibyte, metadata: { of: "large" } });
  const append = kinds.getAppendBlobClient("append");
  await append.create({ metadata: { of: "append" } });
  for (const seed of [1, 2, 3]) await append.appendBlock(bytesOf(1_000, seed), 1_000);
  await append.seal();
  const pages = kinds.getPageBlobClient("pages");
  await pages.create(68 * mebibyte, { blobSequenceNumber: 7 });
  await pages.uploadPages(bytesOf(1_024, 8), 512, 1_024);
  await pages.uploadPages(bytesOf(512, 9), 66 * mebibyte, 512);
  await fillHistory(clients.blobs.getContainerClient("history"));
  await clients.blobs.createContainer("without-blobs", { metadata: { none: "here" } });
  await fillOthers(clients, tableClient);
}

async function fillHistory(history: ContainerClient): Promise<void> {
  await history.create();
  const blob = history.getBlockBlobClient("snapshots");
  for (const text of ["one", "two"]) {
    await blob.upload(text, text.length, { metadata: { at: text } });
    await blob.createSnapshot();
  }
  await blob.upload("three", 5);
}

/** In an account that keeps versions. */
export async function fillVersions({ blobs }: Clients): Promise<void> {
  const container = blobs.getContainerClient("versions");
  await container.create();
  for (const text of ["1", "22", "333"]) await container.getBlockBlobClient("kept").upload(text, text.length, { metadata: { at: text } });
  for (const text of ["4", "55"]) await container.getBlockBlobClient("deleted").upload(text, text.length);
  await container.getBlockBlobClient("deleted").delete();
}

async function fillOthers({ queues, tables }: Clients, tableClient: (name: string) => TableClient): Promise<void> {
  await tables.createTable("Everything");
  const table = tableClient("Everything");
  await table.setAccessPolicy([{ id: "all", accessPolicy: { permission: "raud", expiry: new Date("2030-01-01T00:00:00Z") } }]);
  await table.createEntity({
    partitionKey: "a'b",
    rowKey: "ü %+&=",
    text: "Grüße 😀 \u0001",
    empty: "",
    flag: true,
    int: 42,
    long: { type: "Int64", value: "9007199254740993" },
    wholeDouble: { type: "Double", value: "5" },
    double: 0.1,
    notANumber: { type: "Double", value: "NaN" },
    time: { type: "DateTime", value: "2026-11-29T10:11:12.1234567Z" },
    guid: { type: "Guid", value: "11111111-2222-3333-4444-555555555555" },
    binary: new Uint8Array([0, 1, 255]),
  });
  for (let partition = 0; partition < 4; partition++)
    for (let row = 0; row < 30; row++) await table.createEntity({ partitionKey: `p${partition}`, rowKey: `r${row}`, row });
  await tables.createTable("EmptyTable");
  const jobs = queues.getQueueClient("jobs");
  await jobs.create({ metadata: { kind: "work" } });
  for (let at = 0; at < 70; at++) await jobs.sendMessage(`<job ${at}> & more`, { messageTimeToLive: at % 2 === 0 ? -1 : 86_400 });
  await queues.getQueueClient("idle").create();
}

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Everything that a copy of the account has in common with it. */
export async function contentOf(clients: Clients, connectionString: string): Promise<readonly object[]> {
  const { tables } = clients;
  const found: object[] = [(await clients.blobs.getProperties()).cors ?? []];
  for await (const { name, metadata, properties } of clients.blobs.listContainers({ includeMetadata: true })) {
    const container = clients.blobs.getContainerClient(name);
    found.push({ name, metadata, access: properties.publicAccess, policies: (await container.getAccessPolicy()).signedIdentifiers });
    for await (const blob of container.listBlobsFlat({
      includeMetadata: true,
      includeTags: true,
      includeSnapshots: true,
      includeVersions: true,
    }))
      found.push(await blobContent(container, blob));
  }
  const { TableClient } = await import("@azure/data-tables");
  // The text of the service: the SDK shows a Double without a fraction as an Int32.
  const additionalPolicies: TableServiceClientOptions["additionalPolicies"] = [
    {
      position: "perRetry",
      policy: {
        name: "texts",
        async sendRequest(request, next) {
          const answer = await next(request);
          if (!request.url.includes("comp=acl"))
            found.push({ text: answer.bodyAsText?.replaceAll(/"(odata\.etag|Timestamp|odata\.metadata)":"(?:[^"\\]|\\.)*",?/g, "") });
          return answer;
        },
      },
    },
  ];
  for await (const { name = "" } of tables.listTables()) {
    const table = TableClient.fromConnectionString(connectionString, name, { allowInsecureConnection: true, additionalPolicies });
    found.push({ name, policies: await table.getAccessPolicy().then((policies) => [...policies]) });
    for await (const _entity of table.listEntities({ disableTypeConversion: true }));
  }
  for await (const { name, metadata } of clients.queues.listQueues({ includeMetadata: true })) {
    const queue = clients.queues.getQueueClient(name);
    const { approximateMessagesCount } = await queue.getProperties();
    const { peekedMessageItems } = await queue.peekMessages({ numberOfMessages: 32 });
    const messages = peekedMessageItems.map(({ messageText, expiresOn }) => [messageText, expiresOn.getUTCFullYear() > 9_000]);
    found.push({ name, metadata, approximateMessagesCount, messages });
  }
  return found;
}

type Listed = ReturnType<ContainerClient["listBlobsFlat"]> extends AsyncIterableIterator<infer T> ? T : never;

async function blobContent(
  container: ContainerClient,
  { name, snapshot, versionId, isCurrentVersion, properties, metadata, tags }: Listed,
) {
  const plain = container.getBlobClient(name);
  const isSnapshot = snapshot !== undefined && snapshot !== "";
  const isVersion = versionId !== undefined && isCurrentVersion !== true;
  const client = isSnapshot ? plain.withSnapshot(snapshot) : isVersion ? plain.withVersion(versionId) : plain;
  const { blobType, contentLength, contentType, contentEncoding, contentLanguage, contentDisposition, cacheControl } = properties;
  const pages = blobType === "PageBlob" ? (await client.getPageBlobClient().getPageRanges()).pageRange : undefined;
  return {
    name,
    isSnapshot,
    isVersion,
    content: sha256(await client.downloadToBuffer()),
    facts: { blobType, contentLength, contentType, contentEncoding, contentLanguage, contentDisposition, cacheControl },
    tier: properties.accessTierInferred === true ? undefined : properties.accessTier,
    sequence: properties.blobSequenceNumber,
    sealed: properties.isSealed,
    pages,
    metadata,
    tags,
  };
}
