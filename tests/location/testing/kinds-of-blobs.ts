/** Blobs and containers of every kind that the SDK can make, and everything that the SDK tells of them. */
import { createHash } from "node:crypto";
import { type BlobClient, type BlobServiceClient, type ContainerClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import { type Told, told } from "./told.ts";

const kib = 1024;
const longMs = 24 * 3_600_000;

const bytesOf = (name: string, lengthBytes: number): Buffer => Buffer.alloc(lengthBytes, createHash("sha512").update(name).digest());

export async function setBlobService(service: BlobServiceClient): Promise<void> {
  await service.setProperties({
    cors: [
      { allowedOrigins: "https://a.example", allowedMethods: "GET,PUT", allowedHeaders: "x-a", exposedHeaders: "x-b", maxAgeInSeconds: 9 },
    ],
    deleteRetentionPolicy: { enabled: true, days: 5 },
    defaultServiceVersion: "2021-12-02",
  });
}

/** Containers: with metadata and stored access policies, public, leased, deleted. Their names begin with `prefix`. */
export async function writeContainers(service: BlobServiceClient, prefix: string): Promise<void> {
  const of = (name: string): ContainerClient => service.getContainerClient(`${prefix}-${name}`);
  await of("things").create({ metadata: { first: "1", second: "of two" } });
  await of("things").setAccessPolicy(undefined, [
    { id: "readers", accessPolicy: { startsOn: new Date(1_700_000_000_000), expiresOn: new Date(1_900_000_000_000), permissions: "rl" } },
    { id: "writers", accessPolicy: { expiresOn: new Date(1_900_000_000_000), permissions: "racwdl" } },
  ]);
  await of("public").create({ access: "blob" });
  await of("leased").create();
  await of("leased").getBlobLeaseClient().acquireLease(-1);
  await of("broken").create();
  await of("broken").getBlobLeaseClient().acquireLease(-1);
  await of("broken").getBlobLeaseClient().breakLease(0);
  await of("scoped").create({ containerEncryptionScope: { defaultEncryptionScope: "tenant-1", preventEncryptionScopeOverride: true } });
  await of("scoped").getBlockBlobClient("b").upload("in a scope", 10);
  await of("deleted").create({ metadata: { deleted: "yes" } });
  await of("deleted").getBlockBlobClient("inside").upload("1", 1);
  await of("deleted").delete();
  await writeBlobs(of("things"));
}

/** Blobs of every type and state. The account keeps versions, and what was deleted for some days. */
async function writeBlobs(container: ContainerClient): Promise<void> {
  await writeBlockBlobs(container);
  const pages = container.getPageBlobClient("pages");
  await pages.create(256 * kib, { blobSequenceNumber: 7, metadata: { kind: "page" } });
  for (let at = 0; at < 8; at++) await pages.uploadPages(bytesOf(`${at}`, 1_024), at * 20 * kib, 1_024);
  await pages.createSnapshot();
  await pages.clearPages(0, 512);
  await pages.uploadPages(bytesOf("later", 512), 100 * 512, 512);
  await pages.resize(128 * kib);
  await pages.updateSequenceNumber("increment");
  const log = container.getAppendBlobClient("log");
  await log.create({ blobHTTPHeaders: { blobContentType: "text/log" }, tags: { kind: "log" } });
  for (let at = 0; at < 5; at++) await log.appendBlock(bytesOf(`${at}`, 3_000 + at), 3_000 + at);
  const sealed = container.getAppendBlobClient("sealed");
  await sealed.create();
  await sealed.appendBlock("the last", 8);
  await sealed.seal();
}

async function writeBlockBlobs(container: ContainerClient): Promise<void> {
  const of = (name: string) => container.getBlockBlobClient(name);
  const blobHTTPHeaders = {
    blobContentType: "text/plain; charset=utf-8",
    blobContentEncoding: "identity",
    blobContentLanguage: "de",
    blobContentDisposition: "inline",
    blobCacheControl: "no-cache",
  };
  await of("headers").upload("text", 4, { blobHTTPHeaders, metadata: { one: "1" }, tags: { a: "1", b: "two" } });
  // Versions: of metadata, of content, of a deleted blob.
  for (const text of ["one", "second", "the third"]) await of("versions").upload(text, text.length, { metadata: { text } });
  await of("versions").setMetadata({ text: "the fourth" });
  await of("gone").upload("was here", 8, { tags: { gone: "soon" } });
  await of("gone").createSnapshot({ metadata: { of: "gone" } });
  await of("gone").delete({ deleteSnapshots: "include" });
  await of("back").upload("returned", 8);
  await of("back").delete();
  await of("back").undelete();
  await of("snapshots").upload("first", 5);
  await of("snapshots").createSnapshot();
  await of("snapshots").upload("next", 4);
  await of("snapshots").createSnapshot({ metadata: { own: "metadata" } });
  await of("blocks").uploadData(bytesOf("blocks", 300 * kib), { blockSize: 64 * kib, maxSingleShotSize: 1 });
  await of("blocks").stageBlock(Buffer.from("later").toString("base64"), bytesOf("later", 5_000), 5_000);
  await of("staged").stageBlock(Buffer.from("b1").toString("base64"), bytesOf("staged", 9_000), 9_000);
  await of("leased").upload("1", 1);
  await of("leased").getBlobLeaseClient().acquireLease(-1);
  await of("broken").upload("1", 1);
  await of("broken").getBlobLeaseClient().acquireLease(-1);
  await of("broken").getBlobLeaseClient().breakLease(0);
  await of("cool").upload("cool", 4);
  await of("cool").setAccessTier("Cool");
  await of("archived").upload("far away", 8, { tier: "Archive" });
  await of("held").upload("held", 4);
  await of("held").setLegalHold(true);
  await of("kept").upload("kept", 4, { immutabilityPolicy: { expiriesOn: new Date(Date.now() + longMs), policyMode: "Unlocked" } });
  await (await of("copied").beginCopyFromURL(of("blocks").url)).pollUntilDone();
  await of("empty").upload("", 0);
  await of("name with / and ä?%").upload("a name", 6);
}

const everything = {
  ...{ includeCopy: true, includeDeleted: true, includeDeletedWithVersions: true, includeImmutabilityPolicy: true, includeLegalHold: true },
  ...{ includeMetadata: true, includeSnapshots: true, includeTags: true, includeUncommitedBlobs: true, includeVersions: true },
};

/** Everything that the SDK tells of the account's blobs. */
export async function toldOfBlobs(service: BlobServiceClient): Promise<Told[]> {
  const all: Told[] = [told("blob service", await service.getProperties())];
  const names: string[] = [];
  for await (const each of service.listContainers({ includeMetadata: true, includeDeleted: true })) {
    all.push(told(`listed container ${each.name}`, each));
    if (each.deleted !== true) names.push(each.name);
  }
  for (const name of names) {
    const container = service.getContainerClient(name);
    all.push(told(`container ${name}`, await container.getProperties()));
    all.push(told(`policies of ${name}`, await container.getAccessPolicy()));
    for await (const item of container.listBlobsFlat(everything)) {
      const state = `${item.deleted === true ? " deleted" : ""} ${item.snapshot ?? ""} ${item.versionId ?? ""}`;
      all.push(told(`listed ${name}/${item.name}${state}`, item));
      if (item.deleted === true) continue;
      const plain = container.getBlobClient(item.name);
      const isEarlier = item.versionId !== undefined && item.isCurrentVersion !== true;
      const client = item.snapshot ? plain.withSnapshot(item.snapshot) : isEarlier ? plain.withVersion(item.versionId ?? "") : plain;
      all.push(...(await toldOfBlob(`${name}/${item.name}${state}`, client, container)));
    }
  }
  for await (const found of service.findBlobsByTags("a = '1'")) all.push(told(`found ${found.containerName}/${found.name}`, found));
  return all;
}

/** Tells of a blob what a listing does not: headers, content, tags, blocks, pages. */
async function toldOfBlob(title: string, client: BlobClient, container: ContainerClient): Promise<Told[]> {
  const all: Told[] = [];
  const isStaged = client.name === "staged";
  if (!isStaged) {
    const properties = await client.getProperties();
    all.push(told(`properties of ${title}`, properties), told(`tags of ${title}`, await client.getTags()));
    if (properties.accessTier !== "Archive") {
      const content = createHash("sha256").update(await client.downloadToBuffer());
      all.push({ title: `content of ${title}`, text: content.digest("hex") });
    }
    if (properties.blobType === "PageBlob" && !client.url.includes("versionid="))
      all.push(told(`pages of ${title}`, await container.getPageBlobClient(client.name).getPageRanges()));
  }
  if (["blocks", "staged"].includes(client.name) && !/[?&](versionid|snapshot)=/.test(client.url))
    all.push(told(`blocks of ${title}`, await container.getBlockBlobClient(client.name).getBlockList("all")));
  return all;
}

export const sharedKey = (account: string, key: string): StorageSharedKeyCredential => new StorageSharedKeyCredential(account, key);
