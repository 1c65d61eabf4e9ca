/** Shared access signatures as the SDK makes them: account, container and blob, stored access policies; and every way to be refused. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import {
  AccountSASPermissions,
  BlobClient,
  BlobSASPermissions,
  BlobServiceClient,
  BlockBlobClient,
  ContainerClient,
  ContainerSASPermissions,
  generateAccountSASQueryParameters,
  generateBlobSASQueryParameters,
  SASProtocol,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { serviceSas } from "./sas-by-hand.ts";
import { type Clients, failure } from "./target.ts";

const minute = 60_000;
const inTime = (ms: number): Date => new Date(Date.now() + ms);

export function sasSuite(current: () => Clients): void {
  const credential = (key = current().target.accountKey): StorageSharedKeyCredential =>
    new StorageSharedKeyCredential(current().target.accountName, key);
  type BlobValues = Parameters<typeof generateBlobSASQueryParameters>[0];
  type AccountValues = Parameters<typeof generateAccountSASQueryParameters>[0];
  const blobSas = (values: BlobValues, key?: string): string => generateBlobSASQueryParameters(values, credential(key)).toString();
  const containerSas = (containerName: string, permissions: string, more: Partial<BlobValues> = {}): string =>
    blobSas({ containerName, permissions: ContainerSASPermissions.parse(permissions), expiresOn: inTime(10 * minute), ...more });
  const oneBlobSas = (containerName: string, blobName: string, permissions: string, more: Partial<BlobValues> = {}): string =>
    blobSas({ containerName, blobName, permissions: BlobSASPermissions.parse(permissions), expiresOn: inTime(10 * minute), ...more });
  const accountSas = (permissions: string, resourceTypes: string, more: Partial<AccountValues> = {}, services = "b"): string =>
    generateAccountSASQueryParameters(
      { services, resourceTypes, permissions: AccountSASPermissions.parse(permissions), expiresOn: inTime(10 * minute), ...more },
      credential(),
    ).toString();

  const once = { retryOptions: { maxTries: 1 } };
  const blobWith = (url: string, sas: string): BlockBlobClient => new BlockBlobClient(`${url}?${sas}`, undefined, once);
  const containerWith = (url: string, sas: string): ContainerClient => new ContainerClient(`${url}?${sas}`, undefined, once);
  const serviceWith = (sas: string): BlobServiceClient => new BlobServiceClient(`${current().service.url}?${sas}`, undefined, once);
  const code = async (work: Promise<unknown>): Promise<string> => {
    const error = await failure(work);
    return `${error.statusCode} ${error.code ?? (error.response?.headers.get("x-ms-error-code") || "")}`;
  };
  const names = async (client: ContainerClient): Promise<string[]> => {
    const seen: string[] = [];
    for await (const blob of client.listBlobsFlat()) seen.push(blob.name);
    return seen;
  };

  test("SAS of a container: what its permissions allow, for the container and its blobs", async () => {
    const container = await current().container();
    await container.getBlockBlobClient("a").upload("text", 4);
    const reader = containerSas(container.containerName, "rl");
    assert.deepEqual(await names(containerWith(container.url, reader)), ["a"]);
    assert.equal((await blobWith(container.getBlobClient("a").url, reader).downloadToBuffer()).toString(), "text");
    assert.equal(await code(blobWith(container.getBlobClient("a").url, reader).upload("x", 1)), "403 AuthorizationPermissionMismatch");
    assert.equal(await code(blobWith(container.getBlobClient("a").url, reader).delete()), "403 AuthorizationPermissionMismatch");
    assert.equal(await code(containerWith(container.url, reader).delete()), "403 AuthorizationPermissionMismatch");
    assert.equal(await code(containerWith(container.url, reader).setMetadata({ a: "b" })), "403 AuthorizationPermissionMismatch");
    assert.equal(await code(containerWith(container.url, reader).getAccessPolicy()), "403 AuthorizationPermissionMismatch");
    const writer = containerSas(container.containerName, "wd");
    await blobWith(container.getBlobClient("b").url, writer).upload("x", 1);
    await blobWith(container.getBlobClient("b").url, writer).delete();
    assert.equal(await code(blobWith(container.getBlobClient("a").url, writer).download()), "403 AuthorizationPermissionMismatch");
    assert.equal(await code(names(containerWith(container.url, writer))), "403 AuthorizationPermissionMismatch");
  });

  test("SAS of a blob: for that blob alone, and not for its container", async () => {
    const container = await current().container();
    for (const name of ["a b/ü?#", "other"]) await container.getBlockBlobClient(name).upload("text", 4);
    const sas = oneBlobSas(container.containerName, "a b/ü?#", "rwt");
    const client = blobWith(container.getBlobClient("a b/ü?#").url, sas);
    assert.equal((await client.downloadToBuffer()).toString(), "text");
    await client.setMetadata({ k: "v" });
    assert.equal(await code(blobWith(container.getBlobClient("other").url, sas).download()), "403 AuthenticationFailed");
    assert.equal(await code(names(containerWith(container.url, sas))), "403 AuthenticationFailed");
    const elsewhere = await current().container();
    assert.equal(await code(blobWith(elsewhere.getBlobClient("a b/ü?#").url, sas).download()), "403 AuthenticationFailed");
  });

  test("SAS with create alone makes what is not there and overwrites nothing", async () => {
    const container = await current().container();
    const sas = containerSas(container.containerName, "c");
    const client = blobWith(container.getBlobClient("new").url, sas);
    await client.upload("first", 5);
    assert.equal(await code(client.upload("second", 6)), "403 UnauthorizedBlobOverwrite");
    assert.equal((await container.getBlobClient("new").downloadToBuffer()).toString(), "first");
    // As the service: blocks are written with `w` (a user delegation SAS may since 2026-04-06: authorization.test.ts).
    const id = Buffer.from("1").toString("base64");
    const blocks = blobWith(container.getBlobClient("blocks").url, sas);
    assert.equal(await code(blocks.stageBlock(id, "abc", 3)), "403 AuthorizationPermissionMismatch");
    assert.equal(await code(blocks.commitBlockList([id])), "403 AuthorizationPermissionMismatch");
  });

  test("SAS of an account: services, resource types and permissions", async () => {
    const container = await current().container();
    await container.getBlockBlobClient("a").upload("text", 4);
    const all = serviceWith(accountSas("rwdlac", "sco"));
    const seen: string[] = [];
    for await (const one of all.listContainers({ prefix: container.containerName })) seen.push(one.name);
    assert.deepEqual(seen, [container.containerName]);
    const made = all.getContainerClient(`c-${randomUUID()}`);
    await made.create();
    await made.getBlockBlobClient("x").upload("x", 1);
    await made.delete();
    assert.equal(
      await code(container.getAccessPolicy().then(() => all.getContainerClient(container.containerName).getAccessPolicy())),
      "403 AuthorizationPermissionMismatch",
    );
    const objects = serviceWith(accountSas("rl", "o")).getContainerClient(container.containerName);
    assert.equal((await objects.getBlobClient("a").downloadToBuffer()).toString(), "text");
    assert.equal(await code(names(objects)), "403 AuthorizationResourceTypeMismatch");
    assert.equal(await code(objects.getBlockBlobClient("a").upload("x", 1)), "403 AuthorizationPermissionMismatch");
    const queues = serviceWith(accountSas("rl", "sco", {}, "q")).getContainerClient(container.containerName);
    assert.equal(await code(names(queues)), "403 AuthorizationServiceMismatch");
    assert.equal(await code(serviceWith(accountSas("r", "sco")).setProperties({})), "403 AuthorizationPermissionMismatch");
    const information = await serviceWith(accountSas("l", "s")).getAccountInfo();
    assert.equal(information.accountKind, "StorageV2");
  });

  test("SAS: only in its time", async () => {
    const container = await current().container();
    await container.getBlockBlobClient("a").upload("text", 4);
    const at = (startMs: number | undefined, endMs: number): BlockBlobClient => {
      const start = startMs === undefined ? {} : { startsOn: inTime(startMs) };
      return blobWith(container.getBlobClient("a").url, containerSas(container.containerName, "r", { ...start, expiresOn: inTime(endMs) }));
    };
    await at(-minute, minute).download();
    assert.equal(await code(at(-2 * minute, -minute).download()), "403 AuthenticationFailed");
    assert.equal(await code(at(minute, 2 * minute).download()), "403 AuthenticationFailed");
    assert.equal(await code(at(undefined, -minute).download()), "403 AuthenticationFailed");
    assert.equal(
      await code(serviceWith(accountSas("rl", "sco", { startsOn: inTime(-2 * minute), expiresOn: inTime(-minute) })).getProperties()),
      "403 AuthenticationFailed",
    );
  });

  test("SAS: only from its addresses, only over its protocol", async () => {
    const container = await current().container();
    await container.getBlockBlobClient("a").upload("text", 4);
    const from = (ipRange: { start: string; end?: string }): BlockBlobClient =>
      blobWith(container.getBlobClient("a").url, containerSas(container.containerName, "r", { ipRange }));
    await from({ start: "127.0.0.1" }).download();
    await from({ start: "127.0.0.0", end: "127.0.0.255" }).download();
    assert.equal(await code(from({ start: "10.0.0.1" }).download()), "403 AuthorizationSourceIPMismatch");
    assert.equal(await code(from({ start: "127.0.0.2", end: "127.0.0.9" }).download()), "403 AuthorizationSourceIPMismatch");
    const over = (protocol: SASProtocol): BlockBlobClient =>
      blobWith(container.getBlobClient("a").url, containerSas(container.containerName, "r", { protocol }));
    await over(SASProtocol.HttpsAndHttp).download();
    assert.equal(await code(over(SASProtocol.Https).download()), "403 AuthorizationProtocolMismatch");
  });

  test("SAS: whatever is changed in it, or signed by another key, is refused", async () => {
    const container = await current().container();
    await container.getBlockBlobClient("a").upload("text", 4);
    const url = container.getBlobClient("a").url;
    const good = oneBlobSas(container.containerName, "a", "r", { startsOn: inTime(-minute), ipRange: { start: "127.0.0.1" } });
    await blobWith(url, good).download();
    const stranger = blobSas(
      { containerName: container.containerName, permissions: ContainerSASPermissions.parse("r"), expiresOn: inTime(minute) },
      Buffer.alloc(64, 7).toString("base64"),
    );
    assert.equal(await code(blobWith(url, stranger).download()), "403 AuthenticationFailed");
    const changes: Record<string, string> = {
      sp: "rw",
      se: "2099-01-01T00:00:00Z",
      st: "2000-01-01",
      sip: "127.0.0.0-127.0.0.2",
      sv: "2020-12-06",
      sr: "c",
    };
    for (const [name, value] of Object.entries(changes)) {
      const changed = new URLSearchParams(good);
      changed.set(name, value);
      assert.equal(await code(blobWith(url, changed.toString()).download()), "403 AuthenticationFailed", name);
      changed.delete(name);
      assert.equal(await code(blobWith(url, changed.toString()).download()), "403 AuthenticationFailed", `without ${name}`);
    }
    const half = new URLSearchParams(good);
    half.set("sig", Buffer.alloc(16).toString("base64"));
    assert.equal(await code(blobWith(url, half.toString()).download()), "403 AuthenticationFailed");
  });

  test("SAS: signed as each version of the service signs", async () => {
    const container = await current().container();
    await container.getBlockBlobClient("a").upload("text", 4);
    for (const version of [
      "2015-04-05",
      "2017-11-09",
      "2018-11-09",
      "2019-12-12",
      "2020-02-10",
      "2020-12-06",
      "2024-11-04",
      "2026-02-06",
    ]) {
      const more = { version, ipRange: { start: "127.0.0.1" }, cacheControl: "no-store", contentType: "text/x-sas" };
      for (const sas of [containerSas(container.containerName, "r", more), oneBlobSas(container.containerName, "a", "r", more)]) {
        const answer = await blobWith(container.getBlobClient("a").url, sas).download();
        assert.equal(answer.contentType, "text/x-sas", version);
      }
      const service = serviceWith(accountSas("r", "o", { version, ipRange: { start: "127.0.0.1" } }));
      await service.getContainerClient(container.containerName).getBlobClient("a").download();
    }
  });

  test("SAS: response headers that it sets replace the blob's", async () => {
    const container = await current().container();
    await container
      .getBlockBlobClient("a")
      .upload("text", 4, { blobHTTPHeaders: { blobContentType: "text/plain", blobCacheControl: "max-age=9" } });
    const overrides = {
      cacheControl: "no-cache",
      contentDisposition: 'attachment; filename="x"',
      contentEncoding: "identity",
      contentLanguage: "de",
      contentType: "application/x-other",
    };
    const client = blobWith(container.getBlobClient("a").url, oneBlobSas(container.containerName, "a", "r", overrides));
    for (const answer of [await client.download(), await client.getProperties()]) {
      const { cacheControl, contentDisposition, contentEncoding, contentLanguage, contentType } = answer;
      assert.deepEqual({ cacheControl, contentDisposition, contentEncoding, contentLanguage, contentType }, overrides);
    }
    assert.equal((await container.getBlobClient("a").getProperties()).contentType, "text/plain");
  });

  test("SAS: a response header that no answer can carry is refused, and the refusal says how to write it", async () => {
    const container = await current().container();
    await container.getBlockBlobClient("a").upload("text", 4);
    const url = container.getBlobClient("a").url;
    for (const field of ["cacheControl", "contentDisposition", "contentEncoding", "contentLanguage", "contentType"] as const) {
      const error = await failure(blobWith(url, oneBlobSas(container.containerName, "a", "r", { [field]: "größe" })).download());
      assert.deepEqual([error.statusCode, error.code], [400, "InvalidQueryParameterValue"], field);
    }
    const readable = oneBlobSas(container.containerName, "a", "r", { contentDisposition: "attachment; filename*=UTF-8''gr%C3%B6%C3%9Fe" });
    assert.equal((await blobWith(url, readable).download()).contentDisposition, "attachment; filename*=UTF-8''gr%C3%B6%C3%9Fe");
  });

  test("SAS: the signature of a blob is none of a directory", async () => {
    const container = await current().container();
    const url = container.getBlobClient("a").url;
    const directory = await failure(
      blobWith(url, `${oneBlobSas(container.containerName, "a", "r").replace("sr=b", "sr=d")}&sdd=1`).download(),
    );
    assert.deepEqual([directory.statusCode, directory.code], [403, "AuthenticationFailed"]);
  });

  test("stored access policies: a SAS gets from one what it leaves out, at once, and nothing twice", async () => {
    const container = await current().container();
    await container.getBlockBlobClient("a").upload("text", 4);
    const url = container.getBlobClient("a").url;
    const { containerName } = container;
    const whole = blobSas({ containerName, identifier: "whole" });
    assert.equal(await code(blobWith(url, whole).download()), "403 AuthenticationFailed");
    const policy = { startsOn: inTime(-minute), expiresOn: inTime(10 * minute), permissions: "r" };
    await container.setAccessPolicy(undefined, [
      { id: "whole", accessPolicy: policy },
      { id: "timeless", accessPolicy: { permissions: "rd" } as never },
    ]);
    await blobWith(url, whole).download();
    assert.equal(await code(blobWith(url, whole).delete()), "403 AuthorizationPermissionMismatch");
    const both = blobSas({ containerName, identifier: "whole", permissions: ContainerSASPermissions.parse("r") });
    assert.equal(await code(blobWith(url, both).download()), "403 AuthenticationFailed");
    await blobWith(url, blobSas({ containerName, identifier: "timeless", expiresOn: inTime(minute) })).download();
    assert.equal(await code(blobWith(url, blobSas({ containerName, identifier: "timeless" })).download()), "403 AuthenticationFailed");
    const held = await container.getAccessPolicy();
    assert.deepEqual(
      held.signedIdentifiers.map(({ id, accessPolicy }) => [id, accessPolicy?.permissions, accessPolicy?.expiresOn?.toISOString()]),
      [
        ["whole", "r", policy.expiresOn.toISOString()],
        ["timeless", "rd", undefined],
      ],
    );
    await container.setAccessPolicy(undefined, []);
    assert.equal(await code(blobWith(url, whole).download()), "403 AuthenticationFailed");
  });

  test("stored access policies: blanks and U+FEFF in an id belong to it", async () => {
    const container = await current().container();
    await container.getBlockBlobClient("a").upload("text", 4);
    const { containerName } = container;
    const { accountName: account, accountKey: key } = current().target;
    const ids = ["plain", " before", "after ", "in  side", "\ufeffmark"];
    const expiry = inTime(10 * minute).toISOString();
    const identifiers = ids.map(
      (id) =>
        `<SignedIdentifier><Id>${id}</Id><AccessPolicy><Expiry>${expiry}</Expiry><Permission>r</Permission></AccessPolicy></SignedIdentifier>`,
    );
    const body = `<SignedIdentifiers>${identifiers.join("")}</SignedIdentifiers>`;
    assert.equal((await current().raw("PUT", `/${containerName}?restype=container&comp=acl`, { body })).status, 200);
    const held = await current().raw("GET", `/${containerName}?restype=container&comp=acl`);
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(await held.arrayBuffer());
    assert.deepEqual(
      [...text.matchAll(/<Id>([^<]*)<\/Id>/g)].map(([, id]) => id),
      ids,
    );
    const readWith = async (si: string): Promise<number> => {
      const sas = serviceSas({ service: "blob", account, key }, containerName, "", { sr: "c", se: "", si });
      return (await current().raw("GET", `/${containerName}/a?${sas.replaceAll("+", "%20")}`, { sign: false })).status;
    };
    for (const id of ids) assert.equal(await readWith(id), 200, JSON.stringify(id));
    for (const id of ["before", "after", "in side", "mark", " plain"]) assert.equal(await readWith(id), 403, JSON.stringify(id));
  });

  test("Set Container ACL: public access for readers without authorization, at most five policies, conditions", async () => {
    const container = await current().container();
    await container.getBlockBlobClient("a").upload("text", 4);
    const anonymous = new BlobClient(container.getBlobClient("a").url, undefined, once);
    const anonymousContainer = new ContainerClient(container.url, undefined, once);
    assert.equal(await code(anonymous.download()), "404 ResourceNotFound");
    await container.setAccessPolicy("blob");
    await anonymous.download();
    assert.equal((await container.getAccessPolicy()).blobPublicAccess, "blob");
    assert.equal(await code(names(anonymousContainer)), "404 ResourceNotFound");
    await container.setAccessPolicy("container");
    assert.deepEqual(await names(anonymousContainer), ["a"]);
    assert.equal(await code(anonymousContainer.getBlockBlobClient("a").upload("x", 1)), "401 NoAuthenticationInformation");
    await container.setAccessPolicy();
    assert.equal(await code(anonymous.download()), "404 ResourceNotFound");
    const policy = (id: string) => ({ id, accessPolicy: { permissions: "r", startsOn: inTime(0), expiresOn: inTime(minute) } });
    assert.equal(await code(container.setAccessPolicy(undefined, ["1", "2", "3", "4", "5", "6"].map(policy))), "400 InvalidXmlDocument");
    const stale = { conditions: { ifModifiedSince: inTime(minute) } };
    assert.equal(await code(container.setAccessPolicy("blob", [], stale)), "412 ConditionNotMet");
    const wrong = await current().raw("PUT", `/${container.containerName}?restype=container&comp=acl`, {
      body: "<SignedIdentifiers><SignedIdentifier><Id>x</Id><AccessPolicy><Permission>z</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>",
    });
    assert.deepEqual([wrong.status, wrong.headers.get("x-ms-error-code")], [400, "InvalidXmlNodeValue"]);
  });
}
