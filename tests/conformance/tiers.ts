/** Access tiers and expiry. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { blockId, type Clients, failure } from "./target.ts";

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
      await container.getBlockBlobClient("gone").upload("1", 1);
      assert.equal(await expire({ "x-ms-expiry-option": "RelativeToNow", "x-ms-expiry-time": "1" }, "gone"), 200);
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal((await failure(container.getBlockBlobClient("gone").download())).code, "BlobNotFound");
      for await (const blob of container.listBlobsFlat()) assert.equal(blob.name, "b");
      await container.getBlockBlobClient("gone").upload("2", 1, { conditions: { ifNoneMatch: "*" } });
    });
  });
}
