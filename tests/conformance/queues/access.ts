/** Stored access policies, shared access signatures and service properties of the Queue service. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AccountSASPermissions,
  generateAccountSASQueryParameters,
  generateQueueSASQueryParameters,
  QueueClient,
  QueueSASPermissions,
  QueueServiceClient,
} from "@azure/storage-queue";
import { serviceRules } from "../service-rules.ts";
import { type QueueClients, refusal } from "./target.ts";

const soon = (): Date => new Date(Date.now() + 600_000);
const once = { retryOptions: { maxTries: 1 } };

export function accessSuite(clients: () => QueueClients): void {
  const withSas = (queue: QueueClient, permissions: string): QueueClient => {
    const values = { queueName: queue.name, permissions: QueueSASPermissions.parse(permissions), expiresOn: soon() };
    return new QueueClient(`${queue.url}?${generateQueueSASQueryParameters(values, clients().credential)}`, undefined, once);
  };

  test("stored access policies are kept and given back", async () => {
    const queue = await clients().queue();
    assert.deepEqual((await queue.getAccessPolicy()).signedIdentifiers, []);
    const startsOn = new Date("2026-01-02T03:04:05Z");
    const expiresOn = soon();
    await queue.setAccessPolicy([
      { id: "all", accessPolicy: { permissions: "raup", startsOn, expiresOn } },
      { id: "bare", accessPolicy: {} },
    ]);
    const { signedIdentifiers } = await queue.getAccessPolicy();
    assert.deepEqual(
      signedIdentifiers.map(({ id }) => id),
      ["all", "bare"],
    );
    assert.deepEqual(signedIdentifiers[0]?.accessPolicy, { permissions: "raup", startsOn, expiresOn });
    assert.equal((await clients().raw("HEAD", `/${queue.name}?comp=acl`)).status, 200);
    await queue.setMetadata({ other: "x" });
    assert.equal((await queue.getAccessPolicy()).signedIdentifiers.length, 2);
    await queue.setAccessPolicy([]);
    assert.deepEqual((await queue.getAccessPolicy()).signedIdentifiers, []);
  });

  test("a SAS of a queue allows what its permissions say", async () => {
    const queue = await clients().queue();
    const sent = await withSas(queue, "a").sendMessage("x");
    assert.equal(await refusal(withSas(queue, "r").sendMessage("x")), "403 AuthorizationPermissionMismatch");
    assert.equal((await withSas(queue, "r").peekMessages()).peekedMessageItems.length, 1);
    assert.equal((await withSas(queue, "r").getProperties()).approximateMessagesCount, 1);
    assert.equal(await refusal(withSas(queue, "ra").receiveMessages()), "403 AuthorizationPermissionMismatch");
    const updated = await withSas(queue, "u").updateMessage(sent.messageId, sent.popReceipt, "y", 0);
    assert.equal(
      await refusal(withSas(queue, "rau").deleteMessage(sent.messageId, updated.popReceipt ?? "")),
      "403 AuthorizationPermissionMismatch",
    );
    const [taken] = (await withSas(queue, "p").receiveMessages()).receivedMessageItems;
    await withSas(queue, "p").deleteMessage(taken?.messageId ?? "", taken?.popReceipt ?? "");
    assert.equal((await refusal(withSas(queue, "raup").delete())).slice(0, 3), "403");
    assert.equal((await refusal(withSas(queue, "raup").clearMessages())).slice(0, 3), "403");
  });

  test("a SAS by a stored policy ends with it", async () => {
    const queue = await clients().queue();
    await queue.setAccessPolicy([
      { id: "p", accessPolicy: { permissions: "ra", startsOn: new Date(Date.now() - 60_000), expiresOn: soon() } },
    ]);
    const holder = new QueueClient(await queue.generateSasUrl({ identifier: "p" }), undefined, once);
    await holder.sendMessage("x");
    await queue.setAccessPolicy([]);
    assert.equal(await refusal(holder.sendMessage("y")), "403 AuthenticationFailed");
  });

  test("an account SAS: services and resource types count", async () => {
    const queue = await clients().queue();
    const sas = (services: string, resourceTypes: string, permissions: string): string =>
      generateAccountSASQueryParameters(
        { services, resourceTypes, permissions: AccountSASPermissions.parse(permissions), expiresOn: soon() },
        clients().credential,
      ).toString();
    const of = (text: string): QueueClient =>
      new QueueServiceClient(`${clients().queues.url}?${text}`, undefined, once).getQueueClient(queue.name);
    await of(sas("q", "o", "a")).sendMessage("x");
    assert.equal(await refusal(of(sas("b", "o", "a")).sendMessage("x")), "403 AuthorizationServiceMismatch");
    assert.equal(await refusal(of(sas("q", "c", "a")).sendMessage("x")), "403 AuthorizationResourceTypeMismatch");
    await of(sas("q", "o", "d")).clearMessages();
    await of(sas("q", "c", "r")).getProperties();
    await of(sas("q", "c", "d")).delete();
  });

  serviceRules(clients, "/?comp=list", "queue");

  test("service properties are kept and given back", async () => {
    const { queues } = clients();
    const rule = { allowedOrigins: "http://here", allowedMethods: "GET", allowedHeaders: "*", exposedHeaders: "*", maxAgeInSeconds: 5 };
    await queues.setProperties({ cors: [rule] });
    assert.deepEqual((await queues.getProperties()).cors, [rule]);
    await queues.setProperties({ cors: [] });
    assert.equal((await queues.getProperties()).cors?.length ?? 0, 0);
  });
}
