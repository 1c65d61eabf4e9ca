/** Data Lake Storage by its SDK, against a whole stamp in one process. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import type { DataLakeFileSystemClient } from "@azure/storage-file-datalake";
import { failure } from "../conformance/target.ts";
import { type Lake, refusal, startLake, write } from "./lake.ts";

let lake: Lake;
before(async () => {
  lake = await startLake();
});
after(() => lake.stop());
const filesystem = () => lake.filesystem();

async function listed(client: DataLakeFileSystemClient, options: { path?: string; recursive?: boolean; maxPageSize?: number } = {}) {
  const { maxPageSize = 5_000, ...rest } = options;
  const names: string[] = [];
  for await (const page of client.listPaths({ recursive: true, ...rest }).byPage({ maxPageSize }))
    for (const { name, isDirectory, contentLength } of page.pathItems ?? [])
      names.push(`${name}${isDirectory ? "/" : `:${contentLength}`}`);
  return names;
}

const read = async (client: DataLakeFileSystemClient, path: string): Promise<string> =>
  (await client.getFileClient(path).readToBuffer()).toString();
test("datalake: a file is appended in any order, flushed, read, and shown with the directories on its way", async () => {
  const client = await filesystem();
  const file = client.getFileClient("a/b/f.txt");
  await file.create({ metadata: { of: "me" } });
  await file.append("world", 6, 5);
  await file.append("hello!", 0, 6);
  await file.append("hello ", 0, 6);
  assert.equal((await file.getProperties()).contentLength, 0, "nothing shows before it is flushed");
  assert.equal(await refusal(file.flush(12)), "400 InvalidFlushPosition");
  await file.flush(11, { pathHttpHeaders: { contentType: "text/plain" } });
  assert.equal(await read(client, "a/b/f.txt"), "hello world");
  await file.append("!", 11, 1);
  await file.flush(12);
  const { contentLength, contentType, metadata, owner, resourceType } = (await file.getProperties()) as unknown as Record<string, unknown>;
  assert.deepEqual([contentLength, contentType, metadata, owner], [12, "text/plain", { of: "me" }, "$superuser"]);
  assert.ok(resourceType === undefined || resourceType === "file");
  assert.deepEqual(await listed(client), ["a/", "a/b/", "a/b/f.txt:12"]);
  assert.deepEqual(await listed(client, { path: "a", recursive: false }), ["a/b/"]);
  assert.equal(await refusal(client.getFileClient("a/b").append("x", 0, 1)), "409 PathConflict");
});

test("datalake: an append of another length meets a flush at its position, the file ends where the flush was told", async () => {
  const client = await filesystem();
  const seen = new Set<string>();
  for (let round = 0; round < 40; round++) {
    const file = client.getFileClient(`f${round}`);
    await file.create();
    await file.append("four", 0, 4);
    const refused = ({ code }: { code?: string }): string => code ?? "";
    const flushing = file.flush(4).then(() => "flushed", refused);
    // At another moment of the flush each time.
    for (let turn = 0; turn < round % 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    await Promise.all([flushing, file.append("longer", 0, 6)]);
    const { contentLength } = await file.getProperties();
    seen.add(`${await flushing} ${contentLength}`);
  }
  for (const one of seen) assert.ok(["flushed 4", "InvalidFlushPosition 0"].includes(one), one);
});

test("datalake: a flush that retains data keeps what is appended behind its position, also while it runs; another drops it", async () => {
  const client = await filesystem();
  const file = client.getFileClient("f");
  await file.create();
  await file.append("cc", 4, 2);
  await file.append("aa", 0, 2);
  await file.append("bb", 2, 2);
  await file.flush(2, { retainUncommittedData: true });
  assert.equal(await read(client, "f"), "aa");
  await file.flush(6);
  assert.equal(await read(client, "f"), "aabbcc");
  for (let at = 6; at < 26; at += 2) {
    if (at === 6) await file.append("dd", at, 2);
    await Promise.all([file.flush(at + 2, { retainUncommittedData: true }), file.append("dd", at + 2, 2)]);
  }
  await file.append("ee", 28, 2);
  await file.flush(28);
  assert.equal(await read(client, "f"), `aabbcc${"dd".repeat(11)}`);
  assert.equal(await refusal(file.flush(30)), "400 InvalidFlushPosition");
});

test("datalake: creations replace, or don't if told so; a path through a file is refused", async () => {
  const client = await filesystem();
  await write(client, "f", "old");
  const file = client.getFileClient("f");
  assert.equal(await refusal(file.create({ conditions: { ifNoneMatch: "*" } })), "409 PathAlreadyExists");
  assert.equal(await read(client, "f"), "old");
  await file.create();
  assert.equal(await read(client, "f"), "");
  assert.equal(await refusal(client.getDirectoryClient("f").create()), "409 ResourceTypeMismatch");
  assert.equal(await refusal(client.getFileClient("f/g").create()), "409 PathConflict");
  const etag = '"0x8000000000000FF"';
  assert.equal(await refusal(client.getFileClient("new").create({ conditions: { ifMatch: etag } })), "412 ConditionNotMet");
  assert.deepEqual(await listed(client), ["f:0"]);
});

test("datalake: a directory is renamed with all below it, a file takes the place of a file, and cycles are refused", async () => {
  const client = await filesystem();
  await write(client, "a/b/f", "content");
  await write(client, "a/b/c/g", "deep");
  await client.getDirectoryClient("a/b").move("z");
  assert.deepEqual(await listed(client), ["a/", "z/", "z/c/", "z/c/g:4", "z/f:7"]);
  assert.equal(await read(client, "z/c/g"), "deep");
  await client.getFileClient("z/f").move("z/c/g");
  assert.equal(await read(client, "z/c/g"), "content");
  assert.deepEqual(await listed(client), ["a/", "z/", "z/c/", "z/c/g:7"]);
  assert.equal(await refusal(client.getDirectoryClient("z").move("z/c/z")), "409 InvalidRenameSourcePath");
  assert.equal(await refusal(client.getFileClient("gone").move("x")), "404 SourcePathNotFound");
  assert.equal(await refusal(client.getDirectoryClient("z").move("no/where")), "404 RenameDestinationParentPathNotFound");
  assert.equal(await refusal(client.getDirectoryClient("a").move("z")), "409 DirectoryNotEmpty", "a directory with content stays");
  assert.equal(await refusal(client.getFileClient("z/c/g").move("a")), "409 InvalidSourceOrDestinationResourceType");
  const kept = { destinationConditions: { ifNoneMatch: "*" } };
  await write(client, "h", "h");
  assert.equal(await refusal(client.getFileClient("h").move("z/c/g", kept)), "409 PathAlreadyExists");
  assert.equal(await refusal(client.getFileClient("h").move("i", { conditions: { ifMatch: '"0x1"' } })), "412 ConditionNotMet");
  assert.deepEqual(await listed(client), ["a/", "h:1", "z/", "z/c/", "z/c/g:7"]);
});

test("datalake: a directory with content is removed only recursively, and then at once", async () => {
  const client = await filesystem();
  await write(client, "d/e/f", "x");
  assert.equal(await refusal(client.getDirectoryClient("d").delete(false)), "409 DirectoryNotEmpty");
  const file = client.getFileClient("d/e/f");
  assert.equal(await refusal(file.delete(false, { conditions: { ifMatch: '"0x1"' } })), "412 ConditionNotMet");
  await client.getDirectoryClient("d").delete(true);
  assert.deepEqual(await listed(client), []);
  assert.equal((await failure(client.getFileClient("d/e/f").read())).statusCode, 404);
  await write(client, "d/e/f", "new");
  assert.equal(await read(client, "d/e/f"), "new");
  await file.delete();
  assert.equal(await file.exists(), false);
  assert.deepEqual(await listed(client), ["d/", "d/e/"]);
});

test("datalake: pages of a recursive list tell each path once, in order, a directory before what is in it", async () => {
  const client = await filesystem();
  const paths = Array.from({ length: 40 }, (_, i) => `d${i % 4}/f${String(i).padStart(2, "0")}`);
  await Promise.all(paths.map((path) => client.getFileClient(path).create()));
  const expected = [...paths.map((path) => `${path}:0`), "d0/", "d1/", "d2/", "d3/"].sort();
  for (const maxPageSize of [1, 7, 44, 100]) assert.deepEqual(await listed(client, { maxPageSize }), expected, `${maxPageSize}`);
  assert.equal(await refusal(listed(client, { path: "gone" })), "404 PathNotFound");
});

test("datalake: a leased file is written, renamed and removed by the holder of its lease only", async () => {
  const client = await filesystem();
  await write(client, "f", "x");
  const file = client.getFileClient("f");
  const lease = file.getDataLakeLeaseClient();
  const { leaseId = "" } = await lease.acquireLease(60);
  assert.equal(await refusal(file.append("y", 1, 1)), "412 LeaseIdMissing");
  assert.equal(await refusal(file.delete()), "412 LeaseIdMissing");
  assert.equal(await refusal(file.move("g")), "412 LeaseIdMissing");
  await file.append("y", 1, 1, { conditions: { leaseId } });
  await file.flush(2, { conditions: { leaseId } });
  await file.move("g", { conditions: { leaseId } });
  assert.equal(await read(client, "g"), "xy");
});

test("datalake: both doors have the same files, and the Blob door refuses by name what it can't keep", async () => {
  const client = await filesystem();
  await write(client, "a/f", "shared");
  const container = BlobServiceClient.fromConnectionString(lake.connectionString).getContainerClient(client.name);
  const blob = container.getBlockBlobClient("a/f");
  assert.equal((await blob.downloadToBuffer()).toString(), "shared");
  await blob.setMetadata({ told: "there" });
  assert.deepEqual((await client.getFileClient("a/f").getProperties()).metadata, { told: "there" });
  assert.deepEqual((await container.getBlobClient("a").getProperties()).metadata, { hdi_isfolder: "true" });
  assert.equal(await refusal(blob.createSnapshot()), "501 NotImplemented");
  assert.equal(await read(client, "a/f"), "shared");
});

test("datalake: access control is shown as the service gives it to an owner with the key", async () => {
  const client = await filesystem();
  const directory = client.getDirectoryClient("d");
  await directory.create();
  const { permissions, owner, acl } = await directory.getAccessControl();
  assert.deepEqual(
    [owner, permissions?.owner.write, permissions?.group.write, permissions?.other.read],
    ["$superuser", true, false, false],
  );
  assert.equal(acl.length, 3);
});
