/** The Files service by its SDK, against a whole stamp in one process. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import {
  AccountSASPermissions,
  FileSASPermissions,
  FileSystemAttributes,
  ShareClient,
  type ShareDirectoryClient,
  ShareFileClient,
  ShareSASPermissions,
  ShareServiceClient,
} from "@azure/storage-file-share";
import { filesBench, options, refusal } from "./files-bench.ts";

const bench = filesBench();
let made = 0;

async function share(): Promise<ShareClient> {
  const client = bench.service.getShareClient(`share-${++made}`);
  await client.create();
  return client;
}

async function listed(directory: ShareDirectoryClient, options: { prefix?: string; maxPageSize?: number } = {}): Promise<string[]> {
  const { maxPageSize = 5_000, ...rest } = options;
  const names: string[] = [];
  for await (const page of directory.listFilesAndDirectories(rest).byPage({ maxPageSize })) {
    const { directoryItems, fileItems } = page.segment;
    names.push(...directoryItems.map(({ name }) => `${name}/`));
    names.push(...fileItems.map(({ name, properties }) => `${name}:${properties.contentLength}`));
  }
  return names;
}

const read = async (client: ShareClient, path: string, offset = 0, count?: number): Promise<string> =>
  (await client.rootDirectoryClient.getFileClient(path).downloadToBuffer(offset, count)).toString();

test("files: a share is made, described, listed by its prefix, and deleted, and no list of containers shows it", async () => {
  const client = bench.service.getShareClient("first-share");
  await client.create({ metadata: { owner: "me" }, quota: 7, accessTier: "Hot" });
  assert.equal(await refusal(client.create()), "409 ShareAlreadyExists");
  const shown = await client.getProperties();
  assert.deepEqual([shown.quota, shown.accessTier, shown.metadata], [7, "Hot", { owner: "me" }]);
  await client.setMetadata({ owner: "you", more: "1" });
  await client.setQuota(9);
  const changed = await client.getProperties();
  assert.deepEqual([changed.quota, changed.accessTier, changed.metadata], [9, "Hot", { owner: "you", more: "1" }]);
  const names: string[] = [];
  for await (const one of bench.service.listShares({ prefix: "first", includeMetadata: true }))
    names.push(`${one.name} ${one.metadata?.owner}`);
  assert.deepEqual(names, ["first-share you"]);
  const blobs = BlobServiceClient.fromConnectionString(bench.stamp.connectionString);
  await blobs.createContainer("first-share");
  const containers: string[] = [];
  for await (const one of blobs.listContainers()) containers.push(one.name);
  assert.deepEqual(containers, ["first-share"]);
  assert.equal((await client.getStatistics()).shareUsageBytes, 0);
  await client.setAccessPolicy([
    { id: "p", accessPolicy: { permissions: "r", startsOn: new Date("2020-01-01"), expiresOn: new Date("2030-01-01") } },
  ]);
  assert.equal((await client.getAccessPolicy()).signedIdentifiers[0]?.id, "p");
  await client.delete();
  assert.equal(await refusal(client.getProperties()), "404 ShareNotFound");
});

test("files: names keep their case and are found in any, and a directory is removed only when it is empty", async () => {
  const client = await share();
  const { rootDirectoryClient: root } = client;
  await client.createDirectory("Docs");
  assert.equal(await refusal(client.createDirectory("dOCS")), "409 ResourceAlreadyExists");
  await client.getDirectoryClient("docs").createFile("Über.TXT", 3);
  assert.deepEqual(await listed(client.getDirectoryClient("DOCS")), ["Über.TXT:3"]);
  assert.deepEqual(await listed(root, { prefix: "do" }), ["Docs/"]);
  assert.equal(await refusal(client.deleteDirectory("Docs")), "409 DirectoryNotEmpty");
  assert.equal(await refusal(client.getDirectoryClient("absent").createFile("f", 0)), "404 ParentNotFound");
  assert.equal(await refusal(root.createFile("DOCS", 0)), "409 ResourceAlreadyExists");
  // A HEAD has no body, and this SDK reads codes there.
  assert.equal(await refusal(root.getFileClient("Docs").getProperties()), "404 ");
  assert.equal(await refusal(root.getFileClient("none").getProperties()), "404 ");
  await client.getDirectoryClient("docs").deleteFile("ÜBER.txt");
  await client.deleteDirectory("docs");
  assert.deepEqual(await listed(root), []);
});

test("files: dots at the end of a name count only if the request says so", async () => {
  const client = await share();
  await client.createDirectory("a...");
  assert.deepEqual(await listed(client.rootDirectoryClient), ["a/"]);
  const byPath = ShareServiceClient.fromConnectionString(bench.stamp.connectionString, { allowTrailingDot: true });
  const exact = byPath.getShareClient(client.name);
  await exact.createDirectory("b..");
  assert.deepEqual(await listed(exact.rootDirectoryClient), ["a/", "b../"]);
});

test("files: attributes and times are kept as they were given, and what a request leaves out stays", async () => {
  const client = await share();
  const creationTime = new Date("2020-01-02T03:04:05.678Z");
  const file = client.rootDirectoryClient.getFileClient("f");
  await file.create(10, {
    creationTime,
    lastWriteTime: creationTime,
    metadata: { A: "b" },
    fileHttpHeaders: { fileContentType: "text/x" },
  });
  const shown = await file.getProperties();
  assert.deepEqual([shown.fileCreatedOn, shown.fileLastWriteOn, shown.contentType], [creationTime, creationTime, "text/x"]);
  assert.deepEqual([shown.metadata, shown.contentLength, shown.fileAttributes], [{ a: "b" }, 10, "Archive"]);
  await file.uploadRange("x", 0, 1);
  const written = await file.getProperties();
  assert.deepEqual(written.fileCreatedOn, creationTime);
  assert.notDeepEqual(written.fileLastWriteOn, creationTime);
  await file.uploadRange("x", 0, 1, { fileLastWrittenMode: "Preserve" });
  assert.deepEqual((await file.getProperties()).fileLastWriteOn, written.fileLastWriteOn);
  await file.setMetadata({ c: "d" });
  assert.deepEqual((await file.getProperties()).fileCreatedOn, creationTime);
  const readOnly = new FileSystemAttributes();
  readOnly.readonly = true;
  await file.setProperties({ fileAttributes: readOnly });
  assert.equal(await refusal(file.uploadRange("y", 0, 1)), "409 ReadOnlyAttribute");
  assert.equal(await refusal(file.delete()), "409 ReadOnlyAttribute");
  const directory = client.getDirectoryClient("d");
  await directory.create({ metadata: { x: "1" }, creationTime });
  await directory.setProperties({ lastWriteTime: creationTime });
  const of = await directory.getProperties();
  assert.deepEqual([of.fileCreatedOn, of.fileLastWriteOn, of.fileAttributes], [creationTime, creationTime, "Directory"]);
  assert.deepEqual([of.metadata, of.fileParentId], [{ x: "1" }, "0"]);
});

test("files: ranges are written, cleared and listed at any byte, and what nobody wrote is zeros", async () => {
  const client = await share();
  const file = client.rootDirectoryClient.getFileClient("sparse");
  const length = 4 * 1024 ** 4;
  await file.create(length);
  await file.uploadRange("z", length - 1, 1);
  await file.uploadRange("hello", 3, 5);
  assert.equal(await read(client, "sparse", 0, 10), "\0\0\0hello\0\0");
  assert.equal(await read(client, "sparse", length - 2, 2), "\0z");
  const ranges = await file.getRangeList();
  assert.deepEqual(
    ranges.rangeList.map(({ start, end }) => [start, end]),
    [
      [3, 7],
      [length - 1, length - 1],
    ],
  );
  assert.equal(await refusal(file.uploadRange("zz", length - 1, 2)), "416 InvalidRange");
  await file.clearRange(4, 2);
  assert.equal(await read(client, "sparse", 0, 10), "\0\0\0h\0\0lo\0\0");
  await file.resize(6);
  await file.resize(8);
  assert.equal(await read(client, "sparse"), "\0\0\0h\0\0\0\0");
  const usage = await client.getStatistics();
  assert.equal(usage.shareUsageBytes, 8);
});

test("files: a chunk that is written byte after byte, with gaps, is joined and stays as it was", async () => {
  const client = await share();
  const file = client.rootDirectoryClient.getFileClient("log");
  const bytes = 2_400;
  await file.create(bytes);
  for (let at = 0; at < bytes; at += 2) await file.uploadRange(String(at % 10), at, 1);
  const expected = Array.from({ length: bytes }, (_, at) => (at % 2 === 0 ? String(at % 10) : "\0")).join("");
  assert.equal(await read(client, "log"), expected);
});

test("files: a chunk is joined while others write elsewhere in the file, and lines that follow one another are joined, too", async () => {
  const client = await share();
  const file = client.rootDirectoryClient.getFileClient("busy");
  const [chunkBytes, lines] = [256 * 1024, 1_100];
  await file.create(2 * chunkBytes);
  let done = false;
  let beside = 0;
  const others = Array.from({ length: 4 }, async (_, at) => {
    for (; !done; beside++) await file.uploadRange("o", chunkBytes + at, 1);
  });
  try {
    for (let at = 0; at < lines; at++) await file.uploadRange(String(at % 10), at, 1);
  } finally {
    done = true;
    await Promise.all(others);
  }
  assert.equal(await read(client, "busy", 0, lines), Array.from({ length: lines }, (_, at) => at % 10).join(""));
  assert.ok(beside > lines / 10, String(beside));
});

test("files: a file that is created again is empty, and its content headers and MD5 are what the last one said", async () => {
  const client = await share();
  const file = client.rootDirectoryClient.getFileClient("f");
  await file.uploadData(Buffer.from("content"));
  assert.equal(await read(client, "f"), "content");
  const fileContentMD5 = Buffer.alloc(16, 7);
  await file.setHttpHeaders({ fileCacheControl: "no-store", fileContentMD5 });
  const shown = await file.getProperties();
  assert.deepEqual([shown.cacheControl, shown.contentMD5], ["no-store", fileContentMD5]);
  const part = await file.download(1, 3, { rangeGetContentMD5: true });
  assert.equal(part.contentMD5?.length, 16);
  await file.create(4);
  assert.equal(await read(client, "f"), "\0\0\0\0");
});

test("files: a list is told in pages, with ids, times, ETags and attributes if asked for", async () => {
  const client = await share();
  const root = client.rootDirectoryClient;
  for (const name of ["b", "A", "c"]) await root.createFile(name, 1);
  await root.createSubdirectory("Bd");
  assert.deepEqual((await listed(root, { maxPageSize: 1 })).sort(), ["A:1", "Bd/", "b:1", "c:1"]);
  assert.deepEqual((await listed(root, { prefix: "B" })).sort(), ["Bd/", "b:1"]);
  const options = { includeTimestamps: true, includeEtag: true, includeAttributes: true, includePermissionKey: true } as const;
  for await (const item of root.listFilesAndDirectories(options)) {
    assert.ok(item.properties?.creationTime && item.properties.etag && item.attributes && item.permissionKey && item.fileId);
  }
});

test("files: a SAS of a file, of a share by a stored policy, and of the account let in to what they say", async () => {
  const client = await share();
  const file = client.rootDirectoryClient.getFileClient("f");
  await file.uploadData(Buffer.from("text"));
  await client.rootDirectoryClient.createFile("other", 1);
  const expiresOn = new Date(Date.now() + 60_000);
  const by = (url: string) => new ShareFileClient(url, undefined, { retryOptions: { maxTries: 1 } });
  const one = await file.generateSasUrl({ permissions: FileSASPermissions.parse("r"), expiresOn });
  assert.equal((await by(one).downloadToBuffer()).toString(), "text");
  assert.equal(await refusal(by(one).uploadRange("x", 0, 1)), "403 AuthorizationPermissionMismatch");
  assert.equal(await refusal(by(one.replace("/f?", "/other?")).download()), "403 AuthenticationFailed");
  await client.setAccessPolicy([{ id: "p", accessPolicy: { permissions: "rl", startsOn: new Date("2020-01-01"), expiresOn } }]);
  const ofShare = await client.generateSasUrl({ identifier: "p" });
  const names: string[] = [];
  for await (const item of new ShareClient(ofShare).rootDirectoryClient.listFilesAndDirectories()) names.push(item.name);
  assert.deepEqual(names, ["f", "other"]);
  await client.setAccessPolicy([]);
  assert.equal(await refusal(new ShareClient(ofShare).rootDirectoryClient.getFileClient("f").download()), "403 AuthenticationFailed");
  const ofAccount = bench.service.generateAccountSasUrl(expiresOn, AccountSASPermissions.parse("l"), "s");
  for await (const _ of new ShareServiceClient(ofAccount).listShares()) break;
  assert.equal(
    await refusal(new ShareServiceClient(ofAccount).getShareClient(client.name).getProperties()),
    "403 AuthorizationResourceTypeMismatch",
  );
});

test("files: a permission has one key for one text, and a file shows the key that it was made with", async () => {
  const client = await share();
  const text = "O:BAG:BAD:(A;;FA;;;SY)";
  const { filePermissionKey = "" } = await client.createPermission(text);
  assert.equal((await client.getPermission(filePermissionKey)).permission, text);
  const file = client.rootDirectoryClient.getFileClient("f");
  await file.create(0, { filePermission: text });
  assert.equal((await file.getProperties()).filePermissionKey, filePermissionKey);
  assert.equal(await refusal(file.create(0, { filePermissionKey: "1*1" })), "400 FileInvalidPermissionKey");
  assert.equal(await refusal(client.getPermission("1*1")), "400 FileInvalidPermissionKey");
  assert.equal(await refusal(client.getPermission("invalid")), "400 InvalidHeaderValue");
  assert.equal(await refusal(file.create(0, { filePermission: "invalid" })), "400 FileInvalidPermission");
  assert.equal(await refusal(client.createPermission("invalid")), "400 FileInvalidPermission");
  // Text would be shown where the other form was asked for, or kept in its place.
  assert.equal(await refusal(client.createPermission({ permission: "AQAU", format: "Binary" })), "501 NotImplemented");
  assert.equal(await refusal(client.getPermission(filePermissionKey, { filePermissionFormat: "Binary" })), "501 NotImplemented");
});

test("files: leases of files and shares guard them, and operations that are not here are refused by name", async () => {
  const client = await share();
  const file = client.rootDirectoryClient.getFileClient("f");
  await file.create(1);
  const lease = file.getShareLeaseClient();
  const { leaseId = "" } = await lease.acquireLease();
  assert.equal(await refusal(file.delete()), "412 LeaseIdMissing");
  await file.delete({ leaseAccessConditions: { leaseId } });
  const ofShare = client.getShareLeaseClient();
  await ofShare.acquireLease(15);
  assert.equal(await refusal(client.delete()), "412 LeaseIdMissing");
  await ofShare.releaseLease();
  assert.equal(await refusal(client.createSnapshot()), "501 NotImplemented");
  const free = client.rootDirectoryClient.getFileClient("free");
  assert.equal(await refusal(free.forceCloseAllHandles()), "404 ResourceNotFound");
  await free.create(1);
  assert.equal((await free.forceCloseAllHandles()).closedHandlesCount, 0);
  for await (const handle of client.rootDirectoryClient.listHandles({ recursive: true })) assert.fail(handle.path);
});

test("files: files and directories are renamed at once, with what is below, and onto a file only if asked for", async () => {
  const client = await share();
  const root = client.rootDirectoryClient;
  const directory = client.getDirectoryClient("a");
  await directory.create();
  const file = directory.getFileClient("f");
  await file.uploadData(Buffer.from("text"));
  const { fileId } = await file.getProperties();
  const moved = await directory.rename("b");
  assert.deepEqual(await listed(moved.destinationDirectoryClient), ["f:4"]);
  assert.equal(await refusal(directory.getProperties()), "404 ResourceNotFound");
  const inB = client.getDirectoryClient("B").getFileClient("F");
  const { destinationFileClient: up } = await inB.rename("up.txt", { metadata: { a: "1" }, contentType: "text/y" });
  const shown = await up.getProperties();
  assert.deepEqual([shown.fileId, shown.metadata, shown.contentType], [fileId, { a: "1" }, "text/y"]);
  await root.createFile("there", 9);
  assert.equal(await refusal(up.rename("there")), "409 ResourceAlreadyExists");
  await up.rename("THERE", { replaceIfExists: true });
  assert.equal(await read(client, "there"), "text");
  assert.deepEqual(await listed(root), ["b/", "THERE:4"]);
  await client.createDirectory("b/c");
  assert.match(await refusal(client.getDirectoryClient("b").rename("b/c/d")), /^400 InvalidInput/);
  assert.equal(await refusal(root.getFileClient("none").rename("x")), "404 ResourceNotFound");
  const expiresOn = new Date(Date.now() + 60_000);
  for (const [letters, told] of [
    ["rw", "403 AuthorizationPermissionMismatch"],
    ["rwd", undefined],
  ] as const) {
    const signed = await client.generateSasUrl({ permissions: ShareSASPermissions.parse(letters), expiresOn });
    const renamed = new ShareClient(signed, undefined, options).rootDirectoryClient.getFileClient("there").rename("away");
    if (told === undefined) await renamed;
    else assert.equal(await refusal(renamed), told);
  }
});

test("files: a directory is no file and a file no directory: 404 to who looks, and no copy replaces a directory", async () => {
  const { rootDirectoryClient: root } = await share();
  await root.getDirectoryClient("d").create();
  await root.getFileClient("f").create(1);
  assert.equal(await refusal(root.getFileClient("d").download()), "404 ResourceNotFound");
  assert.equal(await refusal(root.getDirectoryClient("f").getProperties()), "404 ResourceNotFound");
  assert.equal(await root.getFileClient("d").exists(), false);
  assert.equal(await refusal(root.getFileClient("d").startCopyFromURL(root.getFileClient("f").url)), "409 ResourceTypeMismatch");
});

test("files: a file is copied with its ranges, properties and metadata, and its ranges are taken from a URL", async () => {
  const client = await share();
  const root = client.rootDirectoryClient;
  const source = root.getFileClient("source");
  const length = 1024 ** 3;
  await source.create(length, { metadata: { a: "1" }, fileHttpHeaders: { fileContentType: "text/z" } });
  await source.uploadRange("begin", 0, 5);
  await source.uploadRange("end", length - 3, 3);
  const copy = root.getFileClient("copy");
  const { copyId, copyStatus } = await copy.startCopyFromURL(source.url);
  assert.deepEqual([copyStatus, (copyId ?? "").length], ["success", 36]);
  const shown = await copy.getProperties();
  assert.deepEqual([shown.contentLength, shown.metadata, shown.contentType, shown.copyId], [length, { a: "1" }, "text/z", copyId]);
  const ranges = (await copy.getRangeList()).rangeList.map(({ start, end }) => [start, end]);
  assert.deepEqual(ranges, [
    [0, 4],
    [length - 3, length - 1],
  ]);
  assert.equal(await read(client, "copy", length - 4, 4), "\0end");
  assert.equal(await refusal(copy.abortCopyFromURL(copyId ?? "")), "409 NoPendingCopyOperation");
  // What rclone says of its copies.
  const ofSource = { fileAttributes: "source", fileCreationTime: "source", fileLastWriteTime: "source", fileChangeTime: "source" };
  const copyFileSmbInfo = { ...ofSource, filePermissionCopyMode: "source", ignoreReadOnly: true, setArchiveAttribute: true } as const;
  const fileAttributes = FileSystemAttributes.parse("Hidden");
  await source.setProperties({ fileAttributes, creationTime: new Date(1e12), lastWriteTime: new Date(2e12), changeTime: new Date(15e11) });
  await copy.startCopyFromURL(source.url, { copyFileSmbInfo });
  const smb = await copy.getProperties();
  assert.equal(smb.fileAttributes, "Hidden | Archive");
  assert.deepEqual([smb.fileCreatedOn, smb.fileLastWriteOn, smb.fileChangeOn], [new Date(1e12), new Date(2e12), new Date(15e11)]);
  assert.equal(
    await refusal(copy.startCopyFromURL(source.url, { copyFileSmbInfo: { filePermissionCopyMode: "override" } })),
    "400 MissingRequiredHeader",
  );
  const other = root.getFileClient("other");
  await other.create(10);
  assert.match(await refusal(other.uploadRangeFromURL(source.url, 0, 1, 5)), /^(401|403|404) CannotVerifyCopySource/);
  const expiresOn = new Date(Date.now() + 60_000);
  const signed = await source.generateSasUrl({ permissions: FileSASPermissions.parse("r"), expiresOn });
  await other.uploadRangeFromURL(signed, 0, 1, 5);
  assert.equal(await read(client, "other"), "\0begin\0\0\0\0");
});
