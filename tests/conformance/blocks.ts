/** Blocks: staging, committing, lists of blocks, and the mistakes one can make with them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { blockId, bytes, type Clients, failure } from "./target.ts";

export function blockSuite(clients: () => Clients): void {
  describe("blocks", () => {
    test("committed blocks make the blob in the order of the list", async () => {
      const client = (await clients().container()).getBlockBlobClient("b");
      const parts = [bytes(100_000, 1), bytes(70_000, 2), bytes(10, 3)];
      for (const [i, part] of parts.entries()) await client.stageBlock(blockId(i), part, part.length);
      const put = await client.commitBlockList([blockId(2), blockId(0), blockId(1)], { metadata: { m: "1" } });
      assert.ok(put.etag);
      const [a, b, c] = parts as [Buffer, Buffer, Buffer];
      assert.ok(Buffer.concat([c, a, b]).equals(await client.downloadToBuffer()));
      assert.deepEqual((await client.getProperties()).metadata, { m: "1" });
    });

    test("the lists of committed and uncommitted blocks show ids and sizes", async () => {
      const client = (await clients().container()).getBlockBlobClient("b");
      await client.stageBlock(blockId(1), "one", 3);
      await client.stageBlock(blockId(2), "twoo", 4);
      const before = await client.getBlockList("all");
      assert.deepEqual(before.committedBlocks ?? [], []);
      assert.deepEqual(
        before.uncommittedBlocks?.map((block) => [block.name, block.size]),
        [
          [blockId(1), 3],
          [blockId(2), 4],
        ],
      );
      await client.commitBlockList([blockId(2)]);
      const after = await client.getBlockList("all");
      assert.deepEqual(
        after.committedBlocks?.map((block) => [block.name, block.size]),
        [[blockId(2), 4]],
      );
      assert.deepEqual(after.uncommittedBlocks ?? [], []);
      assert.equal(after.blobContentLength, 4);
    });

    test("a blob with uncommitted blocks only is not there, but can be listed", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("staged");
      await client.stageBlock(blockId(1), "x", 1);
      assert.equal((await failure(client.getProperties())).statusCode, 404);
      const names = async (includeUncommitedBlobs: boolean): Promise<string[]> => {
        const found: string[] = [];
        for await (const blob of container.listBlobsFlat({ includeUncommitedBlobs })) found.push(blob.name);
        return found;
      };
      assert.deepEqual(await names(false), []);
      assert.deepEqual(await names(true), ["staged"]);
    });

    test("a blob with uncommitted blocks only is deleted with them", async () => {
      const client = (await clients().container()).getBlockBlobClient("staged");
      await client.stageBlock(blockId(1), "x", 1);
      await client.delete();
      assert.equal((await failure(client.getBlockList("all"))).code, "BlobNotFound");
      const again = await failure(client.delete());
      assert.deepEqual([again.statusCode, again.code], [404, "BlobNotFound"]);
    });

    test("what has uncommitted blocks is a block blob: making or copying one of another type over it is 409, and they stay", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("staged");
      await client.stageBlock(blockId(1), "x", 1);
      await container.getAppendBlobClient("log").create();
      for (const [name, make] of [
        ["append", () => client.getAppendBlobClient().create()],
        ["page", () => client.getPageBlobClient().create(512)],
        ["copy", () => client.beginCopyFromURL(container.getBlobClient("log").url)],
      ] as const) {
        const error = await failure(make());
        assert.deepEqual([error.statusCode, error.code], [409, "InvalidBlobType"], name);
      }
      await client.commitBlockList([blockId(1)]);
      assert.equal((await client.downloadToBuffer()).toString(), "x");
    });

    test("committed blocks are used again, and mixed with new ones", async () => {
      const client = (await clients().container()).getBlockBlobClient("again");
      await client.stageBlock(blockId(1), "old ", 4);
      await client.commitBlockList([blockId(1)]);
      await client.stageBlock(blockId(2), "new", 3);
      await client.commitBlockList([blockId(1), blockId(2), blockId(1)]);
      assert.equal((await client.downloadToBuffer()).toString(), "old newold ");
    });

    test("a list with an unknown block is 400 InvalidBlockList and changes nothing", async () => {
      const client = (await clients().container()).getBlockBlobClient("b");
      await client.upload("kept", 4);
      await client.stageBlock(blockId(1), "x", 1);
      const error = await failure(client.commitBlockList([blockId(1), blockId(9)]));
      assert.equal(error.statusCode, 400);
      assert.equal(error.code, "InvalidBlockList");
      assert.equal((await client.downloadToBuffer()).toString(), "kept");
    });

    test("an empty list makes an empty blob", async () => {
      const client = (await clients().container()).getBlockBlobClient("empty");
      await client.commitBlockList([]);
      assert.equal((await client.getProperties()).contentLength, 0);
    });

    test("bad block ids and lists are 400", async () => {
      const container = await clients().container();
      const path = `/${container.containerName}/b`;
      const put = async (query: string, body: string) => (await clients().raw("PUT", `${path}?${query}`, { body })).status;
      assert.equal(await put("comp=block&blockid=%21%21", "x"), 400);
      assert.equal(await put("comp=block", "x"), 400);
      assert.equal(await put(`comp=block&blockid=${encodeURIComponent(Buffer.alloc(65).toString("base64"))}`, "x"), 400);
      for (const list of [
        "",
        "no xml",
        "<BlockList>",
        "<Other/>",
        "<!DOCTYPE x><BlockList/>",
        "<BlockList><Latest>!</Latest></BlockList>",
      ]) {
        assert.equal(await put("comp=blocklist", list), 400, list);
      }
    });

    test("MD5 and CRC64 of blocks are checked", async () => {
      const client = (await clients().container()).getBlockBlobClient("sums");
      const wrong = Buffer.alloc(16);
      const error = await failure(client.stageBlock(blockId(1), "x", 1, { transactionalContentMD5: wrong }));
      assert.equal(error.code, "Md5Mismatch");
      const bad = await failure(client.stageBlock(blockId(1), "123456789", 9, { transactionalContentCrc64: Buffer.alloc(8) }));
      assert.equal(bad.code, "Crc64Mismatch");
      const crc64 = Buffer.from("ae8b14860a799888", "hex").reverse();
      await client.stageBlock(blockId(1), "123456789", 9, { transactionalContentCrc64: crc64 });
      assert.deepEqual((await client.getBlockList("uncommitted")).uncommittedBlocks?.length, 1);
    });
  });
}
