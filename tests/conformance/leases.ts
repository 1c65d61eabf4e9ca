/** Leases of blobs and containers: the five actions, what they answer in each state, and what a lease keeps others from. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, test } from "node:test";
import type { BlobLeaseClient } from "@azure/storage-blob";
import { blockId, type Clients, failure, readableUrl } from "./target.ts";

const refusal = async (work: Promise<unknown>): Promise<string> => {
  const { statusCode, code } = await failure(work);
  return `${statusCode} ${code}`;
};

export function leaseSuite(clients: () => Clients): void {
  describe("leases", () => {
    const leased = async (seconds = 15) => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.upload("1", 1);
      const lease = client.getBlobLeaseClient();
      await lease.acquireLease(seconds);
      return { client, lease, container };
    };

    test("a leased blob says so, and is free again when it is released", async () => {
      const { client, lease } = await leased(-1);
      const during = await client.getProperties();
      assert.deepEqual([during.leaseState, during.leaseStatus, during.leaseDuration], ["leased", "locked", "infinite"]);
      await lease.releaseLease();
      const after = await client.getProperties();
      assert.deepEqual([after.leaseState, after.leaseStatus, after.leaseDuration], ["available", "unlocked", undefined]);
      assert.equal(after.etag, during.etag, "a lease is no change of the blob");
    });

    test("writes need the lease, reads don't, and who names another one is refused", async () => {
      const { client, lease } = await leased();
      const mine = { conditions: { leaseId: lease.leaseId } };
      const other = { conditions: { leaseId: randomUUID() } };
      assert.equal((await client.downloadToBuffer()).toString(), "1");
      await client.getProperties(mine);
      assert.equal(await refusal(client.download(0, undefined, other)), "412 LeaseIdMismatchWithBlobOperation");
      for (const [name, write] of [
        ["upload", (options: object) => client.upload("2", 1, options)],
        ["metadata", (options: object) => client.setMetadata({ a: "1" }, options)],
        ["headers", (options: object) => client.setHTTPHeaders({ blobContentType: "x/y" }, options)],
        ["tags", (options: object) => client.setTags({ a: "1" }, options)],
        ["tier", (options: object) => client.setAccessTier("Cool", options)],
        ["block", (options: object) => client.stageBlock(blockId(1), "x", 1, options)],
        ["block list", (options: object) => client.commitBlockList([blockId(1)], options)],
        ["delete", (options: object) => client.delete(options)],
      ] as const) {
        assert.equal(await refusal(write({})), "412 LeaseIdMissing", name);
        assert.equal(await refusal(write(other)), "412 LeaseIdMismatchWithBlobOperation", name);
        await write(mine);
      }
    });

    test("a copy over a leased blob needs a lease without end", async () => {
      const { client, lease, container } = await leased();
      const source = container.getBlockBlobClient("source");
      await source.upload("2", 1);
      const signed = await readableUrl(source);
      const copies = {
        "Copy Blob": (options: object) => client.beginCopyFromURL(source.url, options),
        "Copy Blob From URL": (options: object) => client.syncCopyFromURL(signed, options),
      };
      for (const [name, copy] of Object.entries(copies)) {
        assert.equal(await refusal(copy({})), "412 LeaseIdMissing", name);
        assert.equal(await refusal(copy({ conditions: { leaseId: lease.leaseId } })), "412 InfiniteLeaseDurationRequired", name);
      }
      assert.equal((await client.downloadToBuffer()).toString(), "1");
      await lease.acquireLease(-1);
      for (const copy of Object.values(copies)) await copy({ conditions: { leaseId: lease.leaseId } });
      assert.equal((await client.downloadToBuffer()).toString(), "2");
      await client.syncUploadFromURL(signed, { conditions: { leaseId: lease.leaseId } });
    });

    test("acquire, renew, change, release and break answer as the service does", async () => {
      const { client, lease } = await leased(60);
      const second = (id: string): BlobLeaseClient => client.getBlobLeaseClient(id);
      assert.equal(await refusal(second(randomUUID()).acquireLease(15)), "409 LeaseAlreadyPresent");
      assert.equal((await second(lease.leaseId).acquireLease(30)).leaseId, lease.leaseId);
      assert.equal((await lease.renewLease()).leaseId, lease.leaseId);
      assert.equal(await refusal(second(randomUUID()).renewLease()), "409 LeaseIdMismatchWithLeaseOperation");
      assert.equal(await refusal(second(randomUUID()).releaseLease()), "409 LeaseIdMismatchWithLeaseOperation");
      assert.equal(await refusal(second(randomUUID()).changeLease(randomUUID())), "409 LeaseIdMismatchWithLeaseOperation");
      const next = randomUUID();
      assert.equal((await lease.changeLease(next)).leaseId, next);
      assert.equal((await lease.breakLease(20)).leaseTime, 20);
      assert.equal((await client.getProperties()).leaseState, "breaking");
      assert.equal(await refusal(lease.renewLease()), "409 LeaseIsBrokenAndCannotBeRenewed");
      assert.equal(await refusal(lease.changeLease(randomUUID())), "409 LeaseIsBreakingAndCannotBeChanged");
      assert.equal(await refusal(second(next).acquireLease(15)), "409 LeaseIsBreakingAndCannotBeAcquired");
      assert.equal((await lease.breakLease(0)).leaseTime, 0);
      assert.equal((await client.getProperties()).leaseState, "broken");
      assert.equal(await refusal(client.setMetadata({}, { conditions: { leaseId: next } })), "412 LeaseLost");
      await client.setMetadata({ a: "1" });
      assert.equal((await client.getProperties()).leaseState, "available", "a write by anybody ends what is left of it");
      assert.equal(await refusal(lease.breakLease(0)), "409 LeaseNotPresentWithLeaseOperation");
    });

    test("an infinite lease that is broken without a period is broken at once", async () => {
      const { client, lease } = await leased(-1);
      assert.equal((await lease.breakLease(undefined as never)).leaseTime, 0);
      assert.equal((await client.getProperties()).leaseState, "broken");
    });

    test("lease actions obey conditions, and bad headers are 400", async () => {
      const { client, container } = await leased();
      const lease = client.getBlobLeaseClient();
      assert.equal(await refusal(lease.breakLease(0, { conditions: { ifMatch: '"0x80000000000DEAD"' } })), "412 ConditionNotMet");
      const ask = async (headers: Record<string, string>) => {
        const answer = await clients().raw("PUT", `/${container.containerName}/b?comp=lease`, { headers, body: "" });
        return `${answer.status} ${answer.headers.get("x-ms-error-code")}`;
      };
      assert.equal(await ask({}), "400 MissingRequiredHeader");
      assert.equal(await ask({ "x-ms-lease-action": "steal" }), "400 InvalidHeaderValue");
      assert.equal(await ask({ "x-ms-lease-action": "acquire" }), "400 MissingRequiredHeader");
      for (const seconds of ["14", "61", "0", "x"]) {
        assert.equal(await ask({ "x-ms-lease-action": "acquire", "x-ms-lease-duration": seconds }), "400 InvalidHeaderValue", seconds);
      }
      assert.equal(await ask({ "x-ms-lease-action": "break", "x-ms-lease-break-period": "61" }), "400 InvalidHeaderValue");
      assert.equal(await ask({ "x-ms-lease-action": "renew" }), "400 MissingRequiredHeader");
      assert.equal(await ask({ "x-ms-lease-action": "change", "x-ms-lease-id": randomUUID() }), "400 MissingRequiredHeader");
      const missing = container.getBlockBlobClient("not-there").getBlobLeaseClient();
      assert.equal(await refusal(missing.acquireLease(15)), "404 BlobNotFound");
    });

    test("a lease id may be any form of a GUID", async () => {
      const { container } = await leased();
      await container.getBlockBlobClient("forms").upload("1", 1);
      const id = randomUUID();
      const path = `/${container.containerName}/forms?comp=lease`;
      const braces = { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "15", "x-ms-proposed-lease-id": `{${id.toUpperCase()}}` };
      const acquired = await clients().raw("PUT", path, { headers: braces, body: "" });
      assert.deepEqual([acquired.status, acquired.headers.get("x-ms-lease-id")], [201, id]);
      const bare = { "x-ms-lease-action": "renew", "x-ms-lease-id": id.replaceAll("-", "") };
      assert.equal((await clients().raw("PUT", path, { headers: bare, body: "" })).status, 200);
    });

    test("a container's lease guards its deletion, and nothing inside", async () => {
      const container = await clients().container();
      const lease = container.getBlobLeaseClient();
      await lease.acquireLease(15);
      assert.equal((await container.getProperties()).leaseState, "leased");
      await container.getBlockBlobClient("b").upload("1", 1);
      await container.setMetadata({ a: "1" });
      const other = { conditions: { leaseId: randomUUID() } };
      assert.equal(await refusal(container.setMetadata({ a: "1" }, other)), "412 LeaseIdMismatchWithContainerOperation");
      assert.equal(await refusal(container.delete()), "412 LeaseIdMissing");
      assert.equal(await refusal(container.delete(other)), "412 LeaseIdMismatchWithContainerOperation");
      await container.delete({ conditions: { leaseId: lease.leaseId } });
      assert.equal(await container.exists(), false);
    });

    test("listings show leases", async () => {
      const { container, lease } = await leased(-1);
      for await (const blob of container.listBlobsFlat()) {
        assert.deepEqual([blob.properties.leaseState, blob.properties.leaseDuration], ["leased", "infinite"]);
      }
      await lease.releaseLease();
    });
  });
}
