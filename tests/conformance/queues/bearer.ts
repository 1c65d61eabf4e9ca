/** Bearer tokens at the Queue service, and user delegation SAS of a queue. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { generateQueueSASQueryParameters, QueueClient, QueueSASPermissions, type UserDelegationKey } from "@azure/storage-queue";
import { type QueueClients, refusal } from "./target.ts";

export function bearerSuite(clients: () => QueueClients): void {
  const token = async (role: string): Promise<Record<string, string>> => {
    const { issuer } = clients().target;
    if (!issuer) throw new Error("this target takes no bearer tokens");
    return { authorization: `Bearer ${await issuer.token({ oid: role, roles: [role] })}`, "x-ms-version": "2025-07-05" };
  };

  test("a role says what a bearer may do with queues", async () => {
    const queue = await clients().queue();
    await queue.sendMessage("text");
    const peek = async (role: string): Promise<number> =>
      (await clients().raw("GET", `/${queue.name}/messages?peekonly=true`, { sign: false, headers: await token(role) })).status;
    const take = async (role: string): Promise<number> =>
      (await clients().raw("GET", `/${queue.name}/messages`, { sign: false, headers: await token(role) })).status;
    assert.deepEqual([await peek("readers"), await take("readers")], [200, 403]);
    assert.deepEqual([await peek("Storage Queue Data Contributor"), await take("writers")], [200, 200]);
    assert.equal(await peek("Storage Blob Data Owner"), 403);
  });

  test("a user delegation SAS of a queue: signed by a key of the bearer's, for queues only, never more than its role", async () => {
    const queue = await clients().queue();
    const { target } = clients();
    const whole = (ms: number): Date => new Date(Math.floor((Date.now() + ms) / 1000) * 1000);
    const keyOf = async (role: string): Promise<UserDelegationKey> => {
      const body = `<KeyInfo><Start>${whole(-60_000).toISOString()}</Start><Expiry>${whole(600_000).toISOString()}</Expiry></KeyInfo>`;
      const asked = await clients().raw("POST", "?restype=service&comp=userdelegationkey", {
        sign: false,
        body,
        headers: await token(role),
      });
      const text = await asked.text();
      assert.equal(asked.status, 200, text);
      const of = (name: string): string => new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)?.[1] ?? "";
      return {
        signedObjectId: of("SignedOid"),
        signedTenantId: of("SignedTid"),
        signedStartsOn: new Date(of("SignedStart")),
        signedExpiresOn: new Date(of("SignedExpiry")),
        signedService: of("SignedService"),
        signedVersion: of("SignedVersion"),
        value: of("Value"),
      } as UserDelegationKey;
    };
    const withSas = (key: UserDelegationKey): QueueClient => {
      const values = {
        queueName: queue.name,
        permissions: QueueSASPermissions.parse("ra"),
        expiresOn: whole(300_000),
        version: "2025-07-05",
      };
      const sas = generateQueueSASQueryParameters(values, key, target.accountName).toString();
      return new QueueClient(`${target.endpoint}/${target.accountName}/${queue.name}?${sas}`, undefined, { retryOptions: { maxTries: 1 } });
    };
    const writer = await keyOf("writers");
    assert.equal(writer.signedService, "q");
    await withSas(writer).sendMessage("by delegation");
    assert.equal((await withSas(writer).peekMessages()).peekedMessageItems[0]?.messageText, "by delegation");
    assert.equal(await refusal(withSas(writer).clearMessages()), "403 AuthorizationPermissionMismatch");
    const reader = await keyOf("readers");
    assert.equal((await withSas(reader).peekMessages()).peekedMessageItems.length, 1);
    assert.equal(await refusal(withSas(reader).sendMessage("x")), "403 AuthorizationPermissionMismatch");
    assert.equal(await refusal(withSas({ ...reader, signedObjectId: "writers" }).peekMessages()), "403 AuthenticationFailed");
  });
}
