/** Snapshots: made, read, listed, deleted with their blob or alone. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { BlobItem, ContainerClient } from "@azure/storage-blob";
import { blockId, bytes, type Clients, failure } from "./target.ts";

async function list(container: ContainerClient): Promise<BlobItem[]> {
  const items: BlobItem[] = [];
  for await (const item of container.listBlobsFlat({ includeSnapshots: true, includeMetadata: true })) items.push(item);
  return items;
}

export function snapshotSuite(clients: () => Clients): void {
  describe("snapshots", () => {
    test("a snapshot keeps what the blob was, content, headers and metadata", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      const first = bytes(300_000, 7);
      await client.uploadData(first, {
        metadata: { v: "1" },
        blobHTTPHeaders: { blobContentType: "one/one" },
        blockSize: 100_000,
        maxSingleShotSize: 100_000,
      });
      const { etag } = await client.getProperties();
      const { snapshot = "" } = await client.createSnapshot();
      assert.match(snapshot, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/);
      await client.upload("second", 6, { metadata: { v: "2" } });
      const old = client.withSnapshot(snapshot);
      assert.ok(first.equals(await old.downloadToBuffer()));
      const properties = await old.getProperties();
      assert.deepEqual([properties.metadata, properties.contentType, properties.etag], [{ v: "1" }, "one/one", etag]);
      assert.equal((await client.downloadToBuffer()).toString(), "second");
      const range = await old.downloadToBuffer(100_000, 5);
      assert.ok(first.subarray(100_000, 100_005).equals(range));
      assert.equal((await container.getBlockBlobClient("b").withSnapshot(snapshot).getBlockList("committed")).committedBlocks?.length, 3);
    });

    test("snapshots are listed oldest first, before their blob, over pages", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await container.getBlockBlobClient("a").upload("a", 1);
      await container.getBlockBlobClient("c").upload("c", 1);
      const taken: string[] = [];
      for (let i = 0; i < 5; i++) {
        await client.upload(`${i}`, 1, { metadata: { i: `${i}` } });
        taken.push((await client.createSnapshot()).snapshot ?? "");
      }
      assert.deepEqual([...taken].sort(), taken);
      assert.equal(new Set(taken).size, 5);
      const expected = ["a:", ...taken.map((snapshot) => `b:${snapshot}`), "b:", "c:"];
      assert.deepEqual(
        (await list(container)).map((item) => `${item.name}:${item.snapshot ?? ""}`),
        expected,
      );
      const paged: string[] = [];
      for await (const page of container.listBlobsFlat({ includeSnapshots: true }).byPage({ maxPageSize: 2 })) {
        assert.ok(page.segment.blobItems.length <= 2);
        paged.push(...page.segment.blobItems.map((item) => `${item.name}:${item.snapshot ?? ""}`));
      }
      assert.deepEqual(paged, expected);
    });

    test("metadata of its own are the snapshot's alone", async () => {
      const client = (await clients().container()).getBlockBlobClient("b");
      await client.upload("1", 1, { metadata: { of: "blob" } });
      const { snapshot = "" } = await client.createSnapshot({ metadata: { of: "snapshot" } });
      assert.deepEqual((await client.withSnapshot(snapshot).getProperties()).metadata, { of: "snapshot" });
      assert.deepEqual((await client.getProperties()).metadata, { of: "blob" });
    });

    test("a blob with snapshots is deleted with them, or they alone, or not at all", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.upload("1", 1);
      const { snapshot = "" } = await client.createSnapshot();
      const error = await failure(client.delete());
      assert.deepEqual([error.statusCode, error.code], [409, "SnapshotsPresent"]);
      await client.delete({ deleteSnapshots: "only" });
      assert.equal((await client.downloadToBuffer()).toString(), "1");
      assert.equal((await failure(client.withSnapshot(snapshot).getProperties())).statusCode, 404);
      await client.createSnapshot();
      await client.delete({ deleteSnapshots: "include" });
      assert.deepEqual(await list(container), []);
    });

    test("one snapshot is deleted and the others stay readable", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.stageBlock(blockId(1), "shared", 6);
      await client.commitBlockList([blockId(1)]);
      const one = (await client.createSnapshot()).snapshot ?? "";
      const two = (await client.createSnapshot()).snapshot ?? "";
      await client.withSnapshot(one).delete();
      assert.equal((await failure(client.withSnapshot(one).download())).code, "BlobNotFound");
      assert.equal((await client.withSnapshot(two).downloadToBuffer()).toString(), "shared");
      await client.withSnapshot(two).delete();
      assert.equal((await client.downloadToBuffer()).toString(), "shared");
      await client.delete();
    });

    test("what writes is no operation on a snapshot", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.upload("1", 1);
      const { snapshot = "" } = await client.createSnapshot();
      const answer = await clients().raw("PUT", `/${container.containerName}/b?comp=metadata&snapshot=${encodeURIComponent(snapshot)}`, {
        body: "",
      });
      assert.equal(answer.status, 400);
      assert.equal((await clients().raw("GET", `/${container.containerName}/b?snapshot=yesterday`)).status, 400);
      assert.equal((await failure(client.withSnapshot("2001-01-01T00:00:00.0000000Z").getProperties())).statusCode, 404);
    });
  });
}
