/** Immutability policies and legal holds of blobs: what they keep from happening. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Clients, failure } from "./target.ts";

const inAnHour = (): Date => new Date(Date.now() + 3_600_000);

export function immutabilitySuite(clients: () => Clients): void {
  describe("immutability", () => {
    test("a blob under a policy can't be changed or deleted; an unlocked one can be taken away", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.upload("1", 1);
      await client.setImmutabilityPolicy({ expiriesOn: inAnHour(), policyMode: "Unlocked" });
      const properties = await client.getProperties();
      assert.ok((properties.immutabilityPolicyExpiresOn?.getTime() ?? 0) > Date.now());
      assert.equal(properties.immutabilityPolicyMode, "unlocked");
      for (const work of [
        () => client.upload("2", 1),
        () => client.setMetadata({}),
        () => client.setHTTPHeaders({}),
        () => client.delete(),
        () => container.delete(),
      ]) {
        const error = await failure(work());
        assert.deepEqual([error.statusCode, error.code], [409, "BlobImmutableDueToPolicy"]);
      }
      await client.setTags({ still: "allowed" });
      await client.deleteImmutabilityPolicy();
      await client.upload("2", 1);
      await container.delete();
    });

    test("a locked policy can be extended only", async () => {
      const client = (await clients().container()).getBlockBlobClient("b");
      await client.upload("1", 1, { immutabilityPolicy: { expiriesOn: inAnHour(), policyMode: "Locked" } });
      assert.equal((await client.getProperties()).immutabilityPolicyMode, "locked");
      assert.equal((await failure(client.deleteImmutabilityPolicy())).code, "BlobImmutableDueToPolicy");
      const sooner = new Date(Date.now() + 60_000);
      assert.equal(
        (await failure(client.setImmutabilityPolicy({ expiriesOn: sooner, policyMode: "Locked" }))).code,
        "BlobImmutableDueToPolicy",
      );
      await client.setImmutabilityPolicy({ expiriesOn: new Date(Date.now() + 7_200_000), policyMode: "Locked" });
      assert.equal((await failure(client.setImmutabilityPolicy({ expiriesOn: new Date(0), policyMode: "Locked" }))).statusCode, 400);
    });

    test("a legal hold keeps a blob until it is lifted", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.upload("1", 1);
      assert.equal((await client.setLegalHold(true)).legalHold, true);
      assert.equal((await client.getProperties()).legalHold, true);
      for (const work of [() => client.upload("2", 1), () => client.delete(), () => container.delete()]) {
        assert.equal((await failure(work())).code, "BlobImmutableDueToLegalHold");
      }
      for await (const blob of container.listBlobsFlat({ includeLegalHold: true })) assert.equal(blob.properties.legalHold, true);
      await client.setLegalHold(false);
      await client.delete();
      await container.delete();
    });

    test("a blob that expires under a hold is there until the hold is lifted", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      const path = `/${container.containerName}/b?comp=expiry`;
      /** Whether the hold was set before the blob expired: a busy machine needs a longer time. */
      const isHeld = async (lastsMs: number): Promise<boolean> => {
        await client.upload("1", 1);
        const headers = { "x-ms-version": "2025-01-05", "x-ms-expiry-option": "RelativeToNow", "x-ms-expiry-time": String(lastsMs) };
        assert.equal((await clients().raw("PUT", path, { headers, body: "" })).status, 200);
        const held = await client.setLegalHold(true).catch((error: { statusCode?: number }) => error);
        if ("statusCode" in held) assert.equal(held.statusCode, 404);
        else await new Promise((resolve) => setTimeout(resolve, lastsMs + 300));
        return !("statusCode" in held);
      };
      assert.ok((await isHeld(700)) || (await isHeld(5_000)) || (await isHeld(30_000)));
      assert.equal((await client.downloadToBuffer()).toString(), "1");
      for (const work of [() => client.upload("2", 1), () => client.delete(), () => container.delete()]) {
        assert.equal((await failure(work())).code, "BlobImmutableDueToLegalHold");
      }
      await client.setLegalHold(false);
      assert.equal((await failure(client.getProperties())).statusCode, 404);
      await container.delete();
    });

    test("a snapshot is protected by its own policy", async () => {
      const client = (await clients().container()).getBlockBlobClient("b");
      await client.upload("1", 1);
      const { snapshot = "" } = await client.createSnapshot();
      const kept = client.withSnapshot(snapshot);
      await kept.setImmutabilityPolicy({ expiriesOn: inAnHour(), policyMode: "Unlocked" });
      await client.upload("2", 1);
      assert.equal((await failure(kept.delete())).code, "BlobImmutableDueToPolicy");
      assert.equal((await failure(client.delete({ deleteSnapshots: "include" }))).code, "BlobImmutableDueToPolicy");
      await kept.deleteImmutabilityPolicy();
      await client.delete({ deleteSnapshots: "include" });
    });
  });
}
