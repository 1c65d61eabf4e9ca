/** Ranges: every border, over inline content, one piece and many blocks; checksums of ranges. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { blockId, bytes, type Clients, failure } from "./target.ts";

export function rangeSuite(clients: () => Clients): void {
  describe("ranges", () => {
    for (const [kind, size] of [
      ["inline", 1000],
      ["several pieces", 3_500_000],
    ] as const) {
      test(`ranges of ${kind} content are the bytes of that range`, async () => {
        const client = (await clients().container()).getBlockBlobClient("r");
        const content = bytes(size, 7);
        await client.upload(content, size);
        for (const [offset, count] of [
          [0, 1],
          [0, size],
          [size - 1, 1],
          [size - 10, 100],
          [17, size - 40],
          [Math.floor(size / 2), undefined],
        ] as const) {
          const answer = await client.download(offset, count);
          const end = Math.min(size, offset + (count ?? size));
          const chunks: Buffer[] = [];
          for await (const chunk of answer.readableStreamBody ?? []) chunks.push(chunk as Buffer);
          assert.ok(content.subarray(offset, end).equals(Buffer.concat(chunks)), `${offset} ${count}`);
          if (offset > 0 || count !== undefined) assert.equal(answer.contentRange, `bytes ${offset}-${end - 1}/${size}`);
        }
      });
    }

    test("ranges over blocks, where a range begins and ends inside blocks", async () => {
      const client = (await clients().container()).getBlockBlobClient("r");
      const parts = Array.from({ length: 7 }, (_, i) => bytes(10_000 + i * 777, i + 1));
      for (const [i, part] of parts.entries()) await client.stageBlock(blockId(i), part, part.length);
      await client.commitBlockList(parts.map((_, i) => blockId(i)));
      const whole = Buffer.concat(parts);
      for (const [offset, count] of [
        [9_999, 2],
        [5, 30_000],
        [20_000, whole.length],
      ] as const) {
        const read = await client.downloadToBuffer(offset, Math.min(count, whole.length - offset));
        assert.ok(whole.subarray(offset, offset + count).equals(read));
      }
    });

    test("a range behind the end, and any range of an empty blob, is 416", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("r");
      await client.upload("12345", 5);
      const error = await failure(client.download(5, 1));
      assert.equal(error.statusCode, 416);
      assert.equal(error.code, "InvalidRange");
      const empty = container.getBlockBlobClient("empty");
      await empty.upload("", 0);
      assert.equal((await failure(empty.download(0, 1))).statusCode, 416);
    });

    test("the MD5 and CRC64 of a range come on request, up to 4 MiB", async () => {
      const client = (await clients().container()).getBlockBlobClient("r");
      const content = bytes(5_000_000, 3);
      await client.upload(content, content.length);
      const answer = await client.download(100, 1_500_000, { rangeGetContentMD5: true });
      const expected = createHash("md5").update(content.subarray(100, 1_500_100)).digest("base64");
      assert.equal(Buffer.from(answer.contentMD5 ?? []).toString("base64"), expected);
      const crc = await client.download(0, 1000, { rangeGetContentCrc64: true });
      assert.equal(crc.contentCrc64?.length, 8);
      assert.equal((await failure(client.download(0, 4_194_305, { rangeGetContentMD5: true }))).statusCode, 400);
      assert.equal((await failure(client.download(0, 4_194_305, { rangeGetContentCrc64: true }))).statusCode, 400);
    });

    test("the checksum of a range counts what is read: a range may be open, or end behind the blob", async () => {
      const container = await clients().container();
      const content = bytes(4_194_305, 3);
      await container.getBlockBlobClient("r").upload(content, content.length);
      const get = async (headers: Record<string, string>) => {
        const answer = await clients().raw("GET", `/${container.containerName}/r`, { headers });
        const body = Buffer.from(await answer.arrayBuffer());
        return { status: answer.status, code: answer.headers.get("x-ms-error-code"), md5: answer.headers.get("content-md5"), body };
      };
      const md5 = createHash("md5").update(content.subarray(1)).digest("base64");
      for (const name of ["range", "x-ms-range"]) {
        for (const range of ["bytes=1-", "bytes=1-99999999", "bytes=1-99999999999999999999"]) {
          const { status, md5: told, body } = await get({ [name]: range, "x-ms-range-get-content-md5": "true" });
          assert.deepEqual([status, told, body.length], [206, md5, 4_194_304], range);
        }
        for (const range of ["bytes=0-", "bytes=0-99999999"]) {
          const { status, code } = await get({ [name]: range, "x-ms-range-get-content-md5": "true" });
          assert.deepEqual([status, code], [400, "OutOfRangeInput"], range);
        }
        const { status, code } = await get({ [name]: "bytes=-1", "x-ms-range-get-content-md5": "true" });
        assert.deepEqual([status, code], [400, "InvalidHeaderValue"], "what is no range has no checksum");
      }
    });

    test("x-ms-range goes before Range, and what is no range is ignored", async () => {
      const container = await clients().container();
      await container.getBlockBlobClient("r").upload("0123456789", 10);
      const get = async (headers: Record<string, string>) => {
        const answer = await clients().raw("GET", `/${container.containerName}/r`, { headers });
        return `${answer.status} ${await answer.text()}`;
      };
      assert.equal(await get({ range: "bytes=0-1", "x-ms-range": "bytes=4-5" }), "206 45");
      for (const range of ["bytes=5-4", "bytes=-3", "chars=0-1", "bytes=0-1,4-5", "bytes=x-", "bytes", "0-1"]) {
        assert.equal(await get({ "x-ms-range": range }), "200 0123456789", range);
        assert.equal(await get({ range }), "200 0123456789", range);
        assert.equal(await get({ range: "bytes=0-1", "x-ms-range": range }), "200 0123456789", range);
      }
      assert.equal(await get({ range: "bytes=8-99999999999999999999" }), "206 89");
      assert.match(await get({ range: "bytes=99999999999999999999-" }), /^416 /);
      assert.equal(await get({ range: "bytes=8-", "x-ms-version": "2011-08-18" }), "206 89");
      assert.equal(await get({ range: "bytes=8-", "x-ms-version": "2009-09-19" }), "200 0123456789");
    });

    test("pages: a range that is none is ignored by a list, and refused by a write", async () => {
      const container = await clients().container();
      const client = container.getPageBlobClient("p");
      await client.create(1024);
      await client.uploadPages(bytes(1024, 1), 0, 1024);
      const path = `/${container.containerName}/p`;
      const listed = await clients().raw("GET", `${path}?comp=pagelist`, { headers: { range: "bytes=-512" } });
      assert.match(await listed.text(), /<Start>0<\/Start><End>1023<\/End>/);
      const headers = { "x-ms-page-write": "clear", "x-ms-range": "bytes=-512" };
      const cleared = await clients().raw("PUT", `${path}?comp=page`, { headers, body: "" });
      assert.deepEqual([cleared.status, cleared.headers.get("x-ms-error-code")], [400, "InvalidHeaderValue"]);
      assert.ok((await client.downloadToBuffer()).equals(bytes(1024, 1)));
    });

    test("If-Range: the range of the blob that is named, all of any other", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("r");
      await client.upload("0123456789", 10);
      const { etag = "", lastModified = new Date(0) } = await client.getProperties();
      const get = async (ifRange: string, range = "bytes=8-9") => {
        const headers = { range, "if-range": ifRange };
        const answer = await clients().raw("GET", `/${container.containerName}/r`, { headers });
        return `${answer.status} ${answer.headers.get("content-range")} ${await answer.text()}`;
      };
      const part = "206 bytes 8-9/10 89";
      const all = "200 null 0123456789";
      assert.deepEqual([await get(etag), await get(lastModified.toUTCString())], [part, part]);
      const other = '"0x8D0000000000000"';
      for (const text of [other, `W/${etag}`, "Sun, 06 Nov 1994 08:49:37 GMT", "x", "*"]) assert.equal(await get(text), all, text);
      assert.match(await get(etag, "bytes=10-"), /^416 /);
      assert.equal(await get(other, "bytes=10-"), all, "another blob is read whole, also where it has no such range");
      assert.equal(await get(other, "bytes=-2"), all);
      const stale = await clients().raw("GET", `/${container.containerName}/r`, { headers: { "if-range": other, "if-match": other } });
      assert.equal(stale.status, 412, "If-Range is no condition of the request");
    });
  });
}
