/** A front-end behind a proxy: what SAS, signatures, answers and the well-known key make of the client that the proxy names. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { request } from "node:http";
import { after, test } from "node:test";
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  AccountSASServices,
  generateAccountSASQueryParameters,
  SASProtocol,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { fromBase64, signRequest } from "@stamp/azure-rest";
import { accountKey, accountName, type ScriptedOptions, type ScriptedStamp, startScriptedStamp } from "./scripted-stamp.ts";
import { Clients } from "./target.ts";

const running: ScriptedStamp[] = [];
after(async () => {
  for (const stamp of running) await stamp.stop();
});

interface Behind {
  readonly clients: Clients;
  /** Status and error code of a signed list of containers under a Host of its own. */
  readonly listAs: (host: string, headers?: Record<string, string>) => Promise<readonly [number | undefined, string | undefined]>;
}

async function start(frontEnd: ScriptedOptions["frontEnd"] = {}): Promise<Behind> {
  const stamp = await startScriptedStamp({ frontEnd });
  running.push(stamp);
  const clients = new Clients({ endpoint: stamp.endpoint, accountName, accountKey, stop: async () => {} });
  const listAs = (host: string, headers: Record<string, string> = {}) => {
    const target = `/${accountName}?comp=list`;
    const hmac = (key: Uint8Array, message: Uint8Array): Uint8Array => createHmac("sha256", key).update(message).digest();
    const asked = { service: "blob", method: "GET", target, headers } as const;
    const signed = signRequest(asked, accountName, fromBase64(accountKey) as Uint8Array, Date.now(), hmac);
    return new Promise<readonly [number | undefined, string | undefined]>((resolve, reject) => {
      request(`${stamp.endpoint}${target}`, { headers: { ...signed, host } }, (answer) => {
        answer.resume();
        resolve([answer.statusCode, answer.headers["x-ms-error-code"] as string | undefined]);
      })
        .on("error", reject)
        .end();
    });
  };
  return { clients, listAs };
}

const sasWith = (limits: { readonly protocol?: SASProtocol; readonly ipRange?: { readonly start: string } }): string =>
  generateAccountSASQueryParameters(
    {
      services: AccountSASServices.parse("b").toString(),
      resourceTypes: AccountSASResourceTypes.parse("s").toString(),
      permissions: AccountSASPermissions.parse("l"),
      expiresOn: new Date(Date.now() + 3_600_000),
      ...limits,
    },
    new StorageSharedKeyCredential(accountName, accountKey),
  ).toString();

const listWith = async ({ clients }: Behind, sas: string, headers: Record<string, string>): Promise<string> => {
  const answer = await clients.raw("GET", `?comp=list&${sas}`, { headers, sign: false });
  return answer.headers.get("x-ms-error-code") ?? String(answer.status);
};

const own = { allowDevelopmentAccount: true } as const;

test("behind a trusted proxy: spr=https is the client's scheme, sip its address; of anybody else the headers are ignored", async () => {
  const trusting = await start({ ...own, trustedProxies: ["127.0.0.1", "10.0.0.0/8"] });
  const strict = await start(own);
  for (const [behind, good] of [
    [trusting, true],
    [strict, false],
  ] as const) {
    const https = sasWith({ protocol: SASProtocol.Https });
    const forwarded = { "x-forwarded-for": "203.0.113.9", "x-forwarded-proto": "https" };
    assert.equal(await listWith(behind, https, forwarded), good ? "200" : "AuthorizationProtocolMismatch");
    assert.equal(await listWith(behind, https, { ...forwarded, "x-forwarded-proto": "http" }), "AuthorizationProtocolMismatch");
    const from = sasWith({ ipRange: { start: "203.0.113.9" } });
    assert.equal(await listWith(behind, from, forwarded), good ? "200" : "AuthorizationSourceIPMismatch");
    assert.equal(await listWith(behind, from, { "x-forwarded-for": "203.0.113.9, 198.51.100.1" }), "AuthorizationSourceIPMismatch");
    const chain = { "x-forwarded-for": "198.51.100.1, 203.0.113.9, 10.0.0.7" };
    assert.equal(await listWith(behind, from, chain), good ? "200" : "AuthorizationSourceIPMismatch");
    assert.equal(await listWith(behind, from, {}), "AuthorizationSourceIPMismatch", "the address of the proxy itself");
  }
});

test("behind a trusted proxy: answers name the scheme and host of the client; of anybody else the headers are ignored", async () => {
  const headers = { "x-forwarded-proto": "https", "x-forwarded-host": "storage.internal", "x-forwarded-for": "203.0.113.9" };
  const endpointIn = async ({ clients }: Behind): Promise<string | undefined> => {
    const answer = await clients.raw("GET", "?comp=list", { headers });
    return /ServiceEndpoint="([^"]*)"/.exec(await answer.text())?.[1];
  };
  assert.equal(await endpointIn(await start({ ...own, trustedProxies: ["127.0.0.1"] })), "https://storage.internal/devstoreaccount1/");
  assert.match((await endpointIn(await start(own))) ?? "", /^http:\/\/127\.0\.0\.1:\d+\/devstoreaccount1\/$/);
});

test("well-known key: for this machine it is refused through a proxy, also through one that adds nothing and is named as trusted", async () => {
  const local = await start();
  assert.deepEqual(await local.listAs("127.0.0.1:10000"), [200, undefined]);
  assert.deepEqual(await local.listAs("evil.example"), [403, "AuthenticationFailed"], "DNS rebinding");
  assert.deepEqual(await local.listAs("127.0.0.1", { "x-forwarded-for": "127.0.0.1" }), [403, "AuthenticationFailed"]);
  const trusting = await start({ trustedProxies: ["127.0.0.1"] });
  assert.deepEqual(await trusting.listAs("127.0.0.1:10000"), [403, "AuthenticationFailed"]);
  assert.deepEqual(await trusting.listAs("127.0.0.1", { "x-forwarded-for": "127.0.0.1" }), [403, "AuthenticationFailed"]);
});

test("well-known key for everybody: refused under a host that a stranger can own, unless it is listed", async () => {
  const open = await start({ ...own, hostSuffixes: ["blob.storage.example"] });
  for (const host of ["127.0.0.1:10000", "localhost", "front-end-1:10000", "host.docker.internal", "10.1.2.3"])
    assert.deepEqual(await open.listAs(host), [200, undefined], host);
  for (const host of ["evil.example:10000", "127.0.0.1.evil.example", "storage.example"])
    assert.deepEqual(await open.listAs(host), [403, "AuthenticationFailed"], host);
  const listed = await start({ ...own, developmentAccountHosts: ["storage.example", "*.lan"] });
  for (const host of ["storage.example", "stamp.lan:10000"]) assert.deepEqual(await listed.listAs(host), [200, undefined], host);
  assert.deepEqual(await listed.listAs("evil.example"), [403, "AuthenticationFailed"]);
});
