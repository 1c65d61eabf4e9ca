/** Bearer tokens of the configured issuer, and user delegation keys and SAS made with them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BlobSASPermissions,
  BlockBlobClient,
  ContainerSASPermissions,
  generateBlobSASQueryParameters,
  type UserDelegationKey,
} from "@azure/storage-blob";
import type { TestIssuer } from "./issuer.ts";
import { type Clients, failure } from "./target.ts";

const minute = 60_000;
const seconds = (ms: number): Date => new Date(Math.floor(ms / 1000) * 1000);
const codeOf = (answer: Response): string => `${answer.status} ${answer.headers.get("x-ms-error-code") ?? ""}`.trim();

export function bearerSuite(clients: () => Clients): void {
  const ask = (token: string, method: string, path: string, body?: string, headers: Record<string, string> = {}): Promise<Response> =>
    clients().raw(method, path, {
      sign: false,
      ...(body === undefined ? {} : { body }),
      headers: { authorization: `Bearer ${token}`, "x-ms-version": "2025-01-05", ...headers },
    });
  const issuer = (): TestIssuer => {
    const { issuer } = clients().target;
    if (!issuer) throw new Error("this target takes no bearer tokens");
    return issuer;
  };

  test("bearer tokens: each role does what it may, and what is more is refused", async () => {
    const container = await clients().container();
    await container.getBlockBlobClient("b").upload("text", 4);
    const at = `/${container.containerName}`;
    const [reader, writer, owner] = await Promise.all(
      ["readers", "Storage Blob Data Contributor", "owners"].map((role) => issuer().token({ oid: "someone", roles: ["other", role] })),
    );
    const put = { "x-ms-blob-type": "BlockBlob" };
    const acl = `${at}?restype=container&comp=acl`;
    const outcomes = async (token = ""): Promise<string[]> => [
      codeOf(await ask(token, "GET", `${at}/b`)),
      codeOf(await ask(token, "GET", `${at}?restype=container&comp=list`)),
      codeOf(await ask(token, "PUT", `${at}/by-bearer`, "x", put)),
      codeOf(await ask(token, "DELETE", `${at}/by-bearer`)),
      codeOf(await ask(token, "GET", acl)),
    ];
    const no = "403 AuthorizationPermissionMismatch";
    assert.deepEqual(await outcomes(reader), ["200", "200", no, no, no]);
    assert.deepEqual(await outcomes(writer), ["200", "200", "201", "202", no]);
    assert.deepEqual(await outcomes(owner), ["200", "200", "201", "202", "200"]);
  });

  test("bearer tokens are taken since 2017-11-09; a request without a version is older", async () => {
    const { containerName } = await clients().container();
    const list = `/${containerName}?restype=container&comp=list`;
    const token = await issuer().token({ oid: "someone", roles: ["owners"] });
    const { service } = clients();
    const { defaultServiceVersion = "2009-09-19" } = await service.getProperties();
    assert.equal(codeOf(await ask(token, "GET", list, undefined, { "x-ms-version": "2017-11-09" })), "200");
    const old = await ask(token, "GET", list, undefined, { "x-ms-version": "2017-07-29" });
    assert.equal(codeOf(old), "403 AuthenticationFailed");
    assert.match(await old.text(), /Authentication scheme Bearer is not supported in this version\./);
    const { endpoint, accountName } = clients().target;
    const none = await fetch(`${endpoint}/${accountName}${list}`, { headers: { authorization: `Bearer ${token}` } });
    assert.equal(codeOf(none), defaultServiceVersion < "2017-11-09" ? "403 AuthenticationFailed" : "200");
  });

  test("bearer tokens that are not valid are 401 with a challenge; roles that mean nothing are 403", async () => {
    const container = await clients().container();
    const list = `/${container.containerName}?restype=container&comp=list`;
    const mine = { oid: "someone", roles: ["owners"] };
    for (const token of [
      await issuer().token({ ...mine, expires: "-1h" }),
      await issuer().token({ ...mine, audience: "other" }),
      "a.b.c",
    ]) {
      const answer = await ask(token, "GET", list);
      assert.equal(codeOf(answer), "401 InvalidAuthenticationInfo");
      assert.match(
        answer.headers.get("www-authenticate") ?? "",
        /^Bearer authorization_uri=https:\/\/issuer\.example\/tenant resource_id=/,
      );
    }
    assert.equal(codeOf(await ask(await issuer().token({ oid: "someone", roles: ["nobody"] }), "GET", list)), "403 AuthorizationFailure");
    const none = await clients().raw("GET", "?comp=list", { sign: false, headers: { "x-ms-version": "2025-01-05" } });
    assert.equal(codeOf(none), "401 NoAuthenticationInformation");
    assert.match(none.headers.get("www-authenticate") ?? "", /^Bearer authorization_uri=/);
  });

  const keyOf = async (token: string, startsOn: Date, expiresOn: Date): Promise<UserDelegationKey> => {
    const body = `<?xml version="1.0"?><KeyInfo><Start>${startsOn.toISOString()}</Start><Expiry>${expiresOn.toISOString()}</Expiry></KeyInfo>`;
    const answer = await ask(token, "POST", "?restype=service&comp=userdelegationkey", body);
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
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

  test("user delegation SAS: signed by a key of the bearer's, never more than the bearer's role, only while the key is valid", async () => {
    const container = await clients().container();
    await container.getBlockBlobClient("b").upload("text", 4);
    const { containerName } = container;
    const url = container.getBlobClient("b").url;
    const now = Date.now();
    const writer = await keyOf(
      await issuer().token({ oid: "writer", roles: ["writers"] }),
      seconds(now - minute),
      seconds(now + 60 * minute),
    );
    assert.deepEqual([writer.signedObjectId, writer.signedTenantId, writer.signedService], ["writer", "tenant-1", "b"]);
    const { accountName } = clients().target;
    const withSas = (key: UserDelegationKey, more: object, permissions = "rw"): BlockBlobClient => {
      const values = {
        containerName,
        permissions: ContainerSASPermissions.parse(permissions),
        expiresOn: seconds(now + 10 * minute),
        ...more,
      };
      const sas = generateBlobSASQueryParameters(values, key, accountName).toString();
      return new BlockBlobClient(`${url}?${sas}`, undefined, { retryOptions: { maxTries: 1 } });
    };
    const code = async (work: Promise<unknown>): Promise<string> => {
      const error = await failure(work);
      return `${error.statusCode} ${error.code}`;
    };
    for (const version of ["2018-11-09", "2020-02-10", "2020-12-06", "2025-07-05", "2026-04-06"]) {
      const agents =
        version >= "2020-02-10" ? { preauthorizedAgentObjectId: "agent", correlationId: "11111111-1111-1111-1111-111111111111" } : {};
      await withSas(writer, { version, ...agents, ipRange: { start: "127.0.0.1" }, contentType: "text/x" }).upload("more", 4);
      const blob = { blobName: "b", permissions: BlobSASPermissions.parse("r"), version };
      assert.equal((await withSas(writer, blob).downloadToBuffer()).toString(), "more", version);
    }
    assert.equal(await code(withSas({ ...writer, signedObjectId: "other" }, {}).download()), "403 AuthenticationFailed");
    assert.equal(await code(withSas({ ...writer, value: Buffer.alloc(32).toString("base64") }, {}).download()), "403 AuthenticationFailed");
    const longer = { ...writer, signedExpiresOn: seconds(now + 120 * minute) };
    assert.equal(await code(withSas(longer, {}).download()), "403 AuthenticationFailed");
    const reader = await keyOf(
      await issuer().token({ oid: "reader", roles: ["readers"] }),
      seconds(now - minute),
      seconds(now + 60 * minute),
    );
    await withSas(reader, {}).download();
    assert.equal(await code(withSas(reader, {}).upload("x", 1)), "403 AuthorizationPermissionMismatch");
    const later = await keyOf(
      await issuer().token({ oid: "reader", roles: ["readers"] }),
      seconds(now + 30 * minute),
      seconds(now + 60 * minute),
    );
    assert.equal(await code(withSas(later, {}).download()), "403 AuthenticationFailed");
  });

  test("a SAS for one user is good together with a token of that user; bound headers must be sent", async () => {
    const container = await clients().container();
    await container.getBlockBlobClient("b").upload("text", 4);
    const { accountName } = clients().target;
    const now = Date.now();
    const key = await keyOf(await issuer().token({ oid: "maker", roles: ["readers"] }), seconds(now - minute), seconds(now + 60 * minute));
    const values = {
      containerName: container.containerName,
      permissions: ContainerSASPermissions.parse("r"),
      expiresOn: seconds(now + minute),
    };
    const path = `/${container.containerName}/b`;
    const get = async (more: object, headers: Record<string, string>): Promise<string> => {
      const sas = generateBlobSASQueryParameters({ ...values, ...more }, key, accountName).toString();
      return codeOf(await clients().raw("GET", `${path}?${sas}`, { sign: false, headers }));
    };
    const bearer = async (oid: string) => ({ authorization: `Bearer ${await issuer().token({ oid, roles: ["readers"] })}` });
    const user = { version: "2025-07-05", delegatedUserObjectId: "user" };
    assert.equal(await get(user, await bearer("user")), "200");
    const roleless = { authorization: `Bearer ${await issuer().token({ oid: "user" })}` };
    assert.equal(await get(user, roleless), "200", "whose token it is counts, not what it may by itself");
    assert.equal(await get(user, {}), "403 AuthenticationFailed");
    assert.equal(await get(user, await bearer("other")), "403 AuthenticationFailed");
    const bound = { version: "2026-04-06", requestHeaders: { "x-purpose": "audit" } };
    assert.equal(await get(bound, { "x-purpose": "audit" }), "200");
    assert.equal(await get(bound, { "x-purpose": "other" }), "403 AuthenticationFailed");
    assert.equal(await get(bound, {}), "403 AuthenticationFailed");
  });

  test("a request for a user delegation key that is wrong is told what", async () => {
    const token = await issuer().token({ oid: "maker", roles: ["readers"] });
    const key = async (body: string): Promise<string> => codeOf(await ask(token, "POST", "?restype=service&comp=userdelegationkey", body));
    const inDays = (days: number): string => new Date(Date.now() + days * 24 * 60 * minute).toISOString();
    assert.equal(await key(""), "400 InvalidHeaderValue", "as the service answers a request without a body (azure-sdk-for-python #16281)");
    assert.equal(await key("nonsense"), "400 InvalidXmlDocument");
    assert.equal(await key("<KeyInfo></KeyInfo>"), "400 MissingRequiredXmlNode");
    assert.equal(await key(`<KeyInfo><Expiry>${inDays(8)}</Expiry></KeyInfo>`), "400 InvalidXmlNodeValue");
    assert.equal(await key(`<KeyInfo><Expiry>${inDays(-1)}</Expiry></KeyInfo>`), "400 InvalidXmlNodeValue");
    assert.equal(await key(`<KeyInfo><Start>never</Start><Expiry>${inDays(1)}</Expiry></KeyInfo>`), "400 InvalidXmlNodeValue");
    assert.equal(await key(`<KeyInfo><Expiry>${inDays(7)}</Expiry></KeyInfo>`), "200");
  });
}
