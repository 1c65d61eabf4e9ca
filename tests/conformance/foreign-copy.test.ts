/**
 * Copies whose source is outside of the stamp: another stamp, of which this one knows nothing, or any HTTP server that the operator allows.
 * And what must not be reached that way, whatever a request says.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { pipeline } from "node:stream";
import { after, before, describe, test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import {
  type BlobClient,
  BlobSASPermissions,
  type ContainerClient,
  generateBlobSASQueryParameters,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { NodeHttpClient } from "@stamp/ports-node";
import { type TestCertificate, testCertificate } from "./certificate.ts";
import { testIssuer } from "./issuer.ts";
import { accountKey, accountName, type ScriptedStamp, startScriptedStamp } from "./scripted-stamp.ts";
import { blockId, bytes, Clients, failure } from "./target.ts";

const mebibyte = 1024 * 1024;

interface Both {
  /** From where is copied, and to where. */
  readonly there: Clients;
  readonly here: Clients;
  readonly stamps: readonly [there: ScriptedStamp, here: ScriptedStamp];
}

/** Every name of the test's stands for this machine. */
const lookup = async (hostname: string) => {
  if (hostname === "nowhere.test") throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
  return [{ address: "127.0.0.1", family: 4 as const }];
};

describe("copies from elsewhere", () => {
  const closers: (() => unknown)[] = [];
  let both: Both;
  let certificate: TestCertificate;
  after(async () => {
    for (const close of closers) await close();
  });
  before(async () => {
    const issuer = await testIssuer();
    certificate = await testCertificate();
    closers.push(
      () => issuer.remove(),
      () => certificate.remove(),
    );
    const there = await startScriptedStamp({ frontEnd: issuer.settings });
    const here = await startScriptedStamp({
      frontEnd: {
        copySources: ["http://127.0.0.1:*", "https://localhost:*=127.0.0.0/8", "http://*.inside.test:*=127.0.0.0/8", "http://*:*"],
        requestTimeoutMs: 3_000,
      },
      http: new NodeHttpClient({ lookup, ca: certificate.ca }),
    });
    closers.push(
      () => there.stop(),
      () => here.stop(),
    );
    const clientsOf = (stamp: ScriptedStamp) =>
      new Clients({ endpoint: stamp.endpoint, accountName, accountKey, issuer, stop: () => stamp.stop() });
    both = { there: clientsOf(there), here: clientsOf(here), stamps: [there, here] };
  });

  const signed = (client: BlobClient, permissions = "r"): string => {
    const { containerName, name: blobName } = client;
    const until = { expiresOn: new Date(Date.now() + 3_600_000), permissions: BlobSASPermissions.parse(permissions) };
    const sas = generateBlobSASQueryParameters(
      { containerName, blobName, ...until },
      new StorageSharedKeyCredential(accountName, accountKey),
    );
    return `${client.url}${client.url.includes("?") ? "&" : "?"}${sas}`;
  };
  const apart = async (): Promise<{ there: ContainerClient; here: ContainerClient }> => ({
    there: await both.there.container(),
    here: await both.here.container(),
  });
  const ended = async (client: BlobClient): Promise<string> => {
    for (let i = 0; ; i++) {
      const { copyStatus } = await client.getProperties();
      if (copyStatus !== "pending") return copyStatus ?? "";
      assert.ok(i < 600, "it ends");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const serve = async (listener: RequestListener): Promise<string> => {
    const server = createServer(listener);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closers.unshift(() => {
      server.close();
      server.closeAllConnections();
    });
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  };

  /** Returns the URL of what a TLS endpoint passes on to the URL's host. */
  const overTls = async (url: string): Promise<string> => {
    const { certificatePath, keyPath } = certificate.tls;
    const { hostname, port, pathname, search } = new URL(url);
    const server = createTlsServer({ cert: readFileSync(certificatePath), key: readFileSync(keyPath) }, (socket) => {
      const onward = connect(Number(port), hostname);
      pipeline(socket, onward, socket, () => {});
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closers.unshift(() => server.close());
    return `https://localhost:${(server.address() as AddressInfo).port}${pathname}${search}`;
  };

  test("Copy Blob brings bytes, headers, metadata and tags; the SAS of the source is told to nobody", async () => {
    const { there, here } = await apart();
    const content = bytes(20 * mebibyte + 3);
    const source = there.getBlockBlobClient("dir/source é");
    await source.uploadData(content, { metadata: { of: "there" }, blobHTTPHeaders: { blobContentType: "text/x", blobCacheControl: "no" } });
    await source.setTags({ of: "there" });
    const target = here.getBlockBlobClient("target");
    await target.beginCopyFromURL(signed(source, "rt"), { tags: {} });
    assert.equal(await ended(target), "success");
    const properties = await target.getProperties();
    assert.deepEqual([properties.contentType, properties.cacheControl, properties.metadata], ["text/x", "no", { of: "there" }]);
    assert.equal(properties.copySource, source.url);
    assert.equal(properties.copyProgress, `${content.length}/${content.length}`);
    assert.ok(content.equals(await target.downloadToBuffer()));
    const withTags = here.getBlockBlobClient("with-tags");
    await source.upload("small", 5, { tags: { of: "there" } });
    await withTags.syncCopyFromURL(signed(source, "rt"), { copySourceTags: "COPY" });
    assert.deepEqual((await withTags.getTags()).tags, { of: "there" });
    const noRight = await failure(withTags.syncCopyFromURL(signed(source), { copySourceTags: "COPY" }));
    assert.deepEqual([noRight.statusCode, noRight.code], [403, "CannotVerifyCopySource"]);
  });

  test("append and page blobs stay what they are; of a page blob only what holds something is moved", async () => {
    const { there, here } = await apart();
    const log = there.getAppendBlobClient("log");
    await log.create();
    for (const part of ["one ", "two ", "three"]) await log.appendBlock(part, part.length);
    await log.seal();
    const logCopy = here.getAppendBlobClient("log");
    await logCopy.beginCopyFromURL(signed(log));
    assert.equal(await ended(logCopy), "success");
    const shown = await logCopy.getProperties();
    assert.deepEqual([shown.blobType, shown.blobCommittedBlockCount, shown.isSealed], ["AppendBlob", 3, true]);
    assert.equal((await logCopy.downloadToBuffer()).toString(), "one two three");

    const disk = there.getPageBlobClient("disk");
    await disk.create(1024 ** 4, { blobSequenceNumber: 7 });
    const written = [0, 1024, 255 * 1024, 700 * 1024, 5 * mebibyte, 512 * mebibyte, 1024 ** 4 - 4096];
    for (const at of written) await disk.uploadPages(bytes(4096, (at % 97) + 1), at, 4096);
    const diskCopy = here.getPageBlobClient("disk");
    const before = both.stamps[0].data.reads;
    await diskCopy.beginCopyFromURL(signed(disk));
    assert.equal(await ended(diskCopy), "success");
    assert.ok(both.stamps[0].data.reads - before < 100);
    const properties = await diskCopy.getProperties();
    assert.deepEqual([properties.blobType, properties.contentLength, properties.blobSequenceNumber], ["PageBlob", 1024 ** 4, 7]);
    assert.deepEqual((await diskCopy.getPageRanges()).pageRange, (await disk.getPageRanges()).pageRange);
    for (const at of written) assert.ok((await disk.downloadToBuffer(at, 4096)).equals(await diskCopy.downloadToBuffer(at, 4096)));
  });

  test("a page blob with more ranges than one answer lists comes over whole", async () => {
    const { there, here } = await apart();
    const disk = there.getPageBlobClient("comb");
    const size = 2 * mebibyte;
    await disk.create(size);
    await disk.uploadPages(bytes(size, 9), 0, size);
    for (let at = 0; at < size; at += 2048) await disk.clearPages(at, 512);
    const copy = here.getPageBlobClient("comb");
    await copy.beginCopyFromURL(signed(disk));
    assert.equal(await ended(copy), "success");
    assert.ok((await disk.downloadToBuffer()).equals(await copy.downloadToBuffer()));
    assert.equal((await copy.getPageRanges()).pageRange?.length, size / 2048);
  });

  test("Copy Blob From URL and the From-URL family, with ranges and checksums", async () => {
    const { there, here } = await apart();
    const content = bytes(300_000);
    const md5 = (part: Buffer): Uint8Array => createHash("md5").update(part).digest();
    const source = there.getBlockBlobClient("source");
    await source.upload(content, content.length, { blobHTTPHeaders: { blobContentType: "text/x" }, metadata: { a: "1" } });
    const url = signed(source);
    const target = here.getBlockBlobClient("target");
    const done = await target.syncCopyFromURL(url, { sourceContentMD5: md5(content) });
    assert.equal(done.copyStatus, "success");
    assert.ok(content.equals(await target.downloadToBuffer()));
    assert.equal((await failure(target.syncCopyFromURL(url, { sourceContentMD5: Buffer.alloc(16) }))).code, "Md5Mismatch");

    await target.syncUploadFromURL(url);
    const { contentType, metadata, contentLength } = await target.getProperties();
    assert.deepEqual([contentType, metadata, contentLength], ["text/x", {}, content.length]);

    await target.stageBlockFromURL(blockId(0), url, 100_000, 50_000, { sourceContentMD5: md5(content.subarray(100_000, 150_000)) });
    await target.stageBlockFromURL(blockId(1), url);
    const wrong = await failure(target.stageBlockFromURL(blockId(2), url, 0, 10, { sourceContentCrc64: Buffer.alloc(8) }));
    assert.equal(wrong.code, "Crc64Mismatch");
    const beyond = await failure(target.stageBlockFromURL(blockId(2), url, 300_000, 10));
    assert.deepEqual([beyond.statusCode, beyond.code], [416, "InvalidRange"]);
    await target.commitBlockList([blockId(0), blockId(1)]);
    assert.ok(Buffer.concat([content.subarray(100_000, 150_000), content]).equals(await target.downloadToBuffer()));

    const log = here.getAppendBlobClient("log");
    await log.create();
    await log.appendBlockFromURL(url, 10, 20);
    assert.ok(content.subarray(10, 30).equals(await log.downloadToBuffer()));
    const disk = here.getPageBlobClient("disk");
    await disk.create(mebibyte);
    await disk.uploadPagesFromURL(url, 1024, 4096, 2048);
    assert.ok(content.subarray(1024, 3072).equals(await disk.downloadToBuffer(4096, 2048)));
    const short = await failure(disk.uploadPagesFromURL(url, 299_520, 0, 1024));
    assert.deepEqual([short.statusCode, short.code], [416, "InvalidRange"]);
  });

  test("conditions and rights are those of the source; what it says comes along with the error", async () => {
    const { there, here } = await apart();
    const source = there.getBlockBlobClient("source");
    const { etag = "" } = await source.upload("secret", 6);
    const target = here.getBlockBlobClient("target");
    const stale = { ifMatch: '"0x8D0000000000000"' };
    const changed = await failure(target.beginCopyFromURL(signed(source), { sourceConditions: stale }));
    assert.deepEqual([changed.statusCode, changed.code], [412, "SourceConditionNotMet"]);
    const known = await failure(target.syncUploadFromURL(signed(source), { sourceConditions: { ifNoneMatch: etag } }));
    assert.deepEqual([known.statusCode, known.response?.headers.get("x-ms-error-code")], [304, "CannotVerifyCopySource"]);
    const closed = await failure(target.beginCopyFromURL(source.url));
    assert.deepEqual([closed.statusCode, closed.code], [404, "CannotVerifyCopySource"]);
    assert.equal(closed.response?.headers.get("x-ms-copy-source-status-code"), "404");
    const missing = await failure(target.syncCopyFromURL(signed(there.getBlobClient("none"))));
    assert.deepEqual([missing.statusCode, missing.code], [404, "CannotVerifyCopySource"]);
    assert.equal(missing.response?.headers.get("x-ms-copy-source-error-code"), "BlobNotFound");
    const write = await failure(target.syncCopyFromURL(signed(source, "w")));
    assert.deepEqual([write.statusCode, write.code], [403, "CannotVerifyCopySource"]);
    assert.equal(await target.exists(), false);
    const open = await both.there.container({ access: "blob" });
    await open.getBlockBlobClient("open").upload("public", 6);
    await target.syncCopyFromURL(open.getBlobClient("open").url);
    assert.equal((await target.downloadToBuffer()).toString(), "public");
  });

  test("x-ms-copy-source-authorization goes to the source and nowhere else", async () => {
    const { there, here } = await apart();
    const source = there.getBlockBlobClient("source");
    await source.upload("secret", 6);
    const token = await (both.there.target.issuer as NonNullable<typeof both.there.target.issuer>).token({
      oid: "somebody",
      roles: ["readers"],
    });
    const sourceAuthorization = { scheme: "Bearer", value: token } as never;
    const target = here.getBlockBlobClient("target");
    const secure = await overTls(source.url);
    await target.syncUploadFromURL(secure, { sourceAuthorization });
    assert.equal((await target.downloadToBuffer()).toString(), "secret");
    const forged = await failure(target.syncUploadFromURL(secure, { sourceAuthorization: { scheme: "Bearer", value: "x.y.z" } as never }));
    assert.deepEqual([forged.statusCode, forged.code], [401, "CannotVerifyCopySource"]);
  });

  test("of a request to a source nothing is sent but what is documented", async () => {
    const here = await both.here.container();
    const seen: IncomingMessage[] = [];
    const host = await serve((message, response) => {
      seen.push(message);
      response.setHeader("ETag", '"1"').setHeader("Content-Length", "2");
      response.end(message.method === "HEAD" ? undefined : "ok");
    });
    await here.getBlockBlobClient("b").syncUploadFromURL(`http://${host}/any/file?with=query`);
    assert.deepEqual(
      seen.map(({ method, url }) => `${method} ${url}`),
      ["GET /any/file?with=query"],
    );
    assert.deepEqual(Object.keys(seen[0]?.headers ?? {}).sort(), ["accept-encoding", "connection", "host", "x-ms-version"]);
  });

  test("a source that redirects, lies about ranges or lengths, breaks off, or is no blob is refused", async () => {
    const here = await both.here.container();
    let reached = 0;
    const inside = await serve((_message, response) => {
      reached++;
      response.end("inside");
    });
    const host = await serve((message, response) => {
      const { url = "", headers } = message;
      if (url === "/redirect") response.writeHead(302, { Location: `http://${inside}/` }).end();
      else if (url === "/other-range") response.writeHead(206, { "Content-Range": "bytes 5-9/100", "Content-Length": "5" }).end("12345");
      else if (url === "/no-range") response.writeHead(200, { "Content-Length": "5" }).end("12345");
      else if (url === "/no-length") response.writeHead(200).end("12345");
      else if (url === "/short") {
        response.writeHead(200, { "Content-Length": "5" }).write("123");
        setTimeout(() => response.destroy(), 20);
      } else if (url === "/type") response.writeHead(200, { "x-ms-blob-type": "Cube", "Content-Length": "0" }).end();
      else if (url === "/busy") response.writeHead(503).end();
      else if (url === "/huge") response.writeHead(200, { "Content-Length": String(2 ** 50) }).write("x");
      else if (url === "/no-etag") response.writeHead(200, { "Content-Length": "1" }).end("x");
      else response.writeHead(404, { "x-range": headers.range ?? "" }).end();
    });
    const target = here.getBlockBlobClient("target");
    const put = async (path: string, range?: readonly [number, number]) => {
      const url = `http://${host}${path}`;
      const error = await failure(range ? target.stageBlockFromURL(blockId(0), url, ...range) : target.syncUploadFromURL(url));
      return `${error.statusCode} ${error.code}`;
    };
    assert.equal(await put("/redirect"), "400 CannotVerifyCopySource");
    assert.equal(reached, 0, "a redirect is not followed");
    assert.equal(await put("/other-range", [0, 5]), "400 CannotVerifyCopySource");
    assert.equal(await put("/no-range", [2, 2]), "400 CannotVerifyCopySource");
    assert.equal(await put("/no-length"), "400 CannotVerifyCopySource");
    assert.match(await put("/short"), /^50[03] /);
    assert.equal(await put("/type"), "400 CannotVerifyCopySource");
    assert.equal(await put("/busy"), "500 CannotVerifyCopySource");
    assert.equal(await put("/huge"), "413 RequestBodyTooLarge");
    const unsafe = await failure(target.beginCopyFromURL(`http://${host}/no-etag`));
    assert.deepEqual([unsafe.statusCode, unsafe.code], [400, "CannotVerifyCopySource"]);
    assert.equal(await target.exists(), false);
  });

  test("what is not allowed is not reached: other schemes, addresses by number, names of this machine", async () => {
    const here = await both.here.container();
    let reached = 0;
    const host = await serve((_message, response) => {
      reached++;
      response.end("inside");
    });
    const port = host.split(":")[1];
    const target = here.getBlockBlobClient("target");
    for (const url of [
      `https://127.0.0.1:${port}/x`,
      `http://[::1]:${port}/x`,
      `http://[::ffff:7f00:2]:${port}/x`,
      `http://127.0.0.2:${port}/x`,
      `http://2130706433:${port}/x`,
      `http://0x7f000001:${port}/x`,
      `http://localhost:${port}/x`,
      `http://rebinding.test:${port}/x`,
      "http://169.254.169.254/latest/meta-data/x",
    ]) {
      for (const work of [target.syncUploadFromURL(url), target.beginCopyFromURL(url)]) {
        const error = await failure(work);
        assert.deepEqual([error.statusCode, error.code], [400, "CannotVerifyCopySource"], url);
      }
    }
    assert.equal(reached, 0);
    await target.syncUploadFromURL(`http://files.inside.test:${port}/x`);
    assert.equal(reached, 1, "a name whose network the operator names");
    const nobody = await failure(target.syncUploadFromURL("http://nowhere.test/x"));
    assert.deepEqual([nobody.statusCode, nobody.code], [500, "CannotVerifyCopySource"]);
  });

  test("a source that changes or is taken away in the middle makes the copy fail; one that is away for a while does not", async () => {
    const here = await both.here.container();
    const content = bytes(20 * mebibyte, 4);
    let mode: "away" | "changed" | "good" = "good";
    let away = 0;
    const host = await serve((message, response) => {
      if (message.method === "HEAD" && message.headers["if-match"] === undefined) {
        return response.writeHead(200, { ETag: '"1"', "Content-Length": String(content.length) }).end();
      }
      assert.equal(message.headers["if-match"], '"1"');
      if (mode === "changed") return response.writeHead(412, { "x-ms-error-code": "ConditionNotMet" }).end();
      if (mode === "away" && away++ < 2) return response.destroy();
      if (message.method === "HEAD") return response.writeHead(200, { ETag: '"1"', "Content-Length": String(content.length) }).end();
      const [, start = "0", last = "0"] = /bytes=(\d+)-(\d+)/.exec(message.headers.range ?? "") ?? [];
      const part = content.subarray(Number(start), Number(last) + 1);
      return response
        .writeHead(206, { "Content-Range": `bytes ${start}-${last}/${content.length}`, "Content-Length": part.length })
        .end(part);
    });
    mode = "away";
    const late = here.getBlockBlobClient("late");
    await late.beginCopyFromURL(`http://${host}/file`);
    assert.equal(await ended(late), "success");
    assert.ok(content.equals(await late.downloadToBuffer()));
    assert.ok(away > 2);
    mode = "changed";
    const failed = here.getBlockBlobClient("failed");
    await failed.beginCopyFromURL(`http://${host}/file`);
    assert.equal(await ended(failed), "failed");
    const { copyStatusDescription, contentLength } = await failed.getProperties();
    assert.match(copyStatusDescription ?? "", /SourceConditionNotMet/);
    assert.equal(contentLength, 0);
  });

  test("a blob of another account of the same stamp needs a right of its own: a SAS, a token, or that it is public", async () => {
    const [stamp] = both.stamps;
    await stamp.addAccount("neighbour");
    const neighbour = new Clients({ ...both.there.target, accountName: "neighbour" });
    const theirs = await neighbour.container();
    const source = theirs.getBlockBlobClient("source");
    await source.upload("theirs", 6);
    const ours = await both.there.container();
    const target = ours.getBlockBlobClient("target");
    for (const [work, status] of [
      [target.beginCopyFromURL(source.url), 404],
      [target.syncCopyFromURL(source.url), 401],
      [target.syncUploadFromURL(source.url), 401],
    ] as const) {
      const error = await failure(work);
      assert.deepEqual([error.statusCode, error.code], [status, "CannotVerifyCopySource"]);
    }
    const until = { expiresOn: new Date(Date.now() + 3_600_000), permissions: BlobSASPermissions.parse("r") };
    const credential = new StorageSharedKeyCredential("neighbour", accountKey);
    const sas = generateBlobSASQueryParameters({ containerName: theirs.containerName, blobName: "source", ...until }, credential);
    await (await target.beginCopyFromURL(`${source.url}?${sas}`)).pollUntilDone();
    assert.equal((await target.downloadToBuffer()).toString(), "theirs");
    const token = await (both.there.target.issuer as NonNullable<typeof both.there.target.issuer>).token({ oid: "me", roles: ["readers"] });
    const byToken = { sourceAuthorization: { scheme: "Bearer", value: token } as never };
    await target.syncCopyFromURL(source.url, byToken);
    await target.stageBlockFromURL(blockId(0), source.url, 0, 3, byToken);
    await target.commitBlockList([blockId(0)]);
    assert.equal((await target.downloadToBuffer()).toString(), "the");
    const forged = { sourceAuthorization: { scheme: "Bearer", value: "x.y.z" } as never };
    const error = await failure(target.syncCopyFromURL(source.url, forged));
    assert.deepEqual([error.statusCode, error.code], [401, "CannotVerifyCopySource"]);
    const open = await neighbour.container({ access: "blob" });
    await open.getBlockBlobClient("open").upload("public", 6);
    await target.syncCopyFromURL(open.getBlobClient("open").url);
    assert.equal((await target.downloadToBuffer()).toString(), "public");
  });
});
