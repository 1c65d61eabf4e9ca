/** Copies: asynchronous, within the request, and block by block or page by page from a URL; sources, conditions, rights, aborts. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { BlobSASPermissions, generateBlobSASQueryParameters, StorageSharedKeyCredential } from "@azure/storage-blob";
import { blockId, bytes, type Clients, failure, readableUrl } from "./target.ts";

const mebibyte = 1024 * 1024;

export function copySuite(clients: () => Clients): void {
  const credential = () => new StorageSharedKeyCredential(clients().target.accountName, clients().target.accountKey);

  describe("copies", () => {
    test("a copy has the bytes, headers and metadata of its source, and tells where it came from", async () => {
      const container = await clients().container();
      const source = container.getBlockBlobClient("source");
      const content = bytes(3 * mebibyte + 5);
      await source.upload(content, content.length, {
        metadata: { of: "source" },
        blobHTTPHeaders: { blobContentType: "text/x", blobCacheControl: "no" },
      });
      const target = container.getBlockBlobClient("target");
      const done = await (await target.beginCopyFromURL(source.url)).pollUntilDone();
      assert.equal(done.copyStatus, "success");
      const properties = await target.getProperties();
      assert.equal(properties.copyId, done.copyId);
      assert.equal(properties.copySource, source.url);
      assert.equal(properties.copyProgress, `${content.length}/${content.length}`);
      assert.ok(properties.copyCompletedOn);
      assert.deepEqual([properties.contentType, properties.cacheControl, properties.metadata], ["text/x", "no", { of: "source" }]);
      assert.deepEqual(properties.contentMD5, (await source.getProperties()).contentMD5);
      assert.ok(content.equals(await target.downloadToBuffer()));
      await source.delete();
      assert.ok(content.equals(await target.downloadToBuffer()), "a copy does not need its source");
      await target.setHTTPHeaders({ blobContentType: "text/y" });
      assert.equal((await target.getProperties()).copyId, undefined);
    });

    test("a copy may have metadata of its own, and may replace its own source", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("self");
      await client.upload("same", 4, { metadata: { a: "1" } });
      await (await client.beginCopyFromURL(client.url, { metadata: { b: "2" } })).pollUntilDone();
      assert.deepEqual((await client.getProperties()).metadata, { b: "2" });
      assert.equal((await client.downloadToBuffer()).toString(), "same");
    });

    test("a snapshot of an append blob is copied as it was, also over its own blob", async () => {
      const container = await clients().container();
      const log = container.getAppendBlobClient("log");
      await log.create();
      await log.appendBlock("hello", 5);
      const { snapshot = "" } = await log.createSnapshot();
      await log.appendBlock("world", 5);
      const target = container.getAppendBlobClient("target");
      await (await target.beginCopyFromURL(log.withSnapshot(snapshot).url)).pollUntilDone();
      const { copyProgress, blobCommittedBlockCount } = await target.getProperties();
      assert.deepEqual([copyProgress, blobCommittedBlockCount, (await target.downloadToBuffer()).toString()], ["5/5", 1, "hello"]);
      await target.appendBlock("!", 1);
      assert.equal((await target.downloadToBuffer()).toString(), "hello!");
      await (await log.beginCopyFromURL(log.withSnapshot(snapshot).url)).pollUntilDone();
      assert.equal((await log.downloadToBuffer()).toString(), "hello");
      assert.equal((await log.withSnapshot(snapshot).downloadToBuffer()).toString(), "hello");
    });

    test("the list of committed blocks goes along", async () => {
      const container = await clients().container();
      const source = container.getBlockBlobClient("blocks");
      for (let i = 0; i < 3; i++) await source.stageBlock(blockId(i), bytes(100_000, i), 100_000);
      await source.commitBlockList([blockId(2), blockId(0), blockId(1)]);
      const target = container.getBlockBlobClient("copied");
      await (await target.beginCopyFromURL(source.url)).pollUntilDone();
      const names = (await target.getBlockList("committed")).committedBlocks?.map((block) => block.name);
      assert.deepEqual(names, [blockId(2), blockId(0), blockId(1)]);
      assert.ok((await source.downloadToBuffer()).equals(await target.downloadToBuffer()));
    });

    test("append and page blobs stay what they are; zeros stay zeros", async () => {
      const container = await clients().container();
      const log = container.getAppendBlobClient("log");
      await log.create();
      for (const part of ["one ", "two ", "three"]) await log.appendBlock(part, part.length);
      const logCopy = container.getAppendBlobClient("log-copy");
      await (await logCopy.beginCopyFromURL(log.url)).pollUntilDone();
      assert.deepEqual(
        [(await logCopy.getProperties()).blobCommittedBlockCount, (await logCopy.downloadToBuffer()).toString()],
        [3, "one two three"],
      );
      await logCopy.appendBlock("!", 1);
      assert.equal((await log.getProperties()).contentLength, 13);

      const disk = container.getPageBlobClient("disk");
      await disk.create(1024 ** 4, { blobSequenceNumber: 7 });
      for (const at of [0, 700 * 1024, 512 * mebibyte, 1024 ** 4 - 4096]) await disk.uploadPages(bytes(4096, at % 97), at, 4096);
      const diskCopy = container.getPageBlobClient("disk-copy");
      assert.equal((await (await diskCopy.beginCopyFromURL(disk.url)).pollUntilDone()).copyStatus, "success");
      const properties = await diskCopy.getProperties();
      assert.deepEqual([properties.blobType, properties.contentLength, properties.blobSequenceNumber], ["PageBlob", 1024 ** 4, 7]);
      assert.deepEqual((await diskCopy.getPageRanges()).pageRange, (await disk.getPageRanges()).pageRange);
      assert.ok((await disk.downloadToBuffer(699 * 1024, 8192)).equals(await diskCopy.downloadToBuffer(699 * 1024, 8192)));
      await diskCopy.uploadPages(bytes(512, 3), 0, 512);
      assert.ok(bytes(4096, 0).equals(await disk.downloadToBuffer(0, 4096)), "what is written into the copy is not in the source");
      const onItself = await failure(disk.beginCopyFromURL(disk.url));
      assert.deepEqual([onItself.statusCode, onItself.code], [501, "NotImplemented"]);
      assert.ok(bytes(4096, 0).equals(await disk.downloadToBuffer(0, 4096)), "a copy onto itself that is refused removes nothing");
    });

    test("snapshots are sources; tags and tier of the copy are those that were asked for", async () => {
      const container = await clients().container();
      const source = container.getBlockBlobClient("source");
      await source.upload("then", 4, { tags: { of: "source" } });
      const snapshot = source.withSnapshot((await source.createSnapshot()).snapshot ?? "");
      await source.upload("now", 3);
      const target = container.getBlockBlobClient("target");
      await (await target.beginCopyFromURL(snapshot.url, { tags: { of: "copy" }, tier: "Cool" })).pollUntilDone();
      assert.equal((await target.downloadToBuffer()).toString(), "then");
      assert.deepEqual((await target.getTags()).tags, { of: "copy" });
      const properties = await target.getProperties();
      assert.equal(properties.accessTier, "Cool");
      assert.match(properties.copySource ?? "", /snapshot=/);
      await target.syncCopyFromURL(await readableUrl(snapshot, "rt"), { copySourceTags: "COPY" });
      assert.deepEqual((await target.getTags()).tags, { of: "source" });
    });

    test("conditions of source and destination are looked at, each with its code", async () => {
      const container = await clients().container();
      const source = container.getBlockBlobClient("source");
      const { etag = "" } = await source.upload("x", 1);
      const target = container.getBlockBlobClient("target");
      const stale = await failure(target.beginCopyFromURL(source.url, { sourceConditions: { ifMatch: '"0x8D0000000000000"' } }));
      assert.deepEqual([stale.statusCode, stale.code], [412, "SourceConditionNotMet"]);
      const known = await failure(target.syncCopyFromURL(await readableUrl(source), { sourceConditions: { ifNoneMatch: etag } }));
      assert.deepEqual([known.statusCode, known.response?.headers.get("x-ms-error-code")], [304, "CannotVerifyCopySource"]);
      await target.beginCopyFromURL(source.url, { sourceConditions: { ifMatch: etag } });
      const there = await failure(target.beginCopyFromURL(source.url, { conditions: { ifNoneMatch: "*" } }));
      assert.deepEqual([there.statusCode, there.code], [409, "BlobAlreadyExists"]);
      const other = await failure(target.beginCopyFromURL(source.url, { conditions: { ifMatch: '"0x8D0000000000000"' } }));
      assert.deepEqual([other.statusCode, other.code], [412, "TargetConditionNotMet"]);
    });

    test("a source that is not there, not ours, or no URL is told apart", async () => {
      const container = await clients().container();
      const target = container.getBlockBlobClient("target");
      const missing = await failure(target.beginCopyFromURL(container.getBlobClient("none").url));
      assert.deepEqual([missing.statusCode, missing.code], [404, "CannotVerifyCopySource"]);
      const foreign = await failure(target.syncCopyFromURL("http://169.254.169.254/latest/meta-data/x"));
      assert.deepEqual([foreign.statusCode, foreign.code], [400, "CannotVerifyCopySource"]);
      assert.match(foreign.message, /hostSuffixes/);
      const nonsense = await failure(target.syncCopyFromURL("nonsense"));
      assert.deepEqual([nonsense.statusCode, nonsense.code], [400, "InvalidHeaderValue"]);
      assert.equal(await target.exists(), false);
    });

    test("whoever is let in by a SAS needs a right to the source too: a SAS, or that it is public", async () => {
      const container = await clients().container();
      await container.getBlockBlobClient("source").upload("secret", 6);
      const sas = generateBlobSASQueryParameters(
        {
          containerName: container.containerName,
          permissions: BlobSASPermissions.parse("cw") as never,
          expiresOn: new Date(Date.now() + 3_600_000),
        },
        credential(),
      );
      const put = (source: string) =>
        clients().raw("PUT", `/${container.containerName}/target?${sas}`, {
          sign: false,
          headers: { "x-ms-copy-source": source, "x-ms-requires-sync": "true", "x-ms-version": "2025-01-05", "content-length": "0" },
        });
      const closed = await put(container.getBlobClient("source").url);
      assert.equal(closed.status, 401);
      assert.equal(closed.headers.get("x-ms-error-code"), "CannotVerifyCopySource");
      assert.equal(closed.headers.get("x-ms-copy-source-error-code"), "NoAuthenticationInformation");
      const open = await put(await readableUrl(container.getBlobClient("source")));
      assert.equal(open.status, 202, await open.text());
      const copied = container.getBlockBlobClient("target");
      assert.equal((await copied.downloadToBuffer()).toString(), "secret");
      assert.ok(!(await copied.getProperties()).copySource?.includes("sig="), "the secret of the source is not shown");
      const publicContainer = await clients().container({ access: "blob" });
      await publicContainer.getBlockBlobClient("source").upload("public", 6);
      assert.equal((await put(publicContainer.getBlobClient("source").url)).status, 202);
    });

    test("a private source of the same account: the account's key is a right for Copy Blob alone", async () => {
      const container = await clients().container();
      const source = container.getBlockBlobClient("source");
      await source.upload(Buffer.alloc(512, 7), 512);
      const block = container.getBlockBlobClient("block");
      const log = container.getAppendBlobClient("log");
      const disk = container.getPageBlobClient("disk");
      await log.create();
      await disk.create(512);
      const at: Record<string, (url: string) => Promise<unknown>> = {
        "Copy Blob From URL": (url) => block.syncCopyFromURL(url),
        "Put Blob From URL": (url) => block.syncUploadFromURL(url),
        "Put Block From URL": (url) => block.stageBlockFromURL(blockId(0), url),
        "Append Block From URL": (url) => log.appendBlockFromURL(url, 0, 512),
        "Put Page From URL": (url) => disk.uploadPagesFromURL(url, 0, 0, 512),
      };
      const signed = await readableUrl(source);
      for (const [operation, copy] of Object.entries(at)) {
        const refused = await failure(copy(source.url));
        assert.deepEqual([refused.statusCode, refused.code], [401, "CannotVerifyCopySource"], operation);
        assert.equal(refused.response?.headers.get("x-ms-copy-source-status-code"), "401", operation);
        await copy(signed);
      }
      const headers = { "x-ms-version": "2018-11-09", "x-ms-copy-source": source.url, "x-ms-requires-sync": "true" };
      const older = await clients().raw("PUT", `/${container.containerName}/block`, { headers, body: "" });
      assert.deepEqual([older.status, older.headers.get("x-ms-error-code")], [404, "CannotVerifyCopySource"]);
      await container.getBlockBlobClient("later").beginCopyFromURL(source.url);
      await container.setAccessPolicy("blob");
      for (const copy of Object.values(at)) await copy(source.url);
    });

    test("within the request: checksums are checked, and a copy that fails leaves what was there", async () => {
      const container = await clients().container();
      const content = bytes(400_000);
      await container.getBlockBlobClient("source").upload(content, content.length);
      const url = await readableUrl(container.getBlobClient("source"));
      const target = container.getBlockBlobClient("target");
      await target.upload("before", 6);
      const wrong = await failure(target.syncCopyFromURL(url, { sourceContentMD5: Buffer.alloc(16) }));
      assert.equal(wrong.code, "Md5Mismatch");
      assert.equal((await target.downloadToBuffer()).toString(), "before");
      const md5 = createHash("md5").update(content).digest();
      const done = await target.syncCopyFromURL(url, { sourceContentMD5: md5 });
      assert.equal(done.copyStatus, "success");
      assert.ok(md5.equals(Buffer.from(done.contentMD5 ?? [])), "the answer has the checksum that was asked for");
      assert.ok(content.equals(await target.downloadToBuffer()));
      const crc64 = (await target.upload(content, content.length))._response.headers.get("x-ms-content-crc64") ?? "";
      const headers = { "x-ms-copy-source": url, "x-ms-requires-sync": "true", "x-ms-source-content-crc64": crc64 };
      const summed = await clients().raw("PUT", `/${container.containerName}/summed`, { headers, body: "" });
      assert.deepEqual([summed.status, summed.headers.get("x-ms-content-crc64"), summed.headers.get("content-md5")], [202, crc64, null]);
      assert.equal((await target.syncCopyFromURL(url)).contentMD5, undefined);
      await container.getAppendBlobClient("log").create();
      const type = await failure(target.syncCopyFromURL(await readableUrl(container.getBlobClient("log"))));
      assert.deepEqual([type.statusCode, type.code], [409, "InvalidSourceBlobType"]);
    });

    test("Put Blob From URL takes bytes and properties, or properties of its own", async () => {
      const container = await clients().container();
      const content = bytes(2 * mebibyte + 1);
      await container
        .getBlockBlobClient("source")
        .upload(content, content.length, { blobHTTPHeaders: { blobContentType: "text/x" }, metadata: { a: "1" } });
      const url = await readableUrl(container.getBlobClient("source"));
      const target = container.getBlockBlobClient("target");
      await target.syncUploadFromURL(url);
      let properties = await target.getProperties();
      assert.deepEqual([properties.contentType, properties.contentLength, properties.copyId], ["text/x", content.length, undefined]);
      assert.ok(
        createHash("md5")
          .update(content)
          .digest()
          .equals(Buffer.from(properties.contentMD5 ?? [])),
      );
      await target.syncUploadFromURL(url, {
        copySourceBlobProperties: false,
        blobHTTPHeaders: { blobContentType: "text/y" },
        metadata: { b: "2" },
      });
      properties = await target.getProperties();
      assert.deepEqual([properties.contentType, properties.metadata], ["text/y", { b: "2" }]);
      assert.ok(content.equals(await target.downloadToBuffer()));
    });

    test("Put Block From URL takes ranges of sources, checked", async () => {
      const container = await clients().container();
      const content = bytes(300_000);
      await container.getBlockBlobClient("source").upload(content, content.length);
      const url = await readableUrl(container.getBlobClient("source"));
      const target = container.getBlockBlobClient("target");
      await target.stageBlockFromURL(blockId(0), url, 100_000, 50_000);
      const part = content.subarray(0, 1000);
      const md5 = createHash("md5").update(part).digest();
      await target.stageBlockFromURL(blockId(1), url, 0, 1000, { sourceContentMD5: md5 });
      const wrong = await failure(target.stageBlockFromURL(blockId(2), url, 0, 999, { sourceContentMD5: md5 }));
      assert.equal(wrong.code, "Md5Mismatch");
      const beyond = await failure(target.stageBlockFromURL(blockId(2), url, 300_000, 10));
      assert.deepEqual([beyond.statusCode, beyond.code], [416, "InvalidRange"]);
      await target.stageBlockFromURL(blockId(3), await readableUrl(container.getBlobClient("source")));
      await target.commitBlockList([blockId(1), blockId(0), blockId(3)]);
      assert.ok(Buffer.concat([part, content.subarray(100_000, 150_000), content]).equals(await target.downloadToBuffer()));
    });

    test("Append Block From URL and Put Page From URL take ranges of sources under their own conditions", async () => {
      const container = await clients().container();
      const content = bytes(8192);
      await container.getBlockBlobClient("source").upload(content, content.length);
      const url = await readableUrl(container.getBlobClient("source"));
      const log = container.getAppendBlobClient("log");
      await log.create();
      const appended = await log.appendBlockFromURL(url, 10, 20);
      assert.equal(appended.blobAppendOffset, "0");
      const position = await failure(log.appendBlockFromURL(url, 0, 5, { conditions: { appendPosition: 3 } }));
      assert.equal(position.code, "AppendPositionConditionNotMet");
      assert.ok(content.subarray(10, 30).equals(await log.downloadToBuffer()));
      const disk = container.getPageBlobClient("disk");
      await disk.create(mebibyte);
      await disk.uploadPagesFromURL(url, 1024, 4096, 2048);
      assert.ok(content.subarray(1024, 3072).equals(await disk.downloadToBuffer(4096, 2048)));
      const sequence = await failure(disk.uploadPagesFromURL(url, 0, 0, 512, { conditions: { ifSequenceNumberLessThan: 0 } }));
      assert.equal(sequence.code, "SequenceNumberConditionNotMet");
      const beyond = await failure(disk.uploadPagesFromURL(url, 7680, 0, 1024));
      assert.equal(beyond.statusCode, 416);
    });

    test("there is nothing to abort when nothing is pending", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.upload("x", 1);
      const error = await failure(client.abortCopyFromURL("11111111-1111-1111-1111-111111111111"));
      assert.deepEqual([error.statusCode, error.code], [409, "NoPendingCopyOperation"]);
    });
  });
}
