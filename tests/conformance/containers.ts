/** Containers: create, properties, metadata, delete, and creating again. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Clients, failure } from "./target.ts";

export function containerSuite(clients: () => Clients): void {
  describe("containers", () => {
    test("a container that was created has properties and metadata", async () => {
      const client = await clients().container({ metadata: { one: "1", two: "zwei drei" } });
      const properties = await client.getProperties();
      assert.deepEqual(properties.metadata, { one: "1", two: "zwei drei" });
      assert.match(properties.etag ?? "", /^"0x[0-9A-F]+"$/);
      assert.equal(properties.leaseState, "available");
      assert.ok(properties.lastModified && Math.abs(properties.lastModified.getTime() - Date.now()) < 60_000);
      assert.ok(await client.exists());
    });

    test("creating what is there is 409 ContainerAlreadyExists", async () => {
      const client = await clients().container();
      const error = await failure(client.create());
      assert.equal(error.statusCode, 409);
      assert.equal(error.code, "ContainerAlreadyExists");
      assert.equal((await client.createIfNotExists()).succeeded, false);
    });

    test("metadata is replaced as a whole and changes the ETag", async () => {
      const client = await clients().container({ metadata: { old: "x" } });
      const before = (await client.getProperties()).etag;
      await client.setMetadata({ fresh: "y" });
      const after = await client.getProperties();
      assert.deepEqual(after.metadata, { fresh: "y" });
      assert.notEqual(after.etag, before);
    });

    test("a deleted container is 404, and so is what was in it", async () => {
      const client = await clients().container();
      await client.getBlockBlobClient("b").upload("x", 1);
      await client.delete();
      assert.equal((await failure(client.getProperties())).statusCode, 404);
      const error = await failure(client.getBlockBlobClient("b").download());
      assert.equal(error.code, "ContainerNotFound");
      assert.equal((await failure(client.delete())).code, "ContainerNotFound");
      assert.equal((await client.deleteIfExists()).succeeded, false);
    });

    test("a container that is created again is empty", async () => {
      const client = await clients().container();
      await client.getBlockBlobClient("ghost").upload("old", 3);
      await client.delete();
      await client.create();
      assert.equal((await failure(client.getBlockBlobClient("ghost").getProperties())).statusCode, 404);
      for await (const blob of client.listBlobsFlat({ includeUncommitedBlobs: true })) assert.fail(`listed ${blob.name}`);
    });

    test("a put into a container that is not there is 404", async () => {
      const client = clients().service.getContainerClient("never-there");
      const error = await failure(client.getBlockBlobClient("b").upload("x", 1));
      assert.equal(error.statusCode, 404);
      assert.equal(error.code, "ContainerNotFound");
    });

    test("public access lets strangers read, and only what it says", async () => {
      const open = await clients().container({ access: "container" });
      const blobs = await clients().container({ access: "blob" });
      const closed = await clients().container();
      for (const client of [open, blobs, closed]) await client.getBlockBlobClient("b").upload("public", 6);
      const status = async (name: string, path: string, method = "GET") =>
        (await clients().raw(method, `/${name}${path}`, { sign: false })).status;
      assert.equal(await status(open.containerName, "/b"), 200);
      assert.equal(await status(blobs.containerName, "/b"), 200);
      assert.equal(await status(closed.containerName, "/b"), 404);
      assert.equal(await status(open.containerName, "?restype=container&comp=list"), 200);
      assert.equal(await status(blobs.containerName, "?restype=container&comp=list"), 404);
      assert.equal(await status(open.containerName, "/b", "DELETE"), 401);
    });

    test("names are checked", async () => {
      for (const [name, code] of [
        ["UPPER", "InvalidResourceName"],
        ["under_score", "InvalidResourceName"],
        ["double--hyphen", "InvalidResourceName"],
        ["ab", "OutOfRangeInput"],
        ["a".repeat(64), "OutOfRangeInput"],
      ] as const) {
        const error = await failure(clients().service.getContainerClient(name).create());
        assert.equal(error.statusCode, 400, name);
        assert.equal(error.code, code, name);
      }
    });

    test("$root holds blobs without a container in their path", async () => {
      const root = clients().service.getContainerClient("$root");
      await root.createIfNotExists();
      await root.getBlockBlobClient("favicon.ico").upload("icon", 4);
      const answer = await clients().raw("GET", "/favicon.ico");
      assert.equal(await answer.text(), "icon");
      await root.delete();
    });

    test("metadata alone can be asked for, of containers and of blobs", async () => {
      const container = await clients().container({ metadata: { of: "container" } });
      await container.getBlockBlobClient("b").upload("x", 1, { metadata: { of: "blob" } });
      for (const method of ["GET", "HEAD"]) {
        const ofContainer = await clients().raw(method, `/${container.containerName}?restype=container&comp=metadata`);
        assert.deepEqual([ofContainer.status, ofContainer.headers.get("x-ms-meta-of")], [200, "container"]);
        const ofBlob = await clients().raw(method, `/${container.containerName}/b?comp=metadata`);
        assert.deepEqual([ofBlob.status, ofBlob.headers.get("x-ms-meta-of")], [200, "blob"]);
        assert.ok(ofBlob.headers.get("etag"));
      }
    });

    test("the account tells its kind, and its service properties", async () => {
      const information = await clients().service.getAccountInfo();
      assert.deepEqual([information.skuName, information.accountKind], ["Standard_LRS", "StorageV2"]);
      assert.ok((await clients().service.getProperties()).deleteRetentionPolicy);
    });
  });
}
