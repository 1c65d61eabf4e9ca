/**
 * Copies whose source is elsewhere, as every way to run the stamp does them: an HTTP server of the test's, and this stamp under a name of
 * its machine that the request does not carry. The target allows `copySources`. What must not be reached: foreign-copy.test.ts.
 */
import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, test } from "node:test";
import {
  type BlobClient,
  BlobSASPermissions,
  type BlockBlobClient,
  generateBlobSASQueryParameters,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { blockId, bytes, type Clients, failure } from "./target.ts";

/** Whom a target of this suite must be allowed to ask. */
export const copySources: readonly string[] = ["http://127.0.0.1:*", "http://localhost:*=127.0.0.0/8"];

const mebibyte = 1024 * 1024;

export function foreignSuite(clients: () => Clients): void {
  describe("copies from elsewhere", () => {
    const closers: (() => void)[] = [];
    after(() => {
      for (const close of closers) close();
    });
    async function serve(listener: RequestListener): Promise<string> {
      const server = createServer(listener);
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      closers.push(() => {
        server.close();
        server.closeAllConnections();
      });
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    }
    /** Files by path, that answer GET alone; `ranges`: as HTTP has them. */
    const files = (contents: Readonly<Record<string, Buffer>>, ranges: boolean, headStatus: number) =>
      serve(({ method, url = "", headers }, response) => {
        if (method !== "GET") return response.writeHead(headStatus).end();
        const content = contents[url.split("?")[0] ?? ""];
        if (!content) return response.writeHead(404).end();
        response.setHeader("ETag", '"v1"').setHeader("Content-Type", "text/x");
        const range = ranges ? /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? "") : null;
        if (!range) return response.setHeader("Content-Length", content.length).end(content);
        const start = Number(range[1]);
        const end = Math.min(range[2] ? Number(range[2]) + 1 : content.length, content.length);
        if (start >= content.length) return response.writeHead(416, { "Content-Range": `bytes */${content.length}` }).end();
        const part = content.subarray(start, end);
        return response
          .writeHead(206, { "Content-Range": `bytes ${start}-${end - 1}/${content.length}`, "Content-Length": part.length })
          .end(part);
      });
    async function ended(client: BlobClient): Promise<string> {
      for (let i = 0; ; i++) {
        const { copyStatus, copyStatusDescription } = await client.getProperties();
        if (copyStatus !== "pending") return `${copyStatus} ${copyStatusDescription ?? ""}`.trim();
        assert.ok(i < 1200, "it ends");
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
    const signed = (client: BlobClient, permissions: string): string => {
      const { accountName, accountKey } = clients().target;
      const sas = generateBlobSASQueryParameters(
        {
          containerName: client.containerName,
          blobName: client.name,
          permissions: BlobSASPermissions.parse(permissions),
          expiresOn: new Date(Date.now() + 3_600_000),
        },
        new StorageSharedKeyCredential(accountName, accountKey),
      );
      return `${client.url}?${sas}`.replace("//127.0.0.1:", "//localhost:");
    };

    for (const headStatus of [403, 404, 405, 501]) {
      test(`a source that answers HEAD with ${headStatus} and allows GET is copied`, async () => {
        const container = await clients().container();
        const large = bytes(headStatus === 403 ? 20 * mebibyte + 1 : 100_000, headStatus);
        const host = await files({ "/large": large, "/empty": Buffer.alloc(0) }, true, headStatus);
        for (const [path, content] of [["/large", large] as const, ["/empty", Buffer.alloc(0)] as const]) {
          const target = container.getBlockBlobClient(`copied${path}`);
          await target.beginCopyFromURL(`${host}${path}?sig=for-get-alone`);
          assert.equal(await ended(target), "success");
          assert.ok(content.equals(await target.downloadToBuffer()));
          assert.equal((await target.getProperties()).contentType, "text/x");
          await target.syncCopyFromURL(`${host}${path}`);
          assert.ok(content.equals(await target.downloadToBuffer()));
        }
        const missing = await failure(container.getBlockBlobClient("missing").beginCopyFromURL(`${host}/none`));
        assert.deepEqual([missing.statusCode, missing.code], [404, "CannotVerifyCopySource"]);
        assert.equal(missing.response?.headers.get("x-ms-copy-source-status-code"), "404");
      });
    }

    test("one that knows neither HEAD nor ranges is copied when it fits into one part", async () => {
      const content = bytes(300_000, 2);
      const host = await files({ "/file": content }, false, 405);
      const target = (await clients().container()).getBlockBlobClient("copied");
      await target.beginCopyFromURL(`${host}/file`);
      assert.equal(await ended(target), "success");
      assert.ok(content.equals(await target.downloadToBuffer()));
    });

    test("a source that is there for HEAD is asked once; one that changes while it is copied makes the copy fail", async () => {
      const asked: string[] = [];
      const content = bytes(9 * mebibyte, 3);
      const host = await serve(({ method = "", headers }, response) => {
        asked.push(method);
        if (asked.filter((one) => one === "GET").length > 1) return response.writeHead(412).end();
        response.setHeader("ETag", '"v1"');
        if (method === "HEAD") return response.setHeader("Content-Length", content.length).end();
        const [, start = "0", last = "0"] = /bytes=(\d+)-(\d+)/.exec(headers.range ?? "") ?? [];
        const part = content.subarray(Number(start), Number(last) + 1);
        return response
          .writeHead(206, { "Content-Range": `bytes ${start}-${last}/${content.length}`, "Content-Length": part.length })
          .end(part);
      });
      const target = (await clients().container()).getBlockBlobClient("changed");
      await target.beginCopyFromURL(`${host}/file`);
      assert.match(await ended(target), /^failed .*SourceConditionNotMet/);
      assert.deepEqual(asked, ["HEAD", "GET", "GET"]);
      assert.equal((await target.getProperties()).contentLength, 0);
    });

    test("a copy that takes long is pending, shows its progress, keeps others off, and can be aborted", async () => {
      const total = 24 * mebibyte;
      const host = await serve((message, response) => {
        response.setHeader("ETag", '"v1"');
        if (message.method === "HEAD") return response.setHeader("Content-Length", total).end();
        const [, start = "0", last = "0"] = /bytes=(\d+)-(\d+)/.exec(message.headers.range ?? "") ?? [];
        const length = Number(last) - Number(start) + 1;
        response.writeHead(206, { "Content-Range": `bytes ${start}-${last}/${total}`, "Content-Length": length });
        // The second part never comes to its end.
        return Number(start) === 0 ? response.end(bytes(length)) : response.write("x");
      });
      const target = (await clients().container()).getBlockBlobClient("slow");
      await target.beginCopyFromURL(`${host}/file`);
      for (let i = 0; (await target.getProperties()).copyProgress !== `${8 * mebibyte}/${total}`; i++) {
        assert.ok(i < 1200, "the first part is there");
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      const { copyId = "", copyStatus } = await target.getProperties();
      assert.equal(copyStatus, "pending");
      assert.equal((await failure(target.upload("x", 1))).code, "PendingCopyOperation");
      assert.equal((await failure(target.abortCopyFromURL("11111111-1111-1111-1111-111111111111"))).code, "CopyIdMismatch");
      await target.abortCopyFromURL(copyId);
      const properties = await target.getProperties();
      assert.deepEqual([properties.copyStatus, properties.contentLength], ["aborted", 0]);
      await target.upload("after", 5);
      assert.equal((await target.downloadToBuffer()).toString(), "after");
    });

    test("this stamp by another name: bytes, properties, tags, conditions and rights are those of the source", async () => {
      const container = await clients().container();
      const content = bytes(9 * mebibyte + 5, 4);
      const source = container.getBlockBlobClient("dir/source é");
      await source.uploadData(content, { metadata: { ofCase: "there" }, blobHTTPHeaders: { blobContentType: "text/y" } });
      await source.setTags({ n: "1" });
      const target = container.getBlockBlobClient("target");
      await target.beginCopyFromURL(signed(source, "r"));
      assert.equal(await ended(target), "success");
      const properties = await target.getProperties();
      // The SDK sends names in lower case, or in their own: they are as in the source.
      const names = async (of: BlobClient) => {
        for await (const { name, metadata } of container.listBlobsFlat({ includeMetadata: true })) if (name === of.name) return metadata;
        return undefined;
      };
      assert.deepEqual([properties.contentType, await names(target)], ["text/y", await names(source)]);
      assert.match(properties.copySource ?? "", /^http:\/\/localhost:/);
      assert.ok(content.equals(await target.downloadToBuffer()));
      await target.stageBlockFromURL(blockId(0), signed(source, "r"), 1000, 2000);
      await target.commitBlockList([blockId(0)]);
      assert.ok(content.subarray(1000, 3000).equals(await target.downloadToBuffer()));

      const when = (tagConditions: string) => ({ sourceConditions: { tagConditions } });
      const unmet = await failure(target.beginCopyFromURL(signed(source, "rt"), when("n = '2'")));
      assert.deepEqual([unmet.statusCode, unmet.code], [412, "SourceConditionNotMet"]);
      await target.beginCopyFromURL(signed(source, "rt"), when("n = '1'"));
      assert.equal(await ended(target), "success");
      const noRight = await failure(target.beginCopyFromURL(signed(source, "r"), when("n = '1'")));
      assert.deepEqual([noRight.statusCode, noRight.code], [403, "CannotVerifyCopySource"]);
      const closed = await failure(target.beginCopyFromURL(source.url.replace("//127.0.0.1:", "//localhost:")));
      assert.deepEqual([closed.statusCode, closed.code], [404, "CannotVerifyCopySource"]);
      await copiesTags(target, (permissions) => signed(source, permissions));
    });

    test("tags of a source of this stamp are copied for whoever may read them", async () => {
      const container = await clients().container();
      const source = container.getBlockBlobClient("source");
      await source.upload("small", 5, { tags: { n: "1" } });
      const target = container.getBlockBlobClient("target");
      await copiesTags(target, (permissions) => signed(source, permissions).replace("//localhost:", "//127.0.0.1:"));
    });

    async function copiesTags(target: BlockBlobClient, url: (permissions: string) => string): Promise<void> {
      await target.syncCopyFromURL(url("rt"), { copySourceTags: "COPY" });
      assert.deepEqual((await target.getTags()).tags, { n: "1" });
      await target.syncUploadFromURL(url("r"));
      assert.deepEqual((await target.getTags()).tags, {});
      await target.syncUploadFromURL(url("rt"), { copySourceTags: "COPY" });
      assert.deepEqual((await target.getTags()).tags, { n: "1" });
      for (const work of [
        () => target.syncCopyFromURL(url("r"), { copySourceTags: "COPY" }),
        () => target.syncUploadFromURL(url("r"), { copySourceTags: "COPY" }),
      ]) {
        const error = await failure(work());
        assert.deepEqual([error.statusCode, error.code], [403, "CannotVerifyCopySource"]);
      }
      const both = await failure(target.syncCopyFromURL(url("rt"), { copySourceTags: "COPY", tags: { own: "1" } }));
      assert.deepEqual([both.statusCode, both.code], [400, "InvalidHeaderValue"]);
    }
  });
}
