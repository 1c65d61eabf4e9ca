/** Access tiers and expiry. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { blockId, type Clients, failure, readableUrl } from "./target.ts";

export function tierSuite(clients: () => Clients): void {
  describe("tiers and expiry", () => {
    test("a blob is Hot until it is told otherwise", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.upload("1", 1);
      const fresh = await client.getProperties();
      assert.deepEqual([fresh.accessTier, fresh.accessTierInferred, fresh.accessTierChangedOn], ["Hot", true, undefined]);
      for (const tier of ["Cool", "Cold", "Hot"]) {
        await client.setAccessTier(tier);
        const set = await client.getProperties();
        assert.deepEqual([set.accessTier, set.accessTierInferred], [tier, undefined]);
        assert.ok(set.accessTierChangedOn);
      }
      const made = container.getBlockBlobClient("made");
      await made.upload("1", 1, { tier: "Cool" });
      assert.equal((await made.getProperties()).accessTier, "Cool");
      await made.stageBlock(blockId(1), "x", 1);
      await made.commitBlockList([blockId(1)], { tier: "Cold" });
      assert.equal((await made.getProperties()).accessTier, "Cold");
      const lukewarm = { headers: { "x-ms-access-tier": "Lukewarm" }, body: "" };
      assert.equal((await clients().raw("PUT", `/${container.containerName}/made?comp=tier`, lukewarm)).status, 400);
      for await (const blob of container.listBlobsFlat({ prefix: "made" })) assert.equal(blob.properties.accessTier, "Cold");
    });

    test("an archived blob can't be read or changed until it is out of the archive", async () => {
      const client = (await clients().container()).getBlockBlobClient("b");
      await client.upload("cold", 4);
      await client.setAccessTier("Archive");
      assert.equal((await client.getProperties()).accessTier, "Archive");
      for (const work of [
        () => client.download(),
        () => client.setMetadata({ a: "1" }),
        () => client.setHTTPHeaders({}),
        () => client.createSnapshot(),
      ]) {
        const error = await failure(work());
        assert.deepEqual([error.statusCode, error.code], [409, "BlobArchived"]);
      }
      await client.setTags({ a: "1" });
      await client.setAccessTier("Hot", { rehydratePriority: "High" });
      assert.equal((await client.downloadToBuffer()).toString(), "cold");
    });

    test("Copy Blob to an online tier takes an archived source out of the archive; without one, and over itself, it is refused", async () => {
      const container = await clients().container();
      const source = container.getBlockBlobClient("source");
      await source.upload("cold", 4, { metadata: { a: "1" } });
      await source.setAccessTier("Archive");
      const snapshotless = await source.getProperties();
      for (const tier of ["Hot", "Cool", "Cold"]) {
        const target = container.getBlockBlobClient(`to-${tier}`);
        const copied = await (await target.beginCopyFromURL(source.url, { tier, rehydratePriority: "High" })).pollUntilDone();
        assert.equal(copied.copyStatus, "success");
        const { accessTier, archiveStatus, metadata } = await target.getProperties();
        assert.deepEqual([accessTier, archiveStatus, metadata], [tier, undefined, { a: "1" }]);
        assert.equal((await target.downloadToBuffer()).toString(), "cold");
      }
      const { accessTier, etag } = await source.getProperties();
      assert.deepEqual([accessTier, etag], ["Archive", snapshotless.etag], "the source stays as it is");
      const target = container.getBlockBlobClient("refused");
      const url = await readableUrl(source);
      for (const work of [
        () => target.beginCopyFromURL(source.url),
        () => target.beginCopyFromURL(source.url, { tier: "Archive" }),
        () => source.beginCopyFromURL(source.url, { tier: "Hot" }),
        () => target.syncCopyFromURL(url, { tier: "Hot" }),
        () => target.syncUploadFromURL(url, { tier: "Hot" }),
        () => target.stageBlockFromURL(blockId(1), url),
      ]) {
        const error = await failure(work());
        assert.deepEqual([error.statusCode, error.code], [409, "BlobArchived"]);
      }
      assert.equal(await target.exists(), false);
    });

    test("an archived blob keeps its content: whatever replaces it is refused, and blocks for it too; it can be deleted", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      const source = container.getBlockBlobClient("source");
      await source.upload("source", 6);
      await client.upload("old", 3);
      await client.stageBlock(blockId(1), "new", 3);
      await client.setAccessTier("Archive");
      const { etag } = await client.getProperties();
      const url = await readableUrl(source);
      for (const work of [
        () => client.upload("new", 3, { tier: "Hot" }),
        () => client.stageBlock(blockId(2), "new", 3),
        () => client.commitBlockList([blockId(1)], { tier: "Hot" }),
        () => client.stageBlockFromURL(blockId(2), url),
        () => client.syncUploadFromURL(url),
        () => client.syncCopyFromURL(url),
        () => client.beginCopyFromURL(source.url, { tier: "Hot" }),
      ]) {
        const error = await failure(work());
        assert.deepEqual([error.statusCode, error.code], [409, "BlobArchived"], `${work}`);
      }
      assert.equal((await failure(client.upload("new", 3, { conditions: { ifNoneMatch: "*" } }))).code, "BlobAlreadyExists");
      const kept = await client.getProperties();
      assert.deepEqual([kept.etag, kept.accessTier, kept.contentLength], [etag, "Archive", 3]);
      await client.delete();
      await client.upload("new", 3);
      assert.equal((await client.downloadToBuffer()).toString(), "new");
    });

    test("an archived snapshot stays in the archive; a copy takes its content out", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.upload("old", 3);
      const snapshot = client.withSnapshot((await client.createSnapshot()).snapshot ?? "");
      await snapshot.setAccessTier("Archive");
      const error = await failure(snapshot.setAccessTier("Hot"));
      assert.deepEqual([error.statusCode, error.code], [409, "BlobOperationNotSupported"]);
      await snapshot.setAccessTier("Archive");
      const copy = container.getBlockBlobClient("copy");
      await (await copy.beginCopyFromURL(snapshot.url, { tier: "Cool" })).pollUntilDone();
      assert.equal((await copy.downloadToBuffer()).toString(), "old");
      assert.equal((await client.getProperties()).accessTier, "Hot");
    });

    test("tiers are for block blobs: those of append and page blobs are refused, whatever asks for them", async () => {
      const container = await clients().container();
      const others = [container.getAppendBlobClient("append"), container.getPageBlobClient("page")] as const;
      await others[0].create();
      await others[1].create(512);
      const types = {
        append: { "x-ms-blob-type": "AppendBlob" },
        page: { "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512" },
      };
      for (const client of others) {
        const copies = container.getBlobClient(`copy of ${client.name}`);
        const { etag } = await client.getProperties();
        const error = await failure(client.setAccessTier("Cool"));
        assert.deepEqual([error.statusCode, error.code], [409, "InvalidBlobType"], client.name);
        const headers = { ...types[client.name as keyof typeof types], "x-ms-access-tier": "Cool" };
        const put = await clients().raw("PUT", `/${container.containerName}/new`, { headers, body: "" });
        assert.deepEqual([put.status, put.headers.get("x-ms-error-code")], [400, "UnsupportedHeader"], client.name);
        const copy = await failure(copies.beginCopyFromURL(client.url, { tier: "Cool" }));
        assert.deepEqual([copy.statusCode, copy.code], [409, "InvalidBlobType"], client.name);
        await (await copies.beginCopyFromURL(client.url)).pollUntilDone();
        assert.equal((await client.getProperties()).etag, etag);
      }
      assert.equal(await container.getBlobClient("new").exists(), false);
    });

    test("a blob that expired is not there", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.upload("1", 1);
      const expire = async (headers: Record<string, string>, name = "b") =>
        (await clients().raw("PUT", `/${container.containerName}/${name}?comp=expiry`, { headers, body: "" })).status;
      assert.equal(await expire({ "x-ms-expiry-option": "RelativeToNow", "x-ms-expiry-time": "3600000" }), 200);
      assert.ok(((await client.getProperties()).expiresOn?.getTime() ?? 0) > Date.now() + 3_000_000);
      assert.equal(await expire({ "x-ms-expiry-option": "NeverExpire" }), 200);
      assert.equal((await client.getProperties()).expiresOn, undefined);
      assert.equal(await expire({ "x-ms-expiry-option": "Absolute", "x-ms-expiry-time": new Date(Date.now() - 5000).toUTCString() }), 400);
      assert.equal(await expire({ "x-ms-expiry-option": "Sometime" }), 400);
      assert.equal(await expire({}), 400);
      // Beyond the year 9999. Times of more than 63 bits once counted as times long ago, and the blob was gone.
      for (const option of ["RelativeToNow", "RelativeToCreation"]) {
        for (const time of ["253402300799999", "999999999999999"]) {
          assert.equal(await expire({ "x-ms-expiry-option": option, "x-ms-expiry-time": time }), 400, `${option} ${time}`);
        }
      }
      assert.equal((await client.getProperties()).expiresOn, undefined);
      await container.getBlockBlobClient("gone").upload("1", 1);
      assert.equal(await expire({ "x-ms-expiry-option": "RelativeToNow", "x-ms-expiry-time": "1" }, "gone"), 200);
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal((await failure(container.getBlockBlobClient("gone").download())).code, "BlobNotFound");
      for await (const blob of container.listBlobsFlat()) assert.equal(blob.name, "b");
      await container.getBlockBlobClient("gone").upload("2", 1, { conditions: { ifNoneMatch: "*" } });
    });
  });
}
