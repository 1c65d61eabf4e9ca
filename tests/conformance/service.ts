/** What belongs to the account: service properties, cross-origin rules, account information, user delegation keys by account key. */
import assert from "node:assert/strict";
import { request } from "node:http";
import { describe, test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import { rawExchange } from "./raw-connection.ts";
import { type Clients, failure } from "./target.ts";

const off = { enabled: false };
const noMetrics = { version: "1.0", enabled: false, retentionPolicy: off };
const rule = {
  allowedOrigins: "https://app.example,https://*.shop.example",
  allowedMethods: "GET,PUT",
  allowedHeaders: "x-ms-meta-data*,content-type",
  exposedHeaders: "x-ms-meta-*",
  maxAgeInSeconds: 60,
};
const everybody = { allowedOrigins: "*", allowedMethods: "GET", allowedHeaders: "", exposedHeaders: "", maxAgeInSeconds: 5 };

/** Tests of one account's properties can't run beside others that set them. */
export function serviceSuite(clients: () => Clients): void {
  const preflight = async (headers: Record<string, string>): Promise<Response> => {
    const { endpoint, accountName } = clients().target;
    return fetch(`${endpoint}/${accountName}/c/b`, { method: "OPTIONS", headers });
  };
  const seen = (answer: Response, names: readonly string[]): (string | null)[] => names.map((name) => answer.headers.get(name));
  const [origin, method, headers] = ["Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers"] as const;

  describe("service properties", { concurrency: 1 }, () => {
    test("they are off at first, set in part, and stay as they were where a request says nothing", async () => {
      const { service } = clients();
      const first = await service.getProperties();
      assert.equal(first.blobAnalyticsLogging?.read, false);
      assert.equal(first.hourMetrics?.enabled, false);
      assert.equal(first.staticWebsite?.enabled, false);
      await service.setProperties({ cors: [rule] });
      await service.setProperties({ defaultServiceVersion: "2021-12-02" });
      const held = await service.getProperties();
      assert.deepEqual(held.cors, [rule]);
      assert.equal(held.defaultServiceVersion, "2021-12-02");
      const unversioned = await clients().raw("GET", "?comp=list", { headers: { "x-ms-version": "" } });
      assert.equal(unversioned.status, 400);
      const anonymous = await fetch(`${clients().target.endpoint}/${clients().target.accountName}?comp=list`);
      assert.deepEqual([anonymous.status, anonymous.headers.get("x-ms-version")], [401, "2021-12-02"]);
      await service.setProperties({
        cors: [],
        blobAnalyticsLogging: { version: "1.0", deleteProperty: false, read: false, write: false, retentionPolicy: off },
      });
      const last = await service.getProperties();
      assert.equal(last.cors?.length ?? 0, 0);
      assert.equal(last.defaultServiceVersion, "2021-12-02");
      assert.equal(last.minuteMetrics?.enabled, false);
    });

    test("what they would switch on and is not here is 501, and nothing of the request is set", async () => {
      const { service } = clients();
      await service.setProperties({ cors: [] });
      const logging = { version: "1.0", deleteProperty: true, read: false, write: false, retentionPolicy: off };
      for (const properties of [{ blobAnalyticsLogging: logging }, { hourMetrics: { ...noMetrics, enabled: true, includeAPIs: true } }]) {
        const error = await failure(service.setProperties({ ...properties, cors: [rule] }));
        assert.deepEqual([error.statusCode, error.code], [501, "NotImplemented"]);
      }
      assert.equal((await service.getProperties()).cors?.length ?? 0, 0);
    });

    test("properties that are wrong are refused with the node's name", async () => {
      const set = async (xml: string): Promise<string> => {
        const answer = await clients().raw("PUT", "?restype=service&comp=properties", { body: xml });
        return `${answer.status} ${answer.headers.get("x-ms-error-code")}`;
      };
      const inside = (xml: string): string => `<StorageServiceProperties>${xml}</StorageServiceProperties>`;
      assert.equal(await set("not xml"), "400 InvalidXmlDocument");
      assert.equal(await set("<Other/>"), "400 InvalidXmlDocument");
      assert.equal(await set(inside("<Nonsense/>")), "400 UnsupportedXmlNode");
      assert.equal(await set(inside("<DefaultServiceVersion>yesterday</DefaultServiceVersion>")), "400 InvalidXmlNodeValue");
      assert.equal(
        await set(inside("<DeleteRetentionPolicy><Enabled>true</Enabled><Days>366</Days></DeleteRetentionPolicy>")),
        "400 InvalidXmlNodeValue",
      );
      assert.equal(
        await set(inside("<DeleteRetentionPolicy><Enabled>true</Enabled></DeleteRetentionPolicy>")),
        "400 MissingRequiredXmlNode",
      );
      assert.equal(await set(inside("<Cors><CorsRule><AllowedOrigins>*</AllowedOrigins></CorsRule></Cors>")), "400 MissingRequiredXmlNode");
      const six = Array.from({ length: 6 }, () => everybody);
      assert.equal((await failure(clients().service.setProperties({ cors: six }))).code, "InvalidXmlNodeValue");
    });

    test("preflight needs no authorization: the first rule that fits answers, without one it is 403", async () => {
      const { service } = clients();
      await service.setProperties({ cors: [] });
      const asks = { [origin]: "https://app.example", [method]: "PUT" };
      assert.equal((await preflight(asks)).status, 403);
      await service.setProperties({ cors: [rule] });
      const allowed = await preflight({ ...asks, [headers]: "x-ms-meta-data-x,Content-Type" });
      assert.deepEqual(
        [allowed.status, ...seen(allowed, ["access-control-allow-origin", "access-control-allow-methods", "access-control-allow-headers"])],
        [200, "https://app.example", "PUT", "x-ms-meta-data-x,Content-Type"],
      );
      assert.deepEqual(seen(allowed, ["access-control-max-age", "access-control-allow-credentials"]), ["60", "true"]);
      const status = async (asked: Record<string, string>): Promise<string> => {
        const answer = await preflight({ ...asks, ...asked });
        return `${answer.status} ${answer.headers.get("x-ms-error-code") ?? ""}`.trim();
      };
      assert.equal(await status({ [origin]: "https://a.shop.example" }), "200");
      assert.equal(await status({ [origin]: "https://APP.example" }), "403 CorsPreflightFailure");
      assert.equal(await status({ [origin]: "https://evil.example#.shop.example" }), "403 CorsPreflightFailure");
      assert.equal(await status({ [method]: "DELETE" }), "403 CorsPreflightFailure");
      assert.equal(await status({ [headers]: "x-other" }), "403 CorsPreflightFailure");
      const { endpoint, accountName } = clients().target;
      const lacking = await fetch(`${endpoint}/${accountName}/c/b`, { method: "OPTIONS", headers: { [origin]: "https://app.example" } });
      assert.equal(lacking.status, 400);
    });

    test("actual requests carry what the rule says, also when they fail; Vary keeps caches apart", async () => {
      const { service } = clients();
      const container = await clients().container();
      await container.getBlockBlobClient("b").upload("x", 1, { metadata: { data: "1" } });
      const path = `/${container.containerName}/b`;
      await service.setProperties({ cors: [rule] });
      const names = ["access-control-allow-origin", "access-control-expose-headers", "access-control-allow-credentials", "vary"];
      const get = async (path: string, given: Record<string, string>) => seen(await clients().raw("GET", path, { headers: given }), names);
      const mine: (string | null)[] = ["https://app.example", "x-ms-meta-data", "true", "Origin"];
      assert.deepEqual(await get(path, { origin: "https://app.example" }), mine);
      assert.deepEqual(await get(`${path}-none`, { origin: "https://app.example" }), mine.with(1, null));
      assert.deepEqual(await get(path, { origin: "https://other.example" }), [null, null, null, "Origin"]);
      assert.deepEqual(await get(path, {}), [null, null, null, "Origin"]);
      const put = await clients().raw("PUT", path, {
        body: "y",
        headers: { origin: "https://app.example", "x-ms-blob-type": "BlockBlob" },
      });
      assert.deepEqual([put.status, ...seen(put, names)], [201, "https://app.example", null, "true", null]);
      await service.setProperties({ cors: [everybody] });
      assert.deepEqual(await get(path, { origin: "https://any.example" }), ["*", null, null, null]);
      await service.setProperties({ cors: [] });
      assert.deepEqual(await get(path, { origin: "https://any.example" }), [null, null, null, null]);
    });
  });

  /** Of the account's website, as a browser asks. */
  const browse = (
    path: string,
    options: { method?: string; headers?: Record<string, string> } = {},
  ): Promise<{ status: number; type: string; text: string }> => {
    const { endpoint, accountName } = clients().target;
    const { hostname, port } = new URL(endpoint);
    const headers = { ...options.headers, host: `${accountName}.web.localhost:${port}` };
    return new Promise((resolve, reject) => {
      request({ host: hostname, port, path, method: options.method ?? "GET", headers }, (answer) => {
        let text = "";
        answer.on("data", (chunk: Buffer) => (text += chunk.toString()));
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, type: answer.headers["content-type"] ?? "", text }));
      })
        .on("error", reject)
        .end();
    });
  };

  test("a static website is served to everybody under its own host while it is on: documents of folders, the error document", async () => {
    const { service } = clients();
    await service.setProperties({ staticWebsite: { enabled: false } });
    assert.equal((await browse("/")).status, 404);
    await service.setProperties({ staticWebsite: { enabled: true, indexDocument: "index.html", errorDocument404Path: "errors/404.html" } });
    const held = (await service.getProperties()).staticWebsite;
    assert.deepEqual([held?.enabled, held?.indexDocument, held?.errorDocument404Path], [true, "index.html", "errors/404.html"]);
    const web = service.getContainerClient("$web");
    const put = (name: string, text: string, blobContentType: string) =>
      web.getBlockBlobClient(name).upload(text, Buffer.byteLength(text), { blobHTTPHeaders: { blobContentType } });
    for (const name of ["errors/404.html", "a b", "a b/index.html", "ü.css"]) await web.getBlobClient(name).deleteIfExists();
    await put("index.html", "home", "text/html");
    assert.deepEqual(await browse("/"), { status: 200, type: "text/html", text: "home" });
    assert.deepEqual(await browse("/?any=thing"), { status: 200, type: "text/html", text: "home" });
    const plain = await browse("/none");
    assert.deepEqual([plain.status, plain.type], [404, "text/html; charset=utf-8"]);
    await put("errors/404.html", "lost", "text/html");
    await put("a b/index.html", "folder", "text/html");
    await put("ü.css", "style", "text/css");
    assert.deepEqual(await browse("/none"), { status: 404, type: "text/html", text: "lost" });
    assert.deepEqual(await browse("/a%20b/"), { status: 200, type: "text/html", text: "folder" });
    assert.deepEqual(await browse("/a%20b"), { status: 200, type: "text/html", text: "folder" });
    assert.equal((await browse("/a%20b", { method: "HEAD" })).status, 200);
    await put("a b", "not a folder", "text/plain");
    assert.equal((await browse("/a%20b")).text, "not a folder");
    // Names that no blob can have, or only without the index document behind them.
    for (const path of ["a".repeat(1024), "a".repeat(1025), `${"a".repeat(1020)}/`, `${"a/".repeat(253)}a`, "a/".repeat(254)]) {
      assert.deepEqual(await browse(`/${path}`), { status: 404, type: "text/html", text: "lost" }, path);
    }
    assert.deepEqual(await browse("/%C3%BC.css"), { status: 200, type: "text/css", text: "style" });
    assert.deepEqual(await browse("/index.html", { method: "HEAD" }), { status: 200, type: "text/html", text: "" });
    const { etag = "" } = await web.getBlobClient("index.html").getProperties();
    assert.equal((await browse("/index.html", { headers: { "if-none-match": etag } })).status, 304);
    assert.equal((await browse("/index.html", { headers: { range: "bytes=1-2" } })).text, "om");
    const ifRange = { range: "bytes=1-2", "if-range": '"0x8D0000000000000"' };
    assert.equal((await browse("/index.html", { headers: ifRange })).text, "home");
    assert.equal((await browse("/index.html", { headers: { range: "bytes=-2", "if-modified-since": "yesterday" } })).text, "home");
    assert.equal((await browse("/%zz")).status, 400);
    assert.equal((await browse("/a%20b%5C.%5Cindex.html.")).text, "folder");
    assert.equal((await browse("/none/..")).text, "home");
    const secret = await clients().container();
    await secret.getBlockBlobClient("s").upload("secret", 6);
    for (const up of ["..", "%2e%2e", "a/..%5C..", "..%2F.."]) {
      assert.deepEqual(await browse(`/${up}/${secret.containerName}/s`), { status: 404, type: "text/html", text: "lost" }, up);
    }
    assert.equal((await browse("/index.html", { method: "PUT" })).status, 405);
    const elsewhere = await fetch(`${clients().target.endpoint}/${clients().target.accountName}/%24web/index.html`);
    assert.equal(elsewhere.status, 404, "the container itself is private");
    await service.setProperties({ staticWebsite: { enabled: false } });
    assert.equal((await browse("/")).status, 404);
  });

  test("a user delegation key is not given to the holder of the account's key", async () => {
    const error = await failure(clients().service.getUserDelegationKey(new Date(), new Date(Date.now() + 60_000)));
    assert.deepEqual([error.statusCode, error.code], [403, "AuthenticationFailed"]);
  });

  test("a secondary location and its statistics are refused, and the primary is not served in its place", async () => {
    const { endpoint, accountName } = clients().target;
    const stats = await failure(clients().service.getStatistics());
    assert.deepEqual([stats.statusCode, stats.code], [400, "InvalidQueryParameterValue"]);
    const secondary = new BlobServiceClient(`${endpoint}/${accountName}-secondary`, undefined, { retryOptions: { maxTries: 1 } });
    const error = await failure(secondary.getProperties());
    assert.deepEqual([error.statusCode, error.code], [403, "InsufficientAccountPermissions"]);
    assert.match(error.message, /no secondary location/);
    const host = `${accountName}-secondary.blob.localhost`;
    assert.match(await rawExchange(clients(), { method: "GET", path: "/?comp=list", host }), /^HTTP\/1\.1 403 .*no secondary location/s);
  });
}
