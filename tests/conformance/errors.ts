/** What a client may do wrong, over raw HTTP: signatures, headers, paths, lengths, features that are not there. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { rawExchange } from "./raw-connection.ts";
import { type Clients, failure } from "./target.ts";

export function errorSuite(clients: () => Clients): void {
  describe("errors", () => {
    test("a wrong key is 403 AuthenticationFailed, and the answer says what was signed", async () => {
      const wrong = clients().serviceWith(Buffer.alloc(64).toString("base64"));
      const error = await failure(wrong.getContainerClient("any").create());
      assert.equal(error.statusCode, 403);
      assert.equal(error.code, "AuthenticationFailed");
      const { accountName } = clients().target;
      const answer = await clients().raw("GET", "?comp=list", {
        sign: false,
        headers: { authorization: `SharedKey ${accountName}:AAAA`, "x-ms-date": new Date().toUTCString(), "x-ms-version": "2025-01-05" },
      });
      assert.equal(answer.status, 403);
      assert.equal(answer.headers.get("x-ms-error-code"), "AuthenticationFailed");
      assert.match(await answer.text(), /<AuthenticationErrorDetail>.*Server used following string to sign.*\/comp:list|comp:list/s);
    });

    test("a date that is too old, a missing date, a malformed header, no header at all", async () => {
      const { accountName } = clients().target;
      const status = async (headers: Record<string, string>) => (await clients().raw("GET", "?comp=list", { sign: false, headers })).status;
      const old = new Date(Date.now() - 16 * 60_000).toUTCString();
      assert.equal(await status({ authorization: `SharedKey ${accountName}:AAAA`, "x-ms-date": old }), 403);
      assert.equal(await status({ authorization: `SharedKey ${accountName}:AAAA` }), 403);
      assert.equal(await status({ authorization: "SharedKey nonsense" }), 400);
      assert.equal(await status({ authorization: `SharedKey ${accountName}:not base64` }), 400);
      assert.equal(await status({}), 401);
    });

    test("malformed headers are 400", async () => {
      const container = await clients().container();
      const path = `/${container.containerName}/b`;
      const put = async (headers: Record<string, string>) => {
        const answer = await clients().raw("PUT", path, { body: "x", headers: { "x-ms-blob-type": "BlockBlob", ...headers } });
        return [answer.status, answer.headers.get("x-ms-error-code")];
      };
      assert.deepEqual(await put({ "x-ms-version": "yesterday" }), [400, "InvalidHeaderValue"]);
      assert.deepEqual(await put({ "if-match": '"a", "b"' }), [400, "InvalidHeaderValue"]);
      const twice = "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT";
      assert.deepEqual(await put({ "if-unmodified-since": twice }), [400, "InvalidHeaderValue"]);
      assert.deepEqual(await put({ "content-md5": "AAAA" }), [400, "InvalidMd5"]);
      assert.deepEqual(await put({ "x-ms-meta-1digit": "x" }), [400, "InvalidMetadata"]);
      assert.deepEqual(await put({ "x-ms-meta-a": "x".repeat(9000) }), [400, "MetadataTooLarge"]);
      assert.deepEqual(await put({ "x-ms-blob-type": "Nonsense" }), [400, "InvalidHeaderValue"]);
      assert.deepEqual(await put({ "x-ms-lease-id": "nonsense" }), [400, "InvalidHeaderValue"]);
      assert.deepEqual(await put({ "content-md5": Buffer.alloc(16).toString("base64") }), [400, "Md5Mismatch"]);
      const untyped = await clients().raw("PUT", path, { body: "x" });
      assert.deepEqual([untyped.status, untyped.headers.get("x-ms-error-code")], [400, "MissingRequiredHeader"]);
    });

    test("paths and queries that mean nothing", async () => {
      const { endpoint } = clients().target;
      const unknownAccount = await fetch(`${endpoint}/nobodyhere/c/b`);
      assert.equal(unknownAccount.status, 400);
      assert.match(await unknownAccount.text(), /suffix.*path|path.*suffix/s);
      const secondary = await fetch(`${endpoint}/${clients().target.accountName}-secondary/c/b`);
      assert.equal(secondary.status, 403);
      assert.match(await secondary.text(), /secondary/);
      const check = async (method: string, path: string) => {
        const answer = await clients().raw(method, path);
        return [answer.status, answer.headers.get("x-ms-error-code")];
      };
      assert.deepEqual(await check("GET", "/no-such-container/no-such-blob"), [404, "ContainerNotFound"]);
      assert.deepEqual(await check("GET", "/ccc?restype=container&comp=nonsense"), [400, "InvalidQueryParameterValue"]);
      assert.deepEqual(await check("DELETE", "/ccc/b?comp=metadata"), [405, "UnsupportedHttpVerb"]);
      assert.deepEqual(await check("GET", "/ccc/%FF"), [400, "InvalidUri"]);
      assert.deepEqual(await check("GET", "?comp=list&prefix=%FF"), [400, "InvalidQueryParameterValue"]);
    });

    test("what the service has and we do not is 501 with its name", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      await client.upload("x", 1);
      const keyed = await clients().raw("PUT", `/${container.containerName}/b`, {
        body: "y",
        headers: { "x-ms-blob-type": "BlockBlob", "x-ms-structured-body": "s" },
      });
      assert.equal(keyed.status, 501);
      assert.equal((await client.downloadToBuffer()).toString(), "x");
    });

    test("the status line of a refusal says why, also where no body can", async () => {
      const container = await clients().container();
      const { etag = "" } = await container.getBlockBlobClient("b").upload("x", 1);
      const path = `/${container.containerName}`;
      for (const [method, at, status, reason, headers] of [
        ["HEAD", `${path}/none`, 404, "The specified blob does not exist.", {}],
        ["GET", `${path}/none`, 404, "The specified blob does not exist.", {}],
        ["GET", `${path}/b`, 304, "The condition specified using HTTP conditional header(s) is not met.", { "if-none-match": etag }],
        ["GET", `${path}/b`, 416, "The range specified is invalid for the current size of the resource.", { range: "bytes=5-" }],
        ["HEAD", `${path}/b`, 200, "OK", {}],
      ] as const) {
        const answer = await clients().raw(method, at, { headers });
        assert.deepEqual([answer.status, answer.statusText], [status, reason], `${method} ${at}`);
        await answer.arrayBuffer();
      }
      const put = await clients().raw("PUT", `${path}/c`, { headers: { "x-ms-blob-type": "BlockBlob" }, body: "x" });
      assert.equal(put.statusText, "Created");
      // Without an account there is no service yet, but the door's own.
      const unsigned = await clients().raw("HEAD", `${path}/b`, { sign: false });
      assert.deepEqual([unsigned.status, unsigned.statusText], [404, "The specified resource does not exist."]);
    });

    test("every answer carries its request's id, and the client's", async () => {
      const ok = await clients().raw("GET", "?comp=list", { headers: { "x-ms-client-request-id": "mine" } });
      const bad = await clients().raw("GET", "/nope/nope", { headers: { "x-ms-client-request-id": "mine" } });
      for (const answer of [ok, bad]) {
        assert.match(answer.headers.get("x-ms-request-id") ?? "", /^[0-9a-f-]{36}$/);
        assert.equal(answer.headers.get("x-ms-client-request-id"), "mine");
        assert.ok(answer.headers.get("date"));
        assert.match(answer.headers.get("x-ms-version") ?? "", /^\d{4}-\d\d-\d\d$/);
      }
      assert.match(await bad.text(), /<Code>ContainerNotFound<\/Code><Message>.*RequestId:.*Time:/s);
    });

    test("a body that is shorter than announced leaves nothing behind", async () => {
      const container = await clients().container();
      const path = `/${container.containerName}/short`;
      await sendRaw(clients(), "PUT", path, 100, "only this");
      assert.equal((await failure(container.getBlockBlobClient("short").getProperties())).statusCode, 404);
    });

    test("bytes behind the announced length are no part of the blob", async () => {
      const container = await clients().container();
      const path = `/${container.containerName}/long`;
      const answer = await sendRaw(clients(), "PUT", path, 4, "goodEVIL EVIL EVIL\r\n\r\n");
      // What follows is a request of its own, and none: the connection ends, with or without the answer to the first.
      assert.match(answer, /^HTTP\/1\.1 (201|400) /);
      assert.doesNotMatch(answer.slice(20), /HTTP\/1\.1 2/);
      const client = container.getBlockBlobClient("long");
      if (await client.exists()) assert.equal((await client.downloadToBuffer()).toString(), "good");
    });

    test("a put whose length is not announced is 411", async () => {
      const container = await clients().container();
      const stream = new Blob(["x"]).stream();
      const headers = { "x-ms-blob-type": "BlockBlob" };
      const answer = await clients().raw("PUT", `/${container.containerName}/b`, { headers, stream });
      assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [411, "MissingContentLengthHeader"]);
    });

    test("a put that is announced too large is 413 before its bytes are read", async () => {
      const container = await clients().container();
      const answer = await sendRaw(clients(), "PUT", `/${container.containerName}/big`, 6000 * 1024 * 1024, "");
      assert.match(answer, /^HTTP\/1\.1 413 /);
      assert.match(answer, /RequestBodyTooLarge/);
    });
  });
}

/** A signed PUT whose body is what it is, whatever was announced; the connection is ended by us. */
const sendRaw = (clients: Clients, method: string, path: string, contentLength: number, body: string): Promise<string> =>
  rawExchange(clients, { method, path, headers: { "content-length": String(contentLength), "x-ms-blob-type": "BlockBlob" }, body });
