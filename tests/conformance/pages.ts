/** Page blobs: sparse, written and cleared by pages, resized; ranges, sequence numbers, and the codes of what is refused. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import type { PageBlobClient } from "@azure/storage-blob";
import { bytes, type Clients, failure } from "./target.ts";

const kibibyte = 1024;
const mebibyte = 1024 * 1024;

async function pageBlob(clients: Clients, size: number): Promise<PageBlobClient> {
  const client = (await clients.container()).getPageBlobClient("disk");
  await client.create(size);
  return client;
}

/** As [offset, length]: the SDK's `count` is the distance of the last byte from the first. */
const shown = (ranges: readonly { offset: number; count?: number }[] = []): [number, number][] =>
  ranges.map((range) => [range.offset, (range.count ?? 0) + 1]);
const rangesOf = async (client: PageBlobClient): Promise<[number, number][]> => shown((await client.getPageRanges()).pageRange);

export function pageSuite(clients: () => Clients): void {
  describe("page blobs", () => {
    test("a new page blob is zeros of its size; 8 TiB cost nothing", async () => {
      const client = await pageBlob(clients(), 8 * 1024 ** 4);
      const properties = await client.getProperties();
      assert.deepEqual([properties.blobType, properties.contentLength, properties.blobSequenceNumber], ["PageBlob", 8 * 1024 ** 4, 0]);
      assert.deepEqual(await rangesOf(client), []);
      assert.ok(Buffer.alloc(1000).equals(await client.downloadToBuffer(7 * 1024 ** 4 + 3, 1000)));
      const last = 8 * 1024 ** 4 - 512;
      await client.uploadPages(bytes(512), last, 512);
      assert.ok(Buffer.concat([Buffer.alloc(100), bytes(512)]).equals(await client.downloadToBuffer(last - 100, 612)));
      assert.deepEqual(await rangesOf(client), [[last, 512]]);
    });

    test("pages that were written are read back among zeros, cleared ones are zeros again", async () => {
      const client = await pageBlob(clients(), 2 * mebibyte);
      const model = Buffer.alloc(2 * mebibyte);
      const write = async (offset: number, length: number, seed: number): Promise<void> => {
        const content = bytes(length, seed);
        content.copy(model, offset);
        await client.uploadPages(content, offset, length);
      };
      await write(0, 512, 1);
      await write(200 * kibibyte, 900 * kibibyte, 2);
      await write(300 * kibibyte, kibibyte, 3);
      await write(256 * kibibyte - 512, 1024, 4);
      await client.clearPages(400 * kibibyte, 200 * kibibyte);
      model.fill(0, 400 * kibibyte, 600 * kibibyte);
      assert.ok(model.equals(await client.downloadToBuffer()));
      assert.deepEqual(await rangesOf(client), [
        [0, 512],
        [200 * kibibyte, 200 * kibibyte],
        [600 * kibibyte, 500 * kibibyte],
      ]);
      assert.deepEqual(shown((await client.getPageRanges(300 * kibibyte, 400 * kibibyte)).pageRange), [
        [300 * kibibyte, 100 * kibibyte],
        [600 * kibibyte, 100 * kibibyte],
      ]);
      await client.clearPages(0, 2 * mebibyte);
      assert.deepEqual(await rangesOf(client), []);
      assert.ok(Buffer.alloc(2 * mebibyte).equals(await client.downloadToBuffer()));
    });

    test("4 MiB are written at once, one page more is 413", async () => {
      const client = await pageBlob(clients(), 16 * mebibyte);
      const content = bytes(4 * mebibyte, 7);
      await client.uploadPages(content, 512, content.length);
      assert.ok(content.equals(await client.downloadToBuffer(512, content.length)));
      const error = await failure(client.uploadPages(bytes(4 * mebibyte + 512), 0, 4 * mebibyte + 512));
      assert.deepEqual([error.statusCode, error.code], [413, "RequestBodyTooLarge"]);
    });

    test("ranges come in pages when asked", async () => {
      const client = await pageBlob(clients(), mebibyte);
      for (let i = 0; i < 7; i++) await client.uploadPages(bytes(512, i), i * 64 * kibibyte, 512);
      const seen: number[] = [];
      let pages = 0;
      for await (const page of client.listPageRanges().byPage({ maxPageSize: 3 })) {
        pages++;
        for (const range of page.pageRange ?? []) seen.push(range.start);
      }
      assert.deepEqual(
        seen,
        Array.from({ length: 7 }, (_, i) => i * 64 * kibibyte),
      );
      assert.equal(pages, 3);
    });

    test("the difference to a snapshot is what was written and cleared since", async () => {
      const client = await pageBlob(clients(), mebibyte);
      await client.uploadPages(bytes(4096), 0, 4096);
      const first = (await client.createSnapshot()).snapshot ?? "";
      await client.uploadPages(bytes(1024, 2), 1024, 1024);
      await client.uploadPages(bytes(512, 3), 512 * kibibyte, 512);
      await client.clearPages(0, 512);
      const second = (await client.createSnapshot()).snapshot ?? "";
      await client.uploadPages(bytes(512, 4), 900 * kibibyte, 512);
      const since = await client.getPageRangesDiff(0, mebibyte, first);
      assert.deepEqual(shown(since.pageRange), [
        [1024, 1024],
        [512 * kibibyte, 512],
        [900 * kibibyte, 512],
      ]);
      assert.deepEqual(shown(since.clearRange), [[0, 512]]);
      const between = await client.withSnapshot(second).getPageRangesDiff(0, mebibyte, first);
      assert.deepEqual(shown(between.pageRange), [
        [1024, 1024],
        [512 * kibibyte, 512],
      ]);
      const newer = await failure(client.withSnapshot(first).getPageRangesDiff(0, mebibyte, second));
      assert.deepEqual([newer.statusCode, newer.code], [400, "PreviousSnapshotCannotBeNewer"]);
      const missing = await failure(client.getPageRangesDiff(0, mebibyte, "2020-01-01T00:00:00.0000000Z"));
      assert.deepEqual([missing.statusCode, missing.code], [409, "PreviousSnapshotNotFound"]);
      assert.ok(bytes(4096).equals(await client.withSnapshot(first).downloadToBuffer(0, 4096)), "a snapshot stays what it was");
      await client.create(mebibyte);
      const overwritten = await failure(client.getPageRangesDiff(0, mebibyte, first));
      assert.deepEqual([overwritten.statusCode, overwritten.code], [409, "BlobOverwritten"]);
    });

    test("resizing cuts and grows; what was cut does not come back", async () => {
      const client = await pageBlob(clients(), mebibyte);
      await client.uploadPages(bytes(1024), 0, 1024);
      await client.setHTTPHeaders({ blobContentType: "x/disk" });
      await client.resize(512);
      assert.equal((await client.getProperties()).contentLength, 512);
      await client.resize(4096);
      const properties = await client.getProperties();
      assert.deepEqual([properties.contentLength, properties.contentType], [4096, "x/disk"]);
      assert.ok(Buffer.concat([bytes(1024).subarray(0, 512), Buffer.alloc(3584)]).equals(await client.downloadToBuffer()));
      const odd = await failure(client.resize(513));
      assert.deepEqual([odd.statusCode, odd.code], [400, "InvalidHeaderValue"]);
    });

    test("sequence numbers change as asked and guard writes", async () => {
      const client = (await clients().container()).getPageBlobClient("disk");
      await client.create(4096, { blobSequenceNumber: 5 });
      const now = async () => (await client.getProperties()).blobSequenceNumber;
      await client.updateSequenceNumber("max", 3);
      assert.equal(await now(), 5);
      await client.updateSequenceNumber("update", 7);
      assert.equal(await now(), 7);
      await client.updateSequenceNumber("increment");
      assert.equal(await now(), 8);
      await client.uploadPages(bytes(512), 0, 512, { conditions: { ifSequenceNumberEqualTo: 8 } });
      for (const conditions of [
        { ifSequenceNumberEqualTo: 7 },
        { ifSequenceNumberLessThan: 8 },
        { ifSequenceNumberLessThanOrEqualTo: 7 },
      ]) {
        const error = await failure(client.uploadPages(bytes(512), 0, 512, { conditions }));
        assert.deepEqual([error.statusCode, error.code], [412, "SequenceNumberConditionNotMet"], JSON.stringify(conditions));
        const cleared = await failure(client.clearPages(0, 512, { conditions }));
        assert.equal(cleared.code, "SequenceNumberConditionNotMet");
      }
    });

    test("conditions and checksums hold for writes of pages", async () => {
      const client = await pageBlob(clients(), 4096);
      const { etag = "" } = await client.getProperties();
      const put = await client.uploadPages(bytes(512), 0, 512, { conditions: { ifMatch: etag } });
      assert.equal(put.blobSequenceNumber, 0);
      const stale = await failure(client.uploadPages(bytes(512), 0, 512, { conditions: { ifMatch: etag } }));
      assert.deepEqual([stale.statusCode, stale.code], [412, "ConditionNotMet"]);
      const wrong = await failure(client.uploadPages(bytes(512), 0, 512, { transactionalContentMD5: Buffer.alloc(16) }));
      assert.equal(wrong.code, "Md5Mismatch");
      const md5 = createHash("md5").update(bytes(512)).digest();
      const checked = await client.uploadPages(bytes(512), 0, 512, { transactionalContentMD5: md5 });
      assert.ok(md5.equals(Buffer.from(checked.contentMD5 ?? [])));
      const sum = await failure(client.uploadPages(bytes(512), 0, 512, { transactionalContentCrc64: Buffer.alloc(8) }));
      assert.equal(sum.code, "Crc64Mismatch");
    });

    test("ranges that are no pages of the blob are refused", async () => {
      const container = await clients().container();
      await container.getPageBlobClient("disk").create(4096);
      const path = `/${container.containerName}/disk`;
      const put = async (headers: Record<string, string>, body?: Uint8Array) => {
        const answer = await clients().raw(
          "PUT",
          `${path}?comp=page`,
          body ? { headers, body } : { headers: { "content-length": "0", ...headers } },
        );
        return [answer.status, answer.headers.get("x-ms-error-code")];
      };
      const update = { "x-ms-page-write": "update" };
      const page = bytes(512);
      assert.deepEqual(await put({ ...update, "x-ms-range": "bytes=4096-4607" }, page), [416, "InvalidPageRange"]);
      assert.deepEqual(await put({ ...update, "x-ms-range": "bytes=1-512" }, page), [400, "InvalidHeaderValue"]);
      assert.deepEqual(await put({ ...update, "x-ms-range": "bytes=0-1023" }, page), [400, "InvalidHeaderValue"]);
      assert.deepEqual(await put(update, page), [400, "MissingRequiredHeader"]);
      assert.deepEqual(await put({ "x-ms-range": "bytes=0-511" }, page), [400, "MissingRequiredHeader"]);
      assert.deepEqual(await put({ "x-ms-page-write": "burn", "x-ms-range": "bytes=0-511" }, page), [400, "InvalidHeaderValue"]);
      assert.deepEqual(await put({ "x-ms-page-write": "clear", "x-ms-range": "bytes=0-8191" }), [416, "InvalidPageRange"]);
      assert.deepEqual(await put({ "x-ms-page-write": "clear", range: "bytes=0-511" }), [201, null]);
      const sized = async (length: string) =>
        (
          await clients().raw("PUT", `${path}-2`, {
            headers: { "content-length": "0", "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": length },
          })
        ).status;
      assert.deepEqual(
        [await sized("511"), await sized(String(8 * 1024 ** 4 + 512)), await sized("x"), await sized("0")],
        [400, 400, 400, 201],
      );
      const misplaced = await clients().raw("PUT", `${path}-3`, {
        body: "x",
        headers: { "x-ms-blob-type": "BlockBlob", "x-ms-blob-content-length": "512" },
      });
      assert.deepEqual([misplaced.status, misplaced.headers.get("x-ms-error-code")], [400, "UnsupportedHeader"]);
    });
  });
}
