/**
 * Blobs of an account at two stamps of real processes: what the SDK wrote before the copy was begun and afterwards is at the `-secondary` name
 * of the other stamp, of every type, with bytes, ETags, times, MD5, tags and snapshots; the sender is killed meanwhile. After a planned
 * failover the other stamp takes writes, and a client of it finds everything.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { TestContext } from "node:test";
import { BlobServiceClient, type ContainerClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import { isComplete, killProcess, type TwoStamps, untilCopy } from "../testing/two-stamps.ts";

const account = "shapes";
const mebibyte = 1024 * 1024;
const options = { retryOptions: { maxTries: 20, retryDelayInMs: 300, maxRetryDelayInMs: 2_000 } };

const bytesOf = (name: string, lengthBytes: number): Buffer => Buffer.alloc(lengthBytes, createHash("sha512").update(name).digest());

/** Blobs of every type. Those of several MiB are uploaded in blocks. */
async function writeAll(container: ContainerClient, prefix: string): Promise<void> {
  const of = (name: string): string => `${prefix}/${name}`;
  const tags = { kind: prefix };
  await container.getBlockBlobClient(of("small")).upload("text", 4, { metadata: { one: "1" }, tags });
  const large = container.getBlockBlobClient(of("large"));
  const md5 = createHash("md5")
    .update(bytesOf(of("large"), 10 * mebibyte))
    .digest();
  const upload = { blockSize: 4 * mebibyte, concurrency: 2, tags, blobHTTPHeaders: { blobContentMD5: md5, blobContentType: "text/x" } };
  await large.uploadData(bytesOf(of("large"), 10 * mebibyte), upload);
  await large.createSnapshot();
  await large.uploadData(bytesOf(of("shorter"), 5 * mebibyte), { blockSize: 3 * mebibyte });
  const pages = container.getPageBlobClient(of("pages"));
  await pages.create(4 * mebibyte);
  await pages.uploadPages(bytesOf(of("pages"), mebibyte), 0, mebibyte);
  for (let i = 0; i < 10; i++) await pages.uploadPages(bytesOf(`${i}`, 512), (i * 397 + 100) * 512, 512);
  const log = container.getAppendBlobClient(of("log"));
  await log.create();
  for (let i = 0; i < 20; i++) await log.appendBlock(bytesOf(`${i}`, 30_000 + i), 30_000 + i);
  const staged = container.getBlockBlobClient(of("staged"));
  await staged.stageBlock(Buffer.from("b1").toString("base64"), bytesOf(of("staged"), 50_000), 50_000);
  for (let i = 0; i < 10; i++) await container.getBlockBlobClient(of(`many-${i}`)).uploadData(bytesOf(of(`${i}`), 1_000 * (i + 1)));
  await container.getBlockBlobClient(of("many-0")).delete();
}

/** Everything that a client sees of the container, as one text for each blob and snapshot. */
async function seen(container: ContainerClient): Promise<readonly string[]> {
  const told: string[] = [];
  const include = { includeSnapshots: true, includeMetadata: true, includeTags: true, includeUncommitedBlobs: true };
  for await (const { name, snapshot, properties, metadata, tags } of container.listBlobsFlat(include)) {
    const { etag, lastModified, createdOn, contentLength, contentMD5, contentType, blobType } = properties;
    const listed = { name, snapshot, etag, lastModified, createdOn, contentLength, contentMD5, contentType, blobType, metadata, tags };
    const client = snapshot ? container.getBlobClient(name).withSnapshot(snapshot) : container.getBlobClient(name);
    const isCommitted = !name.endsWith("staged");
    const content = isCommitted
      ? createHash("sha256")
          .update(await client.downloadToBuffer())
          .digest("hex")
      : "";
    const blocks = name.endsWith("staged") ? (await container.getBlockBlobClient(name).getBlockList("all")).uncommittedBlocks : [];
    told.push(JSON.stringify({ ...listed, content, blocks }));
  }
  return told;
}

export async function blobsAreCopied(_t: TestContext, two: TwoStamps): Promise<void> {
  const { portBase, ok } = two;
  const { keys } = JSON.parse(await ok("account", "create", account, "--location", "north", "--json"));
  const credential = new StorageSharedKeyCredential(account, keys[0]);
  const at = (base: number, name: string): ContainerClient =>
    new BlobServiceClient(`http://127.0.0.1:${base}/${name}`, credential, options).getContainerClient("things");
  const here = at(portBase, account);
  const there = at(portBase + 300, `${account}-secondary`);
  await here.create({ metadata: { of: "north" } });
  await writeAll(here, "before");
  await ok("geo", "protect", account, "--location", "south");
  await writeAll(here, "beside");
  await killProcess(two, "north-1", "partition-server-1");
  await untilCopy(two, account, "a complete copy", isComplete);
  const written = await seen(here);
  const copied = await seen(there);
  assert.equal(written.length, 2 * 15);
  const different = written.filter((each, i) => each !== copied[i]);
  assert.deepEqual([different.slice(0, 3), copied.length], [[], written.length]);
  await assert.rejects(there.getBlockBlobClient("new").upload("x", 1), { statusCode: 403 });

  await ok("geo", "failover", account, "--planned", "--to", "south-1");
  const next = at(portBase + 300, account);
  await next.getBlockBlobClient("new").upload("of south", 8);
  const now = await seen(next);
  assert.deepEqual(
    now
      .filter((each) => !each.includes('"name":"new"'))
      .filter((each, i) => each !== written[i])
      .slice(0, 3),
    [],
  );
  // The old primary is filled again, over what it had.
  await untilCopy(two, account, "a complete copy at the old primary", (now) => now.secondary === "north-1" && isComplete(now));
  assert.deepEqual((await seen(at(portBase, `${account}-secondary`))).filter((each, i) => each !== now[i]).slice(0, 3), []);
}
