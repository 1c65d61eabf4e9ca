/** What is stored with a blob's content: its MD5 and its type, as clients set, change and clear them. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { blockId, type Clients, readableUrl } from "./target.ts";

const md5Of = (text: string): string => createHash("md5").update(text).digest("base64");
const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** Values of x-ms-blob-content-md5 that are no MD5: 32 hexadecimal digits, one byte, 40 bytes. */
const otherLengths = [md5Of("x"), "x", "x".repeat(40)].map((text) => base64(text));

export function propertySuite(clients: () => Clients): void {
  describe("content properties", () => {
    /** A new container's path, and a request that tells status and code. */
    async function fresh() {
      const container = await clients().container();
      const path = `/${container.containerName}`;
      const told = async (method: string, rest: string, headers: Record<string, string>, body = ""): Promise<string> => {
        const answer = await clients().raw(method, `${path}${rest}`, { headers, body });
        await answer.arrayBuffer();
        return `${answer.status} ${answer.headers.get("x-ms-error-code") ?? ""}`.trim();
      };
      const shown = async (name: string, header: string): Promise<string | null> => {
        const answer = await clients().raw("GET", `${path}/${name}`);
        await answer.arrayBuffer();
        return answer.headers.get(header);
      };
      return { container, told, shown };
    }

    test("browsers are told not to guess the type of a blob's content, whole, in part and in its properties", async () => {
      const { container } = await fresh();
      await container.getBlockBlobClient("b").upload("<script>", 8);
      for (const [method, headers] of [
        ["GET", {}],
        ["GET", { range: "bytes=0-0" }],
        ["HEAD", {}],
      ] as const) {
        const answer = await clients().raw(method, `/${container.containerName}/b`, { headers });
        await answer.arrayBuffer();
        assert.deepEqual([answer.ok, answer.headers.get("x-content-type-options")], [true, "nosniff"], method);
      }
    });

    test("Set Blob Properties and Put Block List keep an MD5 of any length, which is read, listed and copied", async () => {
      const { container, told, shown } = await fresh();
      const client = container.getBlockBlobClient("b");
      await client.upload("x", 1);
      await container.getPageBlobClient("page").create(512);
      for (const md5 of otherLengths) {
        const headers = { "x-ms-blob-content-md5": md5 };
        assert.equal(await told("PUT", "/b?comp=properties", headers), "200", md5);
        assert.equal(await shown("b", "content-md5"), md5);
        for await (const blob of container.listBlobsFlat({ prefix: "b" })) {
          assert.equal(Buffer.from(blob.properties.contentMD5 ?? []).toString("base64"), md5);
        }
        const part = await clients().raw("GET", `/${container.containerName}/b`, { headers: { range: "bytes=0-0" } });
        assert.deepEqual([part.status, part.headers.get("x-ms-blob-content-md5")], [206, md5]);
        await (await container.getBlockBlobClient("copy").beginCopyFromURL(client.url)).pollUntilDone();
        assert.equal(await shown("copy", "content-md5"), md5);
        assert.equal(await told("PUT", "/page?comp=properties", { ...headers, "x-ms-blob-content-length": "1024" }), "200", md5);
        assert.equal(await shown("page", "content-md5"), md5);
        await container.getBlockBlobClient("listed").stageBlock(blockId(1), "x", 1);
        const list = `<BlockList><Latest>${blockId(1)}</Latest></BlockList>`;
        assert.equal(await told("PUT", "/listed?comp=blocklist", headers, list), "201", md5);
        assert.equal(await shown("listed", "content-md5"), md5);
      }
      assert.equal(await told("PUT", "/b?comp=properties", { "x-ms-blob-content-md5": "no base64" }), "400 InvalidMd5");
    });

    test("Set Blob Properties without a type clears it, until one is set; copies, snapshots and lists have none either", async () => {
      const { container, told, shown } = await fresh();
      const client = container.getBlockBlobClient("b");
      await client.upload("x", 1);
      assert.equal(await shown("b", "content-type"), "application/octet-stream");
      await client.upload("x", 1, { blobHTTPHeaders: { blobContentType: "a/b", blobCacheControl: "c" } });
      await client.setHTTPHeaders({ blobContentLanguage: "en" });
      const head = async (of = client) => {
        const { contentType, contentLanguage, cacheControl } = await of.getProperties();
        return [contentType, contentLanguage, cacheControl];
      };
      assert.deepEqual(await head(), [undefined, "en", undefined]);
      assert.equal(await shown("b", "content-type"), null);
      await client.setMetadata({ a: "1" });
      const snapshot = (await client.createSnapshot()).snapshot ?? "";
      await (await container.getBlockBlobClient("copy").beginCopyFromURL(client.url)).pollUntilDone();
      for (const name of ["b", `b?snapshot=${snapshot}`, "copy"]) assert.equal(await shown(name, "content-type"), null, name);
      for await (const { properties } of container.listBlobsFlat()) assert.equal(properties.contentType ?? "", "");
      const page = container.getPageBlobClient("page");
      await page.create(512);
      await page.resize(1024);
      assert.equal(await shown("page", "content-type"), "application/octet-stream", "a new size alone changes no property");
      const resized = { "x-ms-blob-content-length": "512", "x-ms-blob-content-language": "en" };
      assert.equal(await told("PUT", "/page?comp=properties", resized), "200");
      assert.equal(await shown("page", "content-type"), null);
      await client.setHTTPHeaders({ blobContentType: "c/d" });
      assert.deepEqual(await head(), ["c/d", undefined, undefined]);
      await client.setHTTPHeaders({});
      await client.upload("y", 1);
      assert.equal(await shown("b", "content-type"), "application/octet-stream", "new content has the default again");
      await client.setHTTPHeaders({});
      await client.stageBlock(blockId(1), "z", 1);
      await client.commitBlockList([blockId(1)]);
      assert.equal(await shown("b", "content-type"), "application/octet-stream");
    });

    test("an MD5 that the service compares with bytes has 16 bytes", async () => {
      const { container, told } = await fresh();
      await container.getBlockBlobClient("source").upload("x", 1);
      const url = await readableUrl(container.getBlockBlobClient("source"));
      for (const md5 of otherLengths) {
        const kind = { "x-ms-blob-type": "BlockBlob", "x-ms-blob-content-md5": md5 };
        assert.equal(await told("PUT", "/b", kind, "x"), "400 InvalidMd5", md5);
        assert.equal(await told("PUT", "/b", { ...kind, "x-ms-copy-source": url }), "400 InvalidMd5", md5);
        assert.equal(await told("PUT", "/b", { "x-ms-blob-type": "BlockBlob", "content-md5": md5 }, "x"), "400 InvalidMd5", md5);
      }
    });

    test("a CRC64 that is not 8 bytes in base64 is 400 InvalidHeaderValue, wherever it is read", async () => {
      const { container, told } = await fresh();
      await container.getBlockBlobClient("source").upload("x", 1);
      await container.getAppendBlobClient("append").create();
      await container.getPageBlobClient("page").create(512);
      const source = { "x-ms-copy-source": await readableUrl(container.getBlockBlobClient("source")) };
      const block = `/b?comp=block&blockid=${encodeURIComponent(blockId(1))}`;
      const page = { "x-ms-page-write": "update", range: "bytes=0-511" };
      for (const crc64 of ["AAAA", base64("x".repeat(9)), "0x1234567890abcdef", "18446744073709551615", "no base64!!"]) {
        const ofBody = { "x-ms-content-crc64": crc64 };
        const ofSource = { ...source, "x-ms-source-content-crc64": crc64 };
        for (const seen of [
          await told("PUT", "/b", { ...ofBody, "x-ms-blob-type": "BlockBlob" }, "x"),
          await told("PUT", block, ofBody, "x"),
          await told("PUT", "/b?comp=blocklist", ofBody, "<BlockList></BlockList>"),
          await told("PUT", "/append?comp=appendblock", ofBody, "x"),
          await told("PUT", "/page?comp=page", { ...ofBody, ...page }, "x".repeat(512)),
          await told("PUT", block, ofSource),
          await told("PUT", "/append?comp=appendblock", ofSource),
        ]) {
          assert.equal(seen, "400 InvalidHeaderValue", crc64);
        }
      }
    });

    test("Put Blob does not look at Content-MD5 if x-ms-blob-content-md5 is there", async () => {
      const { told, shown } = await fresh();
      const put = (headers: Record<string, string>) => told("PUT", "/b", { "x-ms-blob-type": "BlockBlob", ...headers }, "x");
      const [right, wrong] = [md5Of("x"), md5Of("y")];
      assert.equal(await put({ "x-ms-blob-content-md5": right, "content-md5": wrong }), "201");
      assert.equal(await shown("b", "content-md5"), right);
      assert.equal(await put({ "x-ms-blob-content-md5": wrong, "content-md5": right }), "400 Md5Mismatch");
      assert.equal(await put({ "content-md5": wrong }), "400 Md5Mismatch");
      const later = md5Of("what will be appended");
      const append = { "x-ms-blob-type": "AppendBlob", "x-ms-blob-content-md5": later, "content-md5": wrong };
      assert.equal(await told("PUT", "/append", append), "201");
      assert.equal(await shown("append", "content-md5"), later);
    });
  });
}
