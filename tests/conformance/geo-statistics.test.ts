/** Get Service Stats of a copy, and the SDK's way to the secondary location when the primary refuses. */
import assert from "node:assert/strict";
import dns from "node:dns";
import { after, test } from "node:test";
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  AccountSASServices,
  BlobServiceClient,
  generateAccountSASQueryParameters,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import type { HttpRequest } from "@stamp/ports";
import { accountKey, accountName, type ScriptedStamp, startScriptedStamp } from "./scripted-stamp.ts";
import { roleRow, secondaryAccount, services, statisticsOf } from "./statistics.ts";
import { Clients } from "./target.ts";

const running: ScriptedStamp[] = [];
after(async () => {
  for (const stamp of running) await stamp.stop();
});

async function start(lastSyncMs: () => number | undefined): Promise<ScriptedStamp> {
  const stamp = await startScriptedStamp({ lastSyncMs, frontEnd: { accountCacheMs: 1 } });
  running.push(stamp);
  return stamp;
}

test("statistics: a copy is bootstrap while it is filled, live with its Last Sync Time, and unavailable while nobody tells it", async () => {
  let lastSyncMs: number | undefined = Date.UTC(2026, 10, 26, 6, 30, 15, 999);
  const stamp = await start(() => lastSyncMs);
  await stamp.setRole(roleRow("unseeded"));
  for (const service of services)
    assert.deepEqual(await statisticsOf(service, stamp), { status: "bootstrap", lastSync: undefined }, service);
  await stamp.setRole(roleRow("secondary"));
  const whole = new Date(Date.UTC(2026, 10, 26, 6, 30, 15));
  for (const service of services) assert.deepEqual(await statisticsOf(service, stamp), { status: "live", lastSync: whole }, service);
  lastSyncMs = undefined;
  for (const service of services)
    assert.deepEqual(await statisticsOf(service, stamp), { status: "unavailable", lastSync: undefined }, service);
});

test("statistics: the body has the elements of the reference, and needs an account SAS for the service", async () => {
  const stamp = await start(() => Date.UTC(2026, 10, 26, 6, 30, 15));
  await stamp.setRole(roleRow("secondary"));
  const sasFor = (resourceTypes: string, permissions: string): string =>
    generateAccountSASQueryParameters(
      {
        services: AccountSASServices.parse("bqt").toString(),
        resourceTypes: AccountSASResourceTypes.parse(resourceTypes).toString(),
        permissions: AccountSASPermissions.parse(permissions),
        expiresOn: new Date(Date.now() + 60_000),
      },
      new StorageSharedKeyCredential(accountName, accountKey),
    ).toString();
  for (const endpoint of [stamp.endpoint, stamp.queueEndpoint, stamp.tableEndpoint]) {
    const ask = (sas: string) => fetch(`${endpoint}/${secondaryAccount}/?restype=service&comp=stats&${sas}`);
    const answer = await ask(sasFor("s", "r"));
    assert.deepEqual([answer.status, answer.headers.get("content-type")], [200, "application/xml"]);
    assert.equal(
      await answer.text(),
      '<?xml version="1.0" encoding="utf-8"?><StorageServiceStats><GeoReplication><Status>live</Status>' +
        "<LastSyncTime>Thu, 26 Nov 2026 06:30:15 GMT</LastSyncTime></GeoReplication></StorageServiceStats>",
    );
    for (const [types, permissions] of [
      ["co", "r"],
      ["s", "w"],
    ] as const) {
      const { status } = await ask(sasFor(types, permissions));
      assert.equal(status, 403, `${types} ${permissions}`);
    }
    const none = await fetch(`${endpoint}/${secondaryAccount}/?restype=service&comp=stats`);
    assert.ok(none.status === 401 || none.status === 403, String(none.status));
  }
});

test("statistics: at the primary they are 400, whether the account has a second stamp or not", async () => {
  const stamp = await start(() => Date.now());
  for (const role of [roleRow("primary"), roleRow("drained"), ""]) {
    await stamp.setRole(role);
    for (const service of services) {
      await assert.rejects(
        statisticsOf(service, stamp, accountName),
        (error: { statusCode?: number; code?: string; details?: unknown }) => {
          assert.equal(error.statusCode, 400, service);
          assert.match(JSON.stringify([error.code, error.details]), /InvalidQueryParameterValue/, service);
          return true;
        },
      );
    }
  }
});

test("SDK: with secondaryHost reads go to the copy when the primary's name refuses, and writes do not", async (t) => {
  const asked: string[] = [];
  const onAnswer = ({ method, headers }: HttpRequest): void => void asked.push(`${method} ${headers.host?.split(".")[0]}`);
  const stamp = await startScriptedStamp({ frontEnd: { accountCacheMs: 1 }, onAnswer });
  running.push(stamp);
  const clients = new Clients({ endpoint: stamp.endpoint, accountName, accountKey, stop: async () => {} });
  const { containerName } = await clients.container();
  await clients.service.getContainerClient(containerName).getBlockBlobClient("b").upload("content", 7);
  await stamp.setRole(roleRow("secondary"));
  const { port } = new URL(stamp.endpoint);
  // Every name of a host is this machine.
  t.mock.method(dns, "lookup", (_host: string, options: dns.LookupAllOptions, found: (...answer: unknown[]) => void) =>
    options.all ? found(null, [{ address: "127.0.0.1", family: 4 }]) : found(null, "127.0.0.1", 4),
  );
  // The SDK takes a name without a port, and keeps the port of the primary.
  const hostOf = (account: string): string => `${account}.blob.localhost`;
  const retryOptions = { maxTries: 3, retryDelayInMs: 10, maxRetryDelayInMs: 20, secondaryHost: hostOf(secondaryAccount) };
  const service = new BlobServiceClient(`http://${hostOf(accountName)}:${port}`, new StorageSharedKeyCredential(accountName, accountKey), {
    retryOptions,
  });
  const blob = service.getContainerClient(containerName).getBlockBlobClient("b");
  asked.length = 0;
  assert.equal((await blob.downloadToBuffer(0, 7)).toString(), "content");
  assert.deepEqual(asked, [`GET ${accountName}`, `GET ${secondaryAccount}`]);
  asked.length = 0;
  await assert.rejects(blob.upload("other", 5), { statusCode: 503 });
  assert.deepEqual(new Set(asked), new Set([`PUT ${accountName}`]));
});
