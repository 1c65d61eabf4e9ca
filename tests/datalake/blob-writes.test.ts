/** Files that the Blob service writes, lists and deletes in an account with directories, as clients that know only that service do. */
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { BlobSASPermissions, BlobServiceClient, type ContainerClient } from "@azure/storage-blob";
import type { DataLakeFileSystemClient } from "@azure/storage-file-datalake";
import { type Lake, refusal, startLake } from "./lake.ts";

let lake: Lake;
before(async () => {
  lake = await startLake();
});
after(() => lake.stop());

async function both(): Promise<[DataLakeFileSystemClient, ContainerClient]> {
  const files = await lake.filesystem();
  return [files, BlobServiceClient.fromConnectionString(lake.connectionString).getContainerClient(files.name)];
}

const put = (container: ContainerClient, path: string, text: string) => container.getBlockBlobClient(path).upload(text, text.length);
const read = async (container: ContainerClient, path: string) => (await container.getBlobClient(path).downloadToBuffer()).toString();

const writes = () => ({ permissions: BlobSASPermissions.parse("cw"), expiresOn: new Date(Date.now() + 600_000) });

async function paths(files: DataLakeFileSystemClient): Promise<string[]> {
  const names: string[] = [];
  for await (const { name, isDirectory, contentLength } of files.listPaths({ recursive: true }))
    names.push(isDirectory ? `${name}/` : `${name}:${contentLength}`);
  return names;
}

async function listed(container: ContainerClient, prefix: string, pageSize = 2): Promise<string[]> {
  const names: string[] = [];
  for await (const page of container.listBlobsFlat({ prefix, includeMetadata: true }).byPage({ maxPageSize: pageSize }))
    for (const { name, metadata } of page.segment.blobItems) names.push(metadata?.hdi_isfolder === "true" ? `${name}/` : name);
  return names;
}

test("datalake: Put Blob makes a file and the directories above it, and replaces one, under its conditions", async () => {
  const [files, container] = await both();
  await put(container, "a/b/f", "one");
  assert.deepEqual(await paths(files), ["a/", "a/b/", "a/b/f:3"]);
  const blob = container.getBlockBlobClient("a/b/f");
  assert.equal(await refusal(blob.upload("x", 1, { conditions: { ifNoneMatch: "*" } })), "409 BlobAlreadyExists");
  await blob.upload("two!", 4, { metadata: { a: "b" }, blobHTTPHeaders: { blobContentType: "text/plain" } });
  assert.equal(await read(container, "a/b/f"), "two!");
  assert.equal((await files.getFileClient("a/b/f").getProperties()).contentType, "text/plain");
  assert.equal(await refusal(put(container, "a/b", "x")), "409 ResourceTypeMismatch");
  assert.equal(await refusal(put(container, "a/b/f/g", "x")), "409 PathConflict");
  assert.equal(
    await refusal(
      files
        .getFileClient("a/b/f")
        .append("x", 4, 1)
        .then(() => files.getFileClient("a/b/f").flush(5)),
    ),
    "409 InvalidFlushOperation",
  );
  assert.equal(await read(container, "a/b/f"), "two!", "what Put Blob wrote is not lost");
  assert.equal(await refusal(container.getAppendBlobClient("log").create()), "409 FeatureNotYetSupportedForHierarchicalNamespaceAccounts");
});

test("datalake: blocks are nobody's file until they are committed, and a write that fails leaves nothing", async () => {
  const [files, container] = await both();
  const blob = container.getBlockBlobClient("d/f");
  await blob.stageBlock("AAAA", "hello ", 6);
  assert.deepEqual(await paths(files), ["d/"]);
  assert.match(await refusal(container.getBlobClient("d/f").getProperties()), /^404/);
  await blob.stageBlock("AAAB", "world", 5);
  await blob.commitBlockList(["AAAA", "AAAB"], { conditions: { ifNoneMatch: "*" } });
  assert.equal(await read(container, "d/f"), "hello world");
  assert.deepEqual(await paths(files), ["d/", "d/f:11"]);
  assert.equal(await refusal(container.getBlockBlobClient("e/g").commitBlockList(["AAAA"])), "400 InvalidBlockList");
  await files.getDirectoryClient("e").delete(false);
  assert.equal(
    await refusal(container.getBlockBlobClient("n").upload("x", 1, { conditions: { ifMatch: '"0x1"' } })),
    "412 ConditionNotMet",
  );
  assert.deepEqual(await paths(files), ["d/", "d/f:11"]);
});

test("datalake: a file of the Blob service begins with the default list of its directory", async () => {
  const [files, container] = await both();
  const rwx = { read: true, write: true, execute: true };
  const entry = (accessControlType: "user" | "group" | "other", defaultScope: boolean) => ({
    accessControlType,
    entityId: "",
    defaultScope,
    permissions: rwx,
  });
  const acl = [false, true].flatMap((scope) => (["user", "group", "other"] as const).map((type) => entry(type, scope)));
  await files.getDirectoryClient("d").create({ acl });
  await put(container, "d/f", "x");
  const { permissions } = await files.getFileClient("d/f").getAccessControl();
  assert.deepEqual([permissions?.other.read, permissions?.other.write, permissions?.other.execute], [true, true, false]);
});

test("datalake: List Blobs tells files and directories in pages, by prefix and with a delimiter; Delete Blob takes a file or an empty directory", async () => {
  const [files, container] = await both();
  for (const path of ["a/b/1", "a/b/2", "a/c", "ab/3", "z"]) await put(container, path, "x");
  assert.deepEqual(await listed(container, ""), ["a/", "a/b/", "a/b/1", "a/b/2", "a/c", "ab/", "ab/3", "z"]);
  assert.deepEqual(await listed(container, "a/"), ["a/b/", "a/b/1", "a/b/2", "a/c"]);
  assert.deepEqual(await listed(container, "a/b"), ["a/b/", "a/b/1", "a/b/2"]);
  assert.deepEqual(await listed(container, "ab"), ["ab/", "ab/3"]);
  assert.deepEqual(await listed(container, "no/thing"), []);
  const level: string[] = [];
  for await (const item of container.listBlobsByHierarchy("/", { prefix: "a/" })) level.push(`${item.kind} ${item.name}`);
  assert.deepEqual(level, ["prefix a/b/", "blob a/c"]);
  assert.equal(await refusal(container.deleteBlob("a/b")), "409 DirectoryNotEmpty");
  await container.deleteBlob("a/b/1");
  await container.deleteBlob("a/b/2");
  await container.deleteBlob("a/b");
  assert.equal(await refusal(container.deleteBlob("a/b")), "404 BlobNotFound");
  assert.deepEqual(await paths(files), ["a/", "a/c:1", "ab/", "ab/3:1", "z:1"]);
});

test("datalake: the dfs door knows hosts of both services, which SDKs make of each other at one port", async () => {
  const { port, hostname } = new URL(lake.url);
  const account = hostname.split(".")[0];
  const ask = (method: string, host: string, path: string) =>
    new Promise<string>((resolve, reject) => {
      const headers = { host: `${account}.${host}.localhost:${port}`, "x-ms-version": "2025-05-05" };
      const sent = request({ hostname: "127.0.0.1", port, method, path, headers }, (answer) => {
        answer.resume().on("end", () => resolve(`${answer.statusCode} ${answer.headers["x-ms-error-code"]}`));
      });
      sent.on("error", reject).end();
    });
  assert.equal(await ask("HEAD", "dfs", "/lake-1/?action=getAccessControl"), "401 NoAuthenticationInformation");
  assert.equal(await ask("HEAD", "blob", "/lake-1/?action=getAccessControl"), "401 NoAuthenticationInformation");
  assert.equal(await ask("GET", "queue", "/lake-1/f"), "400 InvalidUri");
});

test("datalake: a block that fails takes none of the others' blocks away, and their list makes the file", async () => {
  const [files] = await both();
  const once = { retryOptions: { maxTries: 1 } };
  const blob = BlobServiceClient.fromConnectionString(lake.connectionString, once)
    .getContainerClient(files.name)
    .getBlockBlobClient("d/parts");
  const wrong = new Uint8Array(16);
  const ends = await Promise.all(
    Array.from({ length: 12 }, (_, index) => {
      const id = Buffer.from(`id-${String(index).padStart(3, "0")}`).toString("base64");
      const told = blob.stageBlock(id, "x", 1, index % 2 === 0 ? { transactionalContentMD5: wrong } : {});
      return told.then(
        () => [id],
        (error: { statusCode: number }) => {
          assert.ok(error.statusCode === 400 || error.statusCode === 503, String(error));
          return [];
        },
      );
    }),
  );
  const ids = ends.flat();
  if (ids.length === 0) return;
  await blob.commitBlockList(ids);
  assert.deepEqual(await paths(files), ["d/", `d/parts:${ids.length}`]);
});

test("datalake: a file is not put into the archive, from where nothing takes it", async () => {
  const [files, container] = await both();
  const blob = container.getBlockBlobClient("f");
  assert.equal(await refusal(blob.upload("x", 1, { tier: "Archive" })), "501 NotImplemented");
  await blob.stageBlock("AAAA", "x", 1);
  assert.equal(await refusal(blob.commitBlockList(["AAAA"], { tier: "Archive" })), "501 NotImplemented");
  await blob.upload("cool", 4, { tier: "Cool" });
  assert.equal(await read(container, "f"), "cool");
  assert.deepEqual(await paths(files), ["f:4"]);
});

test("datalake: List Blobs tells nothing by a prefix that no path begins with", async () => {
  const [, container] = await both();
  await put(container, "a/b", "x");
  for (const prefix of ["/", "/a", "a//", "a//b", "./", "a/../", `${"n".repeat(256)}/`, `${"d/".repeat(70)}`, "a/b/c"])
    assert.deepEqual(await listed(container, prefix), [], prefix.slice(0, 10));
  assert.deepEqual(await listed(container, "a/"), ["a/b"]);
});

test("datalake: a write whose client goes away in the middle leaves no name that keeps its directory from being removed", async () => {
  const [files, container] = await both();
  const url = new URL(await container.getBlockBlobClient("d/f").generateSasUrl(writes()));
  const headers = { "x-ms-version": "2025-05-05", "x-ms-blob-type": "BlockBlob", "content-length": "1000000" };
  const sent = request(url, { method: "PUT", headers }).on("error", () => {});
  sent.write("x".repeat(100_000));
  const directory = files.getDirectoryClient("d");
  while (!(await directory.exists())) await setTimeout(10);
  sent.destroy();
  const removed = async (): Promise<string> =>
    directory.delete(false).then(
      () => "removed",
      (error: { code: string }) => error.code,
    );
  let told = await removed();
  for (let attempt = 0; told === "DirectoryNotEmpty" && attempt < 500; attempt++) {
    await setTimeout(20);
    told = await removed();
  }
  assert.equal(told, "removed");
});
