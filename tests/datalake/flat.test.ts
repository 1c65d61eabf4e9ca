/** Data Lake Storage on an account without a hierarchical namespace: paths are blobs, and directories parts of their names. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import { type DataLakeFileSystemClient, DataLakeServiceClient } from "@azure/storage-file-datalake";
import { startStamp } from "@stamp/embedded";
import { accountKey, accountName } from "../conformance/scripted-stamp.ts";
import { Clients } from "../conformance/target.ts";
import { refusal, sharedKey, write } from "./lake.ts";

let stamp: Awaited<ReturnType<typeof startStamp>>;
let clients: Clients;
let made = 0;

before(async () => {
  stamp = await startStamp();
  clients = new Clients({ endpoint: new URL(stamp.endpoints.dfs).origin, accountName, accountKey, stop: async () => {} });
});
after(() => stamp.stop());

async function filesystem(): Promise<DataLakeFileSystemClient> {
  const service = new DataLakeServiceClient(stamp.endpoints.dfs, sharedKey, { retryOptions: { maxTries: 1 } });
  const client = service.getFileSystemClient(`flat-${++made}`);
  await client.create();
  return client;
}

const blobsOf = (client: DataLakeFileSystemClient) =>
  BlobServiceClient.fromConnectionString(stamp.connectionString).getContainerClient(client.name);

async function listed(client: DataLakeFileSystemClient, path: string, recursive: boolean, pageSize = 100): Promise<string[]> {
  const names: string[] = [];
  for await (const page of client.listPaths({ path, recursive }).byPage({ maxPageSize: pageSize }))
    for (const { name, isDirectory } of page.pathItems ?? []) names.push(`${name}${isDirectory ? "/" : ""}`);
  return names;
}

test("flat account: a file is created, appended to, flushed and read, and is a blob", async () => {
  const client = await filesystem();
  const file = client.getFileClient("a/b.txt");
  await file.create({ pathHttpHeaders: { contentType: "text/plain" }, metadata: { of: "me" } });
  await file.append("world", 6, 5);
  await file.append("hello ", 0, 6);
  assert.equal(await refusal(file.flush(5)), "400 InvalidFlushPosition");
  await blobsOf(client).getBlobClient("a/b.txt").setTags({ team: "x" });
  await file.flush(11);
  assert.equal((await file.readToBuffer()).toString(), "hello world");
  const blob = blobsOf(client).getBlobClient("a/b.txt");
  const { contentType, metadata } = await blob.getProperties();
  assert.deepEqual([contentType, metadata, (await blob.getTags()).tags], ["text/plain", { of: "me" }, { team: "x" }]);
  assert.deepEqual((await file.getProperties()).metadata, { of: "me" });
  await file.setMetadata({ of: "you" });
  await file.setHttpHeaders({ contentType: "text/x" });
  const changed = await blob.getProperties();
  assert.deepEqual([changed.contentType, changed.metadata, changed.contentLength], ["text/x", { of: "you" }, 11]);
});

test("flat account: what is no file takes no appends, and what is there is not replaced by another kind", async () => {
  const client = await filesystem();
  await client.getDirectoryClient("d").create();
  await blobsOf(client).getAppendBlobClient("log").create();
  await blobsOf(client).getBlockBlobClient("put").upload("old", 3);
  assert.equal(await refusal(client.getFileClient("none").append("x", 0, 1)), "404 PathNotFound");
  assert.equal(await refusal(client.getFileClient("d").append("x", 0, 1)), "409 PathConflict");
  assert.equal(await refusal(client.getFileClient("log").append("x", 0, 1)), "409 InvalidBlobType");
  await client.getFileClient("put").append("x", 3, 1);
  assert.equal(await refusal(client.getFileClient("put").flush(4)), "409 InvalidFlushOperation");
  assert.equal(await refusal(client.getFileClient("d").create()), "409 ResourceTypeMismatch");
  assert.equal(await refusal(client.getDirectoryClient("put").create()), "409 ResourceTypeMismatch");
  assert.equal((await client.getFileClient("put").createIfNotExists()).succeeded, false);
  assert.equal(await refusal(client.getFileClient("put").create({ conditions: { ifMatch: '"0x1"' } })), "412 ConditionNotMet");
  assert.equal((await blobsOf(client).getBlockBlobClient("put").downloadToBuffer()).toString(), "old");
  await client.getFileClient("put").create();
  assert.equal((await client.getFileClient("put").getProperties()).contentLength, 0);
});

test("flat account: lists tell files, directories that were made and directories that are a part of names, each once, in pages of any size", async () => {
  const client = await filesystem();
  await client.getDirectoryClient("a").create();
  await write(client, "a/1", "x");
  await write(client, "a-b", "x");
  await write(client, "c/d/2", "x");
  await blobsOf(client).getBlockBlobClient("slash/").upload("", 0);
  for (const pageSize of [1, 2, 100]) {
    assert.deepEqual((await listed(client, "", false, pageSize)).sort(), ["a-b", "a/", "c/", "slash/"], `${pageSize}`);
    assert.deepEqual((await listed(client, "", true, pageSize)).sort(), ["a-b", "a/", "a/1", "c/d/2", "slash/"], `${pageSize}`);
  }
  assert.deepEqual(await listed(client, "a", false), ["a/1"]);
  assert.deepEqual(await listed(client, "c", false), ["c/d/"]);
  assert.deepEqual(await listed(client, "slash", false), []);
  assert.deepEqual(await listed(client, "a-b", false), ["a-b"]);
  assert.equal(await refusal(listed(client, "none", false)), "404 PathNotFound");
});

test("flat account: properties tell what a path is, also of a directory that is a part of names", async () => {
  const client = await filesystem();
  await client.getDirectoryClient("made").create({ metadata: { of: "me" } });
  await write(client, "implied/f", "x");
  const kind = async (path: string, action = ""): Promise<string> => {
    const { status, headers } = await clients.raw("HEAD", `/${client.name}/${path}${action}`, {
      headers: { "x-ms-version": "2025-05-05" },
    });
    return `${status} ${headers.get("x-ms-resource-type") ?? headers.get("x-ms-error-code")}`;
  };
  for (const action of ["", "?action=getStatus"]) {
    assert.equal(await kind("made", action), "200 directory");
    assert.equal(await kind("implied", action), "200 directory");
    assert.equal(await kind("implied/f", action), "200 file");
    assert.equal(await kind("", action), "200 directory");
    assert.equal(await kind("impl", action), "404 PathNotFound");
  }
  const { status } = await clients.raw("PATCH", `/${client.name}/made?action=setProperties`, {
    headers: { "x-ms-version": "2025-05-05", "x-ms-properties": "of=eW91" },
  });
  assert.equal(status, 200);
  assert.deepEqual((await client.getDirectoryClient("made").getProperties()).metadata, { hdi_isfolder: "true", of: "you" });
  assert.equal(await kind("made"), "200 directory");
  assert.equal(await client.getFileClient("none").exists(), false);
});

test("flat account: a directory is removed with all below it, and with nothing else", async () => {
  const client = await filesystem();
  await client.getDirectoryClient("d").create();
  const blobs = blobsOf(client);
  await Promise.all(Array.from({ length: 300 }, (_, at) => blobs.getBlockBlobClient(`d/${at % 7}/${at}`).upload("x", 1)));
  await write(client, "d-2", "x");
  await write(client, "e/f", "x");
  assert.equal(await refusal(client.getDirectoryClient("d").delete(false)), "409 DirectoryNotEmpty");
  assert.equal(await refusal(client.getDirectoryClient("e").delete(false)), "409 DirectoryNotEmpty");
  await client.getDirectoryClient("d").delete(true);
  assert.deepEqual(await listed(client, "", true), ["d-2", "e/f"]);
  await client.getFileClient("d-2").delete();
  await client.getDirectoryClient("e").delete(true);
  assert.deepEqual(await listed(client, "", true), []);
  assert.equal(await refusal(client.getDirectoryClient("e").delete(true)), "404 PathNotFound");
});

test("flat account: what needs a hierarchical namespace is refused by name", async () => {
  const client = await filesystem();
  await write(client, "f", "x");
  const file = client.getFileClient("f");
  assert.equal(await refusal(file.create({ permissions: "0777" })), "400 HierarchicalNamespaceNotEnabled");
  assert.equal((await refusal(file.getAccessControl())).slice(0, 3), "400");
  const read = { read: true, write: false, execute: false };
  const entry = { accessControlType: "user", entityId: "", defaultScope: false, permissions: read } as const;
  assert.equal(await refusal(file.setAccessControl([entry])), "400 HierarchicalNamespaceNotEnabled");
  const source = { "x-ms-version": "2025-05-05", "x-ms-rename-source": `/${client.name}/f` };
  assert.equal((await clients.raw("PUT", `/${client.name}/g`, { headers: source })).status, 501);
  const told = await clients.raw("HEAD", `/${client.name}?resource=filesystem`, { headers: { "x-ms-version": "2025-05-05" } });
  assert.deepEqual([told.status, told.headers.get("x-ms-namespace-enabled")], [200, "false"]);
  assert.equal((await file.readToBuffer()).toString(), "x");
});
