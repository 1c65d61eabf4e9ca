/** Bearer tokens at the Queue service, and user delegation SAS of a queue. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { generateQueueSASQueryParameters, QueueClient, QueueSASPermissions } from "@azure/storage-queue";
import { bearerHeaders, type DelegationKey, delegationKey, delegationVersion, secondsFromNow } from "../delegation.ts";
import { type QueueClients, refusal } from "./target.ts";

export function bearerSuite(clients: () => QueueClients): void {
  test("a role says what a bearer may do with queues", async () => {
    const queue = await clients().queue();
    await queue.sendMessage("text");
    const asks = async (path: string, role: string): Promise<number> =>
      (await clients().raw("GET", `/${queue.name}/messages${path}`, { sign: false, headers: await bearerHeaders(clients(), role) })).status;
    const peek = (role: string): Promise<number> => asks("?peekonly=true", role);
    const take = (role: string): Promise<number> => asks("", role);
    assert.deepEqual([await peek("readers"), await take("readers")], [200, 403]);
    assert.deepEqual([await peek("Storage Queue Data Contributor"), await take("writers")], [200, 200]);
    assert.equal(await peek("Storage Blob Data Owner"), 403);
  });

  test("a user delegation SAS of a queue: signed by a key of the bearer's, for queues only, never more than its role", async () => {
    const queue = await clients().queue();
    const { target } = clients();
    const withSas = (key: DelegationKey): QueueClient => {
      const values = {
        queueName: queue.name,
        permissions: QueueSASPermissions.parse("ra"),
        expiresOn: secondsFromNow(300),
        version: delegationVersion,
      };
      const sas = generateQueueSASQueryParameters(values, key, target.accountName).toString();
      return new QueueClient(`${target.endpoint}/${target.accountName}/${queue.name}?${sas}`, undefined, { retryOptions: { maxTries: 1 } });
    };
    const writer = await delegationKey(clients(), "writers");
    assert.equal(writer.signedService, "q");
    await withSas(writer).sendMessage("by delegation");
    assert.equal((await withSas(writer).peekMessages()).peekedMessageItems[0]?.messageText, "by delegation");
    assert.equal(await refusal(withSas(writer).clearMessages()), "403 AuthorizationPermissionMismatch");
    const reader = await delegationKey(clients(), "readers");
    assert.equal((await withSas(reader).peekMessages()).peekedMessageItems.length, 1);
    assert.equal(await refusal(withSas(reader).sendMessage("x")), "403 AuthorizationPermissionMismatch");
    assert.equal(await refusal(withSas({ ...reader, signedObjectId: "writers" }).peekMessages()), "403 AuthenticationFailed");
  });
}
