/** Several writers of one blob, and of one container. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { BlockBlobClient } from "@azure/storage-blob";
import { refused, untilNotRefused, type World } from "./clients.ts";

const read = async (blob: BlockBlobClient): Promise<string> => (await blob.downloadToBuffer()).toString();
const write = (blob: BlockBlobClient, text: string, conditions = {}) => blob.upload(text, text.length, { conditions });

export function blobScenarios(world: () => World): void {
  describe("blobs", () => {
    test("optimistic: who read before another wrote is refused 412, reads again and writes", async () => {
      const blob = await world().blob("one");
      const { etag } = await blob.getProperties();
      await write(blob, "by a third party");
      assert.equal(await refused(write(blob, "mine", { ifMatch: etag })), 412);
      assert.equal(await read(blob), "by a third party");
      const now = await blob.getProperties();
      await write(blob, "mine", { ifMatch: now.etag });
      assert.equal(await read(blob), "mine");
    });

    test("optimistic: of ten who add one to a counter, none is lost", async () => {
      const blob = await world().blob("0");
      const addOne = () =>
        untilNotRefused(412, async () => {
          const before = await blob.download();
          const chunks: Buffer[] = [];
          for await (const chunk of before.readableStreamBody ?? []) chunks.push(Buffer.from(chunk));
          await write(blob, String(Number(Buffer.concat(chunks).toString()) + 1), { ifMatch: before.etag });
        });
      await Promise.all(Array.from({ length: 10 }, addOne));
      assert.equal(await read(blob), "10");
    });

    test("optimistic: of two who create a blob with If-None-Match: *, one succeeds", async () => {
      const blob = (await world().container()).getBlockBlobClient("new");
      const outcomes = await Promise.allSettled(["a", "b"].map((text) => write(blob, text, { ifNoneMatch: "*" })));
      assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
    });

    test("pessimistic: while one holds the lease the others can read and can't write", async () => {
      const blob = await world().blob("one");
      const lease = blob.getBlobLeaseClient();
      const { leaseId } = await lease.acquireLease(30);
      await write(blob, "by the holder", { leaseId });
      assert.equal(await refused(write(blob, "by another")), 412);
      assert.equal(await refused(blob.delete()), 412);
      assert.equal(await refused(blob.getBlobLeaseClient().acquireLease(15)), 409);
      assert.equal(await read(blob), "by the holder");
      await lease.releaseLease();
      await write(blob, "by another");
      assert.equal(await read(blob), "by another");
    });

    test("pessimistic: of ten who add one to a counter under a lease, none is lost and none is refused while writing", async () => {
      const blob = await world().blob("0");
      const addOne = async (): Promise<void> => {
        const lease = blob.getBlobLeaseClient();
        const { value } = await untilNotRefused(409, () => lease.acquireLease(30));
        await write(blob, String(Number(await read(blob)) + 1), { leaseId: value.leaseId });
        await lease.releaseLease();
      };
      await Promise.all(Array.from({ length: 10 }, addOne));
      assert.equal(await read(blob), "10");
    });

    test("last writer wins: without conditions every write succeeds, and the last one stays, whole", async () => {
      const blob = await world().blob("one");
      const texts = Array.from({ length: 8 }, (_, i) => String(i).repeat(50_000));
      await Promise.all(texts.map((text) => write(blob, text)));
      assert.ok(texts.includes(await read(blob)));
      await write(blob, "last");
      assert.equal(await read(blob), "last");
    });
  });

  describe("containers", () => {
    test("optimistic: metadata is changed, and a container deleted, only if it was not modified since", async () => {
      const container = await world().container();
      const { lastModified } = await container.getProperties();
      await container.setMetadata({ by: "me" }, { conditions: { ifModifiedSince: new Date((lastModified as Date).getTime() - 60_000) } });
      assert.equal(
        await refused(container.setMetadata({ by: "me" }, { conditions: { ifModifiedSince: new Date(Date.now() + 3_600_000) } })),
        412,
      );
      const past = new Date((lastModified as Date).getTime() - 60_000);
      assert.equal(await refused(container.delete({ conditions: { ifUnmodifiedSince: past } })), 412);
      await container.delete({ conditions: { ifUnmodifiedSince: new Date(Date.now() + 60_000) } });
    });

    test("pessimistic: a leased container is deleted by the holder only; what is in it is written by all", async () => {
      const container = await world().container();
      const lease = container.getBlobLeaseClient();
      const { leaseId = "" } = await lease.acquireLease(30);
      assert.equal(await refused(container.delete()), 412);
      const blob = container.getBlockBlobClient("b");
      await write(blob, "by anybody");
      assert.equal(await refused(container.getBlobLeaseClient().acquireLease(15)), 409);
      await container.delete({ conditions: { leaseId } });
    });

    test("last writer wins: metadata without conditions", async () => {
      const container = await world().container();
      await Promise.all(["a", "b", "c"].map((by) => container.setMetadata({ by })));
      await container.setMetadata({ by: "the last" });
      assert.deepEqual((await container.getProperties()).metadata, { by: "the last" });
    });
  });
}
