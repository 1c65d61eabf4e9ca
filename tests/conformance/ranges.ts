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
    });

    test("x-ms-range goes before Range, and what is no range is 400", async () => {
      const container = await clients().container();
      await container.getBlockBlobClient("r").upload("0123456789", 10);
      const get = (headers: Record<string, string>) => clients().raw("GET", `/${container.containerName}/r`, { headers });
      const both = await get({ range: "bytes=0-1", "x-ms-range": "bytes=4-5" });
      assert.equal(both.status, 206);
      assert.equal(await both.text(), "45");
      for (const range of ["bytes=5-4", "bytes=-3", "chars=0-1", "bytes=0-1,4-5", "bytes=x-"]) {
        assert.equal((await get({ "x-ms-range": range })).status, 400, range);
      }
    });
  });
}
