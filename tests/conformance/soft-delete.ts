/** Soft delete of blobs: what is deleted or overwritten is kept, listed, and comes back. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { BlobItem, ContainerClient } from "@azure/storage-blob";
import { type Clients, failure } from "./target.ts";

async function list(container: ContainerClient): Promise<BlobItem[]> {
  const items: BlobItem[] = [];
  for await (const item of container.listBlobsFlat({ includeDeleted: true, includeSnapshots: true })) items.push(item);
  return items;
}

const names = (items: readonly BlobItem[]): string[] =>
  items.map((item) => `${item.name}${item.snapshot ? " snapshot" : ""}${item.deleted ? " deleted" : ""}`);

export function softDeleteSuite(clients: () => Clients): void {
  describe("soft delete", () => {
    before(async () => {
      await clients().service.setProperties({ deleteRetentionPolicy: { enabled: true, days: 7 } });
    });
    after(async () => {
      await clients().service.setProperties({ deleteRetentionPolicy: { enabled: false } });
    });

    test("a deleted blob is gone for everybody, is listed as deleted, and comes back", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.upload("kept", 4, { metadata: { a: "1" }, tags: { t: "1" } });
      await client.delete();
      assert.equal((await failure(client.download())).code, "BlobNotFound");
      for await (const blob of container.listBlobsFlat()) assert.fail(`listed ${blob.name}`);
      const [item] = await list(container);
      assert.equal(item?.deleted, true);
      assert.equal(item?.properties.remainingRetentionDays, 7);
      assert.ok(item?.properties.deletedOn);
      await client.undelete();
      assert.equal((await client.downloadToBuffer()).toString(), "kept");
      assert.deepEqual((await client.getProperties()).metadata, { a: "1" });
      assert.deepEqual((await client.getTags()).tags, { t: "1" });
      await client.undelete();
    });

    test("what is overwritten is kept as a deleted snapshot", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.upload("first", 5);
      await client.upload("second", 6);
      assert.deepEqual(names(await list(container)), ["b snapshot deleted", "b"]);
      const before = (await list(container))[0]?.snapshot ?? "";
      assert.equal((await failure(client.withSnapshot(before).download())).statusCode, 404);
      await client.undelete();
      assert.deepEqual(names(await list(container)), ["b snapshot", "b"]);
      assert.equal((await client.withSnapshot(before).downloadToBuffer()).toString(), "first");
    });

    test("snapshots are deleted and come back with their blob", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.upload("1", 1);
      const { snapshot = "" } = await client.createSnapshot();
      await client.delete({ deleteSnapshots: "include" });
      assert.deepEqual(names(await list(container)), ["b snapshot deleted", "b deleted"]);
      await client.undelete();
      assert.equal((await client.withSnapshot(snapshot).downloadToBuffer()).toString(), "1");
      assert.equal((await failure(client.delete())).code, "SnapshotsPresent", "it counts again");
      await client.withSnapshot(snapshot).delete();
      assert.deepEqual(names(await list(container)), ["b snapshot deleted", "b"]);
      await client.delete();
    });

    test("a new blob takes the place of a deleted one, which is kept as a snapshot", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.upload("old", 3);
      await client.delete();
      await client.upload("new", 3, { conditions: { ifNoneMatch: "*" } });
      assert.deepEqual(names(await list(container)), ["b snapshot deleted", "b"]);
      await client.undelete();
      const [kept] = await list(container);
      assert.equal((await client.withSnapshot(kept?.snapshot ?? "").downloadToBuffer()).toString(), "old");
      assert.equal((await client.downloadToBuffer()).toString(), "new");
    });

    test("only deleted ones are listed on request", async () => {
      const container = await clients().container();
      for (const name of ["a", "b", "c"]) await container.getBlockBlobClient(name).upload("x", 1);
      await container.getBlockBlobClient("b").delete();
      const answer = await clients().raw("GET", `/${container.containerName}?restype=container&comp=list&showonly=deleted&include=deleted`);
      const text = await answer.text();
      assert.deepEqual(
        [...text.matchAll(/<Name>(.*?)<\/Name>/g)].map((match) => match[1]),
        ["b"],
      );
    });

    test("with soft delete switched off a blob that has deleted snapshots stays, unless its snapshots are to go with it", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.upload("first", 5);
      await client.upload("second", 6);
      try {
        await clients().service.setProperties({ deleteRetentionPolicy: { enabled: false } });
        const error = await failure(client.delete());
        assert.deepEqual([error.statusCode, error.code], [409, "SnapshotsPresent"]);
        assert.match(error.message, /^This operation is not permitted because the blob has snapshots\./);
        await client.undelete();
        assert.deepEqual(names(await list(container)), ["b snapshot", "b"]);
        await client.delete({ deleteSnapshots: "include" });
        assert.deepEqual(names(await list(container)), []);
      } finally {
        await clients().service.setProperties({ deleteRetentionPolicy: { enabled: true, days: 7 } });
      }
    });

    test("what was never there can't be undeleted; nothing is deleted for good where the account does not allow it", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("never");
      assert.equal((await failure(client.undelete())).code, "BlobNotFound");
      await client.upload("1", 1);
      const { snapshot = "" } = await client.createSnapshot();
      await client.withSnapshot(snapshot).delete();
      const path = `/${container.containerName}/never?snapshot=${encodeURIComponent(snapshot)}&deletetype=permanent`;
      assert.equal((await clients().raw("DELETE", path)).status, 409);
      assert.equal((await clients().raw("DELETE", `/${container.containerName}/never?deletetype=permanent`)).status, 400);
    });
  });
}
