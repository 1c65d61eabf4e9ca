/** Blobs: put, get, properties, metadata, headers, delete, sizes around every internal border. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { bytes, type Clients, failure } from "./target.ts";

const kibibyte = 1024;
const mebibyte = 1024 * 1024;

export function blobSuite(clients: () => Clients): void {
  describe("blobs", () => {
    test("what was put is read back, with its headers, metadata and MD5", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("one");
      const put = await client.upload("hello", 5, {
        metadata: { a: "1" },
        blobHTTPHeaders: {
          blobContentType: "text/plain; charset=utf-8",
          blobContentEncoding: "identity",
          blobContentLanguage: "en",
          blobCacheControl: "no-cache",
          blobContentDisposition: 'attachment; filename="a.txt"',
        },
      });
      const md5 = createHash("md5").update("hello").digest("base64");
      assert.equal(Buffer.from(put.contentMD5 ?? []).toString("base64"), md5);
      const properties = await client.getProperties();
      assert.equal(properties.contentType, "text/plain; charset=utf-8");
      assert.equal(properties.contentEncoding, "identity");
      assert.equal(properties.contentLanguage, "en");
      assert.equal(properties.cacheControl, "no-cache");
      assert.equal(properties.contentDisposition, 'attachment; filename="a.txt"');
      assert.equal(properties.contentLength, 5);
      assert.equal(properties.blobType, "BlockBlob");
      assert.deepEqual(properties.metadata, { a: "1" });
      assert.equal(properties.etag, put.etag);
      assert.equal(Buffer.from(properties.contentMD5 ?? []).toString("base64"), md5);
      assert.equal((await client.downloadToBuffer()).toString(), "hello");
    });

    test("a blob without a content type is application/octet-stream", async () => {
      const container = await clients().container();
      const answer = await clients().raw("PUT", `/${container.containerName}/plain`, {
        body: "x",
        headers: { "x-ms-blob-type": "BlockBlob", "content-type": "" },
      });
      assert.equal(answer.status, 201);
      assert.equal((await container.getBlobClient("plain").getProperties()).contentType, "application/octet-stream");
    });

    for (const size of [0, 1, 16 * kibibyte, 16 * kibibyte + 1, 128 * kibibyte + 1, mebibyte, mebibyte + 1, 9 * mebibyte + 3]) {
      test(`${size} bytes in one put are the same bytes when read`, async () => {
        const container = await clients().container();
        const client = container.getBlockBlobClient("sized");
        const content = bytes(size, size + 1);
        await client.upload(content, size);
        const read = size === 0 ? (await client.download()).contentLength : await client.downloadToBuffer();
        if (size === 0) assert.equal(read, 0);
        else assert.ok(content.equals(read as Buffer));
      });
    }

    test("Put Blob answers the CRC64 of what it took, or the MD5 that the request gave", async () => {
      const container = await clients().container();
      const put = async (headers: Record<string, string>) => {
        const kind = { "x-ms-blob-type": "BlockBlob" };
        return (await clients().raw("PUT", `/${container.containerName}/sums`, { body: "123456789", headers: { ...kind, ...headers } }))
          .headers;
      };
      const crc64 = Buffer.from("ae8b14860a799888", "hex").reverse().toString("base64");
      const md5 = createHash("md5").update("123456789").digest("base64");
      const plain = await put({});
      assert.deepEqual([plain.get("x-ms-content-crc64"), plain.get("content-md5")], [crc64, md5]);
      const given = await put({ "content-md5": md5 });
      assert.deepEqual([given.get("x-ms-content-crc64"), given.get("content-md5")], [null, md5]);
    });

    test("overwriting changes bytes, ETag and properties, and keeps nothing of the old", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("over");
      const first = await client.upload("first", 5, { metadata: { gone: "x" } });
      const content = bytes(3 * mebibyte);
      const second = await client.upload(content, content.length);
      assert.notEqual(first.etag, second.etag);
      assert.ok(content.equals(await client.downloadToBuffer()));
      assert.deepEqual((await client.getProperties()).metadata, {});
    });

    test("metadata and headers are set without touching the bytes", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("meta");
      const put = await client.upload("abc", 3);
      const set = await client.setMetadata({ k: "v" });
      assert.notEqual(set.etag, put.etag);
      await client.setHTTPHeaders({ blobContentType: "text/x-test" });
      const properties = await client.getProperties();
      assert.equal(properties.contentType, "text/x-test");
      assert.deepEqual(properties.metadata, { k: "v" });
      assert.equal((await client.downloadToBuffer()).toString(), "abc");
    });

    test("a deleted blob is 404", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("gone");
      await client.upload("x", 1);
      await client.delete();
      const error = await failure(client.getProperties());
      assert.equal(error.statusCode, 404);
      assert.equal((await failure(client.download())).code, "BlobNotFound");
      assert.equal((await failure(client.delete())).code, "BlobNotFound");
      assert.equal(await client.exists(), false);
    });

    test("names with every kind of character are one blob each", async () => {
      const container = await clients().container();
      const names = [
        "a/b/c",
        "with space",
        "plus+plus",
        "100%",
        "%2F",
        "ümläut",
        "日本語",
        "😀",
        "a?b",
        "a#b",
        "a&b=c",
        "quote'\"",
        "<xml>",
      ];
      for (const name of names) await container.getBlockBlobClient(name).upload(name, Buffer.byteLength(name));
      for (const name of names) {
        assert.equal((await container.getBlockBlobClient(name).downloadToBuffer()).toString(), name);
      }
      const listed: string[] = [];
      for await (const blob of container.listBlobsFlat()) listed.push(blob.name);
      assert.deepEqual(listed.sort(), [...names].sort());
    });

    test("a name of 1,024 characters fits, one more does not", async () => {
      const container = await clients().container();
      await container.getBlockBlobClient("n".repeat(1024)).upload("x", 1);
      const error = await failure(container.getBlockBlobClient("n".repeat(1025)).upload("x", 1));
      assert.equal(error.statusCode, 400);
    });

    test("an upload of a stream and its download as a stream are the same bytes", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("stream");
      const content = bytes(6 * mebibyte + 11, 5);
      const { Readable } = await import("node:stream");
      await client.uploadStream(Readable.from([content.subarray(0, 100), content.subarray(100)]), mebibyte, 3);
      const { readableStreamBody } = await client.download();
      const chunks: Buffer[] = [];
      for await (const chunk of readableStreamBody ?? []) chunks.push(chunk as Buffer);
      assert.ok(content.equals(Buffer.concat(chunks)));
    });
  });
}
