/** Versions of blobs, and containers that are restored: what the operator of an account switches on. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { BlobItem, ContainerClient } from "@azure/storage-blob";
import { type BlobSettings, type Clients, failure } from "./target.ts";

async function list(container: ContainerClient, options = {}): Promise<BlobItem[]> {
  const items: BlobItem[] = [];
  for await (const item of container.listBlobsFlat({ includeVersions: true, ...options })) items.push(item);
  return items;
}

export function versionSuite(clients: () => Clients): void {
  describe("versions and restored containers", () => {
    const set = async (settings: BlobSettings): Promise<void> => {
      const { setBlobSettings } = clients().target;
      assert.ok(setBlobSettings);
      await setBlobSettings(settings);
    };
    before(async () => {
      await set({ versioning: true, containerDeleteRetentionDays: 3 });
    });
    after(async () => {
      await set({ versioning: false, containerDeleteRetentionDays: 0 });
      await clients().service.setProperties({ deleteRetentionPolicy: { enabled: false } });
    });

    test("an earlier version of an append blob is promoted as it was", async () => {
      const container = await clients().container();
      const log = container.getAppendBlobClient("log");
      await log.create();
      await log.appendBlock("hello", 5);
      const { versionId = "" } = await log.getProperties();
      await log.setMetadata({ made: "another version" });
      await log.appendBlock("world", 5);
      await (await log.beginCopyFromURL(log.withVersion(versionId).url)).pollUntilDone();
      assert.equal((await log.downloadToBuffer()).toString(), "hello");
    });

    test("every write keeps what was there as a version that can be read and listed", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      const versions: string[] = [];
      for (const text of ["one", "two", "three"]) {
        const { versionId = "" } = await client.upload(text, text.length, { metadata: { text } });
        versions.push(versionId);
      }
      assert.deepEqual([...versions].sort(), versions);
      assert.equal(new Set(versions).size, 3);
      for (const [i, text] of ["one", "two", "three"].entries()) {
        const version = client.withVersion(versions[i] ?? "");
        assert.equal((await version.downloadToBuffer()).toString(), text);
        const properties = await version.getProperties();
        assert.deepEqual(
          [properties.versionId, properties.isCurrentVersion ?? false, properties.metadata],
          [versions[i], i === 2, { text }],
        );
      }
      assert.deepEqual(
        (await list(container)).map((item) => `${item.versionId} ${item.isCurrentVersion ?? false}`),
        versions.map((version, i) => `${version} ${i === 2}`),
      );
      const plain: string[] = [];
      for await (const item of container.listBlobsFlat()) plain.push(item.name);
      assert.deepEqual(plain, ["b"]);
    });

    test("metadata make a version of the same content; headers and tags don't", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      const first = (await client.upload("same", 4, { metadata: { v: "1" } })).versionId ?? "";
      const second = (await client.setMetadata({ v: "2" })).versionId ?? "";
      assert.notEqual(first, second);
      await client.setHTTPHeaders({ blobContentType: "x/y" });
      await client.setTags({ a: "1" });
      assert.equal((await list(container)).length, 2);
      await client.withVersion(first).delete();
      assert.equal((await client.downloadToBuffer()).toString(), "same");
      assert.equal((await list(container)).length, 1);
    });

    test("a deleted blob lives on as versions; the current one is not deleted by its id", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      const { versionId = "" } = await client.upload("kept", 4);
      const error = await failure(client.withVersion(versionId).delete());
      assert.deepEqual([error.statusCode, error.code], [403, "OperationNotAllowedOnRootBlob"]);
      await client.delete();
      assert.equal((await failure(client.download())).code, "BlobNotFound");
      assert.equal((await client.withVersion(versionId).downloadToBuffer()).toString(), "kept");
      assert.deepEqual(
        (await list(container)).map((item) => [item.versionId, item.isCurrentVersion]),
        [[versionId, undefined]],
      );
      const only = await list(container, { includeVersions: false, includeDeletedWithVersions: true });
      assert.deepEqual(
        only.map((item) => [item.name, item.hasVersionsOnly]),
        [["b", true]],
      );
      await client.withVersion(versionId).delete();
      assert.equal((await failure(client.withVersion(versionId).download())).code, "BlobNotFound");
      assert.deepEqual(await list(container), []);
    });

    test("a snapshot is taken of a version, and both stay", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      const { versionId = "" } = await client.upload("text", 4);
      const { snapshot = "", versionId: current = "" } = await client.createSnapshot();
      assert.notEqual(current, versionId);
      assert.deepEqual(
        (await list(container, { includeSnapshots: true })).map((item) => item.snapshot ?? item.versionId).sort(),
        [versionId, snapshot, current].sort(),
      );
      assert.equal((await client.withVersion(versionId).downloadToBuffer()).toString(), "text");
      await client.delete({ deleteSnapshots: "include" });
      assert.equal((await client.withVersion(current).downloadToBuffer()).toString(), "text");
    });

    test("a version that is deleted softly comes back, or is deleted for good where the account allows it", async () => {
      // The SDK does not know AllowPermanentDelete.
      const policy = "<Enabled>true</Enabled><Days>2</Days><AllowPermanentDelete>true</AllowPermanentDelete>";
      const body = `<StorageServiceProperties><DeleteRetentionPolicy>${policy}</DeleteRetentionPolicy></StorageServiceProperties>`;
      assert.equal((await clients().raw("PUT", "?restype=service&comp=properties", { body })).status, 202);
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      const { versionId = "" } = await client.upload("1", 1);
      await client.upload("2", 1);
      await client.withVersion(versionId).delete();
      assert.deepEqual(
        (await list(container, { includeDeleted: true })).map((item) => item.deleted ?? false),
        [true, false],
      );
      await client.undelete();
      assert.equal((await client.withVersion(versionId).downloadToBuffer()).toString(), "1");
      await client.withVersion(versionId).delete();
      const path = `/${container.containerName}/b?versionid=${encodeURIComponent(versionId)}&deletetype=permanent`;
      assert.equal((await clients().raw("DELETE", path)).status, 202);
      assert.equal((await list(container, { includeDeleted: true })).length, 1);
    });

    test("a deleted container is listed and restored with everything that was inside", async () => {
      const container = await clients().container({ metadata: { a: "1" } });
      await container.getBlockBlobClient("inside").upload("still here", 10);
      await container.delete();
      assert.equal(await container.exists(), false);
      const find = async () => {
        for await (const item of clients().service.listContainers({ prefix: container.containerName, includeDeleted: true })) {
          if (item.deleted) return item;
        }
        return undefined;
      };
      const item = await find();
      assert.equal(item?.properties.remainingRetentionDays, 3);
      await container.create();
      const taken = await failure(clients().service.undeleteContainer(container.containerName, item?.version ?? ""));
      assert.deepEqual([taken.statusCode, taken.code], [409, "ContainerAlreadyExists"]);
      await container.delete();
      await clients().service.undeleteContainer(container.containerName, item?.version ?? "");
      assert.equal((await container.getBlockBlobClient("inside").downloadToBuffer()).toString(), "still here");
      assert.deepEqual((await container.getProperties()).metadata, { a: "1" });
      const unknown = await failure(clients().service.undeleteContainer(container.containerName, "0000000000000001"));
      assert.equal(unknown.statusCode, 404);
    });
  });
}
