/** Names of metadata: they keep the case in which they were sent, which clients on top of fetch can't show, and are sent once. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { request } from "node:http";
import { describe, test } from "node:test";
import { BlobSASPermissions } from "@azure/storage-blob";
import { fromBase64, signRequest } from "@stamp/azure-rest";
import { type Clients, readableUrl } from "./target.ts";

/** With header names as they are given; the raw headers of the answer. */
function send(clients: Clients, method: string, path: string, given: Record<string, string>): Promise<{ status: number; raw: string[] }> {
  const { endpoint, accountName, accountKey } = clients.target;
  const target = `/${accountName}${path}`;
  const hmac = (key: Uint8Array, message: Uint8Array): Uint8Array => createHmac("sha256", key).update(message).digest();
  const lower = Object.fromEntries(Object.entries(given).map(([name, value]) => [name.toLowerCase(), value]));
  const signed = signRequest({ method, target, headers: lower }, accountName, fromBase64(accountKey) as Uint8Array, Date.now(), hmac);
  const headers = Object.entries(signed).flatMap(([name, value]) => [
    Object.keys(given).find((sent) => sent.toLowerCase() === name) ?? name,
    value,
  ]);
  return new Promise((resolve, reject) => {
    const { host } = new URL(endpoint);
    const sent = request(`${endpoint}${target}`, { method, headers: ["host", host, ...headers] }, (answer) => {
      answer.resume();
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, raw: answer.rawHeaders }));
    });
    sent.on("error", reject);
    sent.end();
  });
}

export function metadataSuite(clients: () => Clients): void {
  describe("metadata", () => {
    test("names keep their case, on blobs, containers and in lists", async () => {
      const container = await clients().container();
      const path = `/${container.containerName}`;
      const named = { "x-ms-meta-CamelCase": "1", "X-Ms-Meta-UPPER_1": "2" };
      const put = await send(clients(), "PUT", `${path}/b`, { "x-ms-blob-type": "BlockBlob", "content-length": "0", ...named });
      assert.equal(put.status, 201);
      assert.equal(
        (await send(clients(), "PUT", `${path}?restype=container&comp=metadata`, { "content-length": "0", ...named })).status,
        200,
      );
      for (const [method, at] of [
        ["HEAD", `${path}/b`],
        ["GET", `${path}/b?comp=metadata`],
        ["HEAD", `${path}?restype=container`],
      ] as const) {
        const { raw } = await send(clients(), method, at, {});
        for (const name of ["x-ms-meta-CamelCase", "x-ms-meta-UPPER_1"]) assert.ok(raw.includes(name), `${method} ${at}: ${name}`);
      }
      const text = await (await clients().raw("GET", `${path}?restype=container&comp=list&include=metadata`)).text();
      assert.match(text, /<Metadata><CamelCase>1<\/CamelCase><UPPER_1>2<\/UPPER_1><\/Metadata>/);
    });

    test("names keep their case in copies that set them, however the copy is made", async () => {
      const container = await clients().container();
      const path = `/${container.containerName}`;
      const source = container.getBlockBlobClient("source");
      await source.upload("x", 1);
      const copySource = await readableUrl(source);
      for (const [name, headers] of [
        ["copy", {}],
        ["copy-at-once", { "x-ms-requires-sync": "true" }],
        ["put-from-url", { "x-ms-blob-type": "BlockBlob" }],
      ] as const) {
        const given = { "content-length": "0", "x-ms-copy-source": copySource, "x-ms-meta-CamelCase": "1", ...headers };
        assert.ok([201, 202].includes((await send(clients(), "PUT", `${path}/${name}`, given)).status), name);
        const { raw } = await send(clients(), "HEAD", `${path}/${name}`, {});
        assert.ok(raw.includes("x-ms-meta-CamelCase"), name);
      }
    });

    test("a name that was sent twice is refused, in any case", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      const url = await client.generateSasUrl({ permissions: BlobSASPermissions.parse("cw"), expiresOn: new Date(Date.now() + 600_000) });
      const put = (...names: string[]) =>
        new Promise<string>((resolve, reject) => {
          const { host } = new URL(url);
          const metadata = names.flatMap((name, i) => [name, String(i)]);
          const headers = ["host", host, "content-length", "0", "x-ms-blob-type", "BlockBlob", ...metadata];
          const sent = request(url, { method: "PUT", headers }, (answer) => {
            answer.resume();
            answer.on("end", () => resolve(`${answer.statusCode} ${answer.headers["x-ms-error-code"] ?? ""}`.trim()));
          });
          sent.on("error", reject);
          sent.end();
        });
      assert.equal(await put("x-ms-meta-a", "x-ms-meta-A"), "400 InvalidMetadata");
      assert.equal(await put("x-ms-meta-a", "x-ms-meta-a"), "400 InvalidMetadata");
      assert.equal(await client.exists(), false);
      assert.equal(await put("x-ms-meta-a", "x-ms-meta-b"), "201");
    });
  });
}
