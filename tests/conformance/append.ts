/** Append blobs: made, appended to, sealed, read; positions, limits and the codes of what is refused. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import type { BlobClient } from "@azure/storage-blob";
import { bytes, type Clients, failure, readableUrl } from "./target.ts";

export function appendSuite(clients: () => Clients): void {
  describe("append blobs", () => {
    test("blocks are appended in order and say where they begin", async () => {
      const client = (await clients().container()).getAppendBlobClient("log");
      const made = await client.create({ metadata: { a: "1" }, blobHTTPHeaders: { blobContentType: "text/plain" } });
      assert.ok(made.etag);
      const first = await client.appendBlock("hello ", 6);
      assert.deepEqual([first.blobAppendOffset, first.blobCommittedBlockCount], ["0", 1]);
      assert.notEqual(first.etag, made.etag);
      const second = await client.appendBlock("world", 5);
      assert.deepEqual([second.blobAppendOffset, second.blobCommittedBlockCount], ["6", 2]);
      assert.equal((await client.downloadToBuffer()).toString(), "hello world");
      const properties = await client.getProperties();
      assert.equal(properties.blobType, "AppendBlob");
      assert.equal(properties.blobCommittedBlockCount, 2);
      assert.equal(properties.contentLength, 11);
      assert.equal(properties.contentType, "text/plain");
      assert.deepEqual(properties.metadata, { a: "1" });
      assert.equal(properties.contentMD5, undefined, "an append blob has no MD5 of its own");
    });

    test("large and small blocks mixed are the same bytes when read, and so are ranges over them", async () => {
      const client = (await clients().container()).getAppendBlobClient("mixed");
      await client.create();
      const parts = [bytes(1, 1), bytes(3_000_001, 2), bytes(20_000, 3), bytes(17, 4), bytes(1_048_576, 5)];
      for (const part of parts) await client.appendBlock(part, part.length);
      const whole = Buffer.concat(parts);
      assert.ok(whole.equals(await client.downloadToBuffer()));
      assert.ok(whole.subarray(2_999_990, 3_020_010).equals(await client.downloadToBuffer(2_999_990, 20_020)));
    });

    test("x-ms-blob-condition-appendpos and -maxsize are 412 with codes of their own, and append nothing", async () => {
      const client = (await clients().container()).getAppendBlobClient("log");
      await client.create();
      await client.appendBlock("12345", 5, { conditions: { appendPosition: 0 } });
      const position = await failure(client.appendBlock("x", 1, { conditions: { appendPosition: 4 } }));
      assert.deepEqual([position.statusCode, position.code], [412, "AppendPositionConditionNotMet"]);
      const size = await failure(client.appendBlock("xy", 2, { conditions: { maxSize: 6 } }));
      assert.deepEqual([size.statusCode, size.code], [412, "MaxBlobSizeConditionNotMet"]);
      await client.appendBlock("6", 1, { conditions: { maxSize: 6, appendPosition: 5 } });
      assert.equal((await client.downloadToBuffer()).toString(), "123456");
    });

    test("If-Match and the other conditions hold for appends", async () => {
      const client = (await clients().container()).getAppendBlobClient("log");
      const { etag = "" } = await client.create();
      await client.appendBlock("a", 1, { conditions: { ifMatch: etag } });
      const error = await failure(client.appendBlock("b", 1, { conditions: { ifMatch: etag } }));
      assert.deepEqual([error.statusCode, error.code], [412, "ConditionNotMet"]);
      const exists = await failure(client.create({ conditions: { ifNoneMatch: "*" } }));
      assert.deepEqual([exists.statusCode, exists.code], [409, "BlobAlreadyExists"]);
      assert.equal((await client.createIfNotExists()).succeeded, false);
    });

    test("MD5 and CRC64 of a block are checked and answered", async () => {
      const client = (await clients().container()).getAppendBlobClient("log");
      await client.create();
      const wrong = await failure(client.appendBlock("x", 1, { transactionalContentMD5: Buffer.alloc(16) }));
      assert.equal(wrong.code, "Md5Mismatch");
      const bad = await failure(client.appendBlock("x", 1, { transactionalContentCrc64: Buffer.alloc(8) }));
      assert.equal(bad.code, "Crc64Mismatch");
      const md5 = createHash("md5").update("x").digest();
      const appended = await client.appendBlock("x", 1, { transactionalContentMD5: md5 });
      assert.ok(md5.equals(Buffer.from(appended.contentMD5 ?? [])));
      const plain = await client.appendBlock("123456789", 9);
      assert.equal(
        Buffer.from(plain.xMsContentCrc64 ?? []).toString("hex"),
        Buffer.from("ae8b14860a799888", "hex").reverse().toString("hex"),
      );
    });

    test("a sealed blob takes no more blocks, says so, and can still be read, changed in its metadata and deleted", async () => {
      const container = await clients().container();
      const client = container.getAppendBlobClient("log");
      await client.create();
      await client.appendBlock("x", 1);
      const position = await failure(client.seal({ conditions: { appendPosition: 0 } }));
      assert.equal(position.code, "AppendPositionConditionNotMet");
      assert.ok((await client.seal({ conditions: { appendPosition: 1 } })).etag);
      await client.seal();
      const error = await failure(client.appendBlock("y", 1));
      assert.deepEqual([error.statusCode, error.code], [409, "BlobIsSealed"]);
      await client.setMetadata({ still: "1" });
      assert.equal((await client.getProperties()).isSealed, true);
      assert.equal((await client.download()).isSealed, true);
      for await (const blob of container.listBlobsFlat())
        assert.deepEqual([blob.properties.blobType, blob.properties.isSealed], ["AppendBlob", true]);
      await client.delete();
    });

    test("operations of the other kinds are 409 InvalidBlobType, and the other way round", async () => {
      const container = await clients().container();
      const append = container.getAppendBlobClient("a");
      const block = container.getBlockBlobClient("b");
      await append.create();
      await block.upload("x", 1);
      for (const work of [
        () => container.getAppendBlobClient("b").appendBlock("x", 1),
        () => container.getAppendBlobClient("b").seal(),
        () => container.getBlockBlobClient("a").stageBlock(Buffer.from("1").toString("base64"), "x", 1),
        () => container.getBlockBlobClient("a").commitBlockList([]),
        () => container.getBlockBlobClient("a").getBlockList("all"),
        () => container.getPageBlobClient("a").uploadPages(Buffer.alloc(512), 0, 512),
        () => container.getPageBlobClient("b").getPageRanges(),
        () => container.getPageBlobClient("b").resize(512),
      ]) {
        const error = await failure(work());
        assert.deepEqual([error.statusCode, error.code], [409, "InvalidBlobType"]);
      }
    });

    test("a blob keeps its type: Put Blob and copies over another type are 409 and change nothing; after a deletion they are served", async () => {
      const container = await clients().container();
      const [block, append, page] = ["block", "append", "page"].map((name) => container.getBlobClient(name)) as [
        BlobClient,
        BlobClient,
        BlobClient,
      ];
      await block.getBlockBlobClient().upload("x", 1);
      await append.getAppendBlobClient().create();
      await page.getPageBlobClient().create(512);
      const url = await readableUrl(block);
      const refused: (readonly [BlobClient, () => Promise<unknown>])[] = [
        [block, () => block.getAppendBlobClient().create()],
        [block, () => block.getPageBlobClient().create(512)],
        [block, () => block.beginCopyFromURL(append.url)],
        [block, () => block.beginCopyFromURL(page.url)],
        [append, () => append.getBlockBlobClient().upload("y", 1)],
        [append, () => append.getPageBlobClient().create(512)],
        [append, () => append.getBlockBlobClient().syncUploadFromURL(url)],
        [append, () => append.syncCopyFromURL(url)],
        [append, () => append.beginCopyFromURL(block.url)],
        [page, () => page.getBlockBlobClient().upload("y", 1)],
        [page, () => page.getAppendBlobClient().create()],
        [page, () => page.beginCopyFromURL(append.url)],
      ];
      for (const [client, work] of refused) {
        const before = (await client.getProperties()).etag;
        const error = await failure(work());
        assert.deepEqual([error.statusCode, error.code], [409, "InvalidBlobType"], `${client.name}: ${work}`);
        assert.equal((await client.getProperties()).etag, before, client.name);
      }
      const exists = await failure(append.getBlockBlobClient().upload("y", 1, { conditions: { ifNoneMatch: "*" } }));
      assert.equal(exists.code, "BlobAlreadyExists", "conditions come first");
      await append.delete();
      await append.getBlockBlobClient().upload("y", 1);
      assert.equal((await append.getProperties()).blobType, "BlockBlob");
    });

    test("what can't be appended is refused: nothing there, no bytes, too many, a new blob with a body", async () => {
      const container = await clients().container();
      const missing = await failure(container.getAppendBlobClient("none").appendBlock("x", 1));
      assert.deepEqual([missing.statusCode, missing.code], [404, "BlobNotFound"]);
      await container.getAppendBlobClient("a").create();
      const path = `/${container.containerName}/a`;
      const empty = await clients().raw("PUT", `${path}?comp=appendblock`, { headers: { "content-length": "0" } });
      assert.equal(empty.status, 400);
      const before2022 = { "x-ms-version": "2021-12-02" };
      const large = await clients().raw("PUT", `${path}?comp=appendblock`, { headers: before2022, body: bytes(4 * 1024 * 1024 + 1) });
      assert.deepEqual([large.status, large.headers.get("x-ms-error-code")], [413, "RequestBodyTooLarge"]);
      const withBody = await clients().raw("PUT", path, { headers: { "x-ms-blob-type": "AppendBlob" }, body: "x" });
      assert.equal(withBody.status, 400);
    });

    test("appends of many writers at once all arrive, each once", async () => {
      const client = (await clients().container()).getAppendBlobClient("together");
      await client.create();
      const offsets = await Promise.all(
        Array.from({ length: 24 }, async (_, i) => (await client.appendBlock(String.fromCharCode(97 + i), 1)).blobAppendOffset),
      );
      assert.deepEqual(
        offsets.map(Number).sort((a, b) => a - b),
        Array.from({ length: 24 }, (_, i) => i),
      );
      assert.equal([...(await client.downloadToBuffer()).toString()].sort().join(""), "abcdefghijklmnopqrstuvwx");
    });
  });
}
