/** Copies from a server elsewhere that is no Blob service: what is not sent to it, and which of its bytes are not taken. */
import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { NodeHttpClient } from "@stamp/ports-node";
import { accountKey, accountName, startScriptedStamp } from "./scripted-stamp.ts";
import { blockId, Clients, failure } from "./target.ts";

describe("copies over plain HTTP", () => {
  const closers: (() => unknown)[] = [];
  let clients: Clients;
  after(async () => {
    for (const close of closers) await close();
  });
  before(async () => {
    const stamp = await startScriptedStamp({ frontEnd: { copySources: ["http://127.0.0.1:*"] }, http: new NodeHttpClient() });
    closers.push(() => stamp.stop());
    clients = new Clients({ endpoint: stamp.endpoint, accountName, accountKey, stop: () => stamp.stop() });
  });
  const serve = async (listener: RequestListener): Promise<string> => {
    const server = createServer(listener);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closers.unshift(() => {
      server.close();
      server.closeAllConnections();
    });
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  };

  test("x-ms-copy-source-authorization is not sent over plain HTTP, whichever operation copies", async () => {
    const here = await clients.container();
    let asked = 0;
    const host = await serve((_message, response) => {
      asked++;
      response.setHeader("ETag", '"1"').setHeader("Content-Length", "2").end();
    });
    const url = `http://${host}/file`;
    const sourceAuthorization = { scheme: "Bearer", value: "secret" } as never;
    const blob = here.getBlockBlobClient("b");
    const pages = here.getPageBlobClient("p");
    await pages.create(512);
    const append = here.getAppendBlobClient("a");
    await append.create();
    for (const copy of [
      () => blob.syncUploadFromURL(url, { sourceAuthorization }),
      () => blob.stageBlockFromURL(blockId(0), url, 0, 2, { sourceAuthorization }),
      () => blob.syncCopyFromURL(url, { sourceAuthorization }),
      () => pages.uploadPagesFromURL(url, 0, 0, 512, { sourceAuthorization }),
      () => append.appendBlockFromURL(url, 0, 2, { sourceAuthorization }),
    ]) {
      const { statusCode, code } = await failure(copy());
      assert.deepEqual([statusCode, code], [400, "InvalidHeaderValue"]);
    }
    assert.equal(asked, 0);
  });

  test("bytes that a source has encoded on the way are not stored as if they were plain", async () => {
    const here = await clients.container();
    const body = gzipSync("plain text");
    const host = await serve(({ method, url }, response) => {
      response.setHeader("ETag", '"1"').setHeader("Content-Length", body.length).setHeader("Content-Encoding", "gzip");
      if (url === "/blob") response.setHeader("x-ms-blob-type", "BlockBlob");
      // Tells of the encoding only where there is a body.
      if (url === "/get" && method === "HEAD") response.removeHeader("Content-Encoding");
      response.end(method === "HEAD" ? undefined : body);
    });
    const [file, property] = [`http://${host}/file`, `http://${host}/blob`];
    const blob = here.getBlockBlobClient("b");
    const append = here.getAppendBlobClient("a");
    await append.create();
    for (const copy of [
      () => blob.stageBlockFromURL(blockId(0), file),
      () => append.appendBlockFromURL(file, 0, body.length),
      () => blob.syncUploadFromURL(file, { copySourceBlobProperties: false }),
      () => blob.syncUploadFromURL(file, { blobHTTPHeaders: { blobContentEncoding: "br" } }),
      () => blob.syncCopyFromURL(`http://${host}/get`),
    ]) {
      const { statusCode, code } = await failure(copy());
      assert.deepEqual([statusCode, code], [400, "CannotVerifyCopySource"]);
    }
    const kept = async (): Promise<(string | undefined)[]> => {
      const { contentEncoding, contentLength } = await blob.getProperties();
      return [contentEncoding, String(contentLength)];
    };
    await blob.syncUploadFromURL(file);
    assert.deepEqual(await kept(), ["gzip", String(body.length)]);
    await blob.syncCopyFromURL(file);
    assert.deepEqual(await kept(), ["gzip", String(body.length)]);
    // The encoding of a blob is a property: its bytes are stored that way, and a block of them is as at the service.
    await blob.stageBlockFromURL(blockId(0), property);
  });
});
