/** Blob Batch: many requests in one, each with its own rights, answer and failure. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, test } from "node:test";
import { StorageSharedKeyCredential } from "@azure/storage-blob";
import { fromBase64, signRequest } from "@stamp/azure-rest";
import { bytes, type Clients, failure } from "./target.ts";

export function batchSuite(clients: () => Clients): void {
  const credential = () => new StorageSharedKeyCredential(clients().target.accountName, clients().target.accountKey);

  describe("batches", () => {
    test("blobs are deleted in one request; those that are not there answer for themselves", async () => {
      const container = await clients().container();
      const names = Array.from({ length: 10 }, (_, i) => `b ${i}%`);
      for (const name of names) await container.getBlockBlobClient(name).upload("x", 1);
      const urls = [...names, "none"].map((name) => container.getBlobClient(name).url);
      const answer = await clients().service.getBlobBatchClient().deleteBlobs(urls, credential());
      assert.equal(answer.subResponsesSucceededCount, 10);
      assert.equal(answer.subResponsesFailedCount, 1);
      assert.deepEqual(
        answer.subResponses.map((one) => one.status),
        [...names.map(() => 202), 404],
      );
      const last = answer.subResponses.at(-1);
      assert.equal(last?.errorCode, "BlobNotFound");
      assert.equal(last?.statusMessage, "The specified blob does not exist.");
      assert.equal(answer.subResponses[0]?.statusMessage, "Accepted");
      assert.match(last?.bodyAsText ?? "", /<Code>BlobNotFound<.Code>/);
      for (const name of names) assert.equal(await container.getBlobClient(name).exists(), false);
    });

    test("tiers are set in one request", async () => {
      const container = await clients().container();
      const names = ["a", "b", "c"];
      for (const name of names) await container.getBlockBlobClient(name).upload("x", 1);
      const urls = names.map((name) => container.getBlobClient(name).url);
      const answer = await clients().service.getBlobBatchClient().setBlobsAccessTier(urls, credential(), "Cool");
      assert.deepEqual([answer.subResponsesSucceededCount, answer.subResponsesFailedCount], [3, 0]);
      for (const name of names) assert.equal((await container.getBlobClient(name).getProperties()).accessTier, "Cool");
    });

    test("a batch of a container is about its blobs only", async () => {
      const container = await clients().container();
      const other = await clients().container();
      for (const one of [container, other]) await one.getBlockBlobClient("b").upload("x", 1);
      const urls = [container.getBlobClient("b").url, other.getBlobClient("b").url];
      const answer = await container.getBlobBatchClient().deleteBlobs(urls, credential());
      assert.deepEqual(
        answer.subResponses.map((one) => one.status),
        [202, 400],
      );
      assert.equal(await other.getBlobClient("b").exists(), true);
    });

    test("each request is let in by its own signature", async () => {
      const container = await clients().container();
      await container.getBlockBlobClient("b").upload("x", 1);
      const wrong = new StorageSharedKeyCredential(clients().target.accountName, Buffer.from("another key").toString("base64"));
      const answer = await clients()
        .service.getBlobBatchClient()
        .deleteBlobs([container.getBlobClient("b").url], wrong);
      assert.deepEqual([answer.subResponses[0]?.status, answer.subResponses[0]?.errorCode], [403, "AuthenticationFailed"]);
      assert.equal(await container.getBlobClient("b").exists(), true);
    });

    test("only deletes and tiers are for batches; what is no batch is refused as a whole", async () => {
      const container = await clients().container();
      await container.getBlockBlobClient("b").upload("x", 1);
      const { accountName, accountKey } = clients().target;
      const target = `/${accountName}/${container.containerName}/b`;
      const key = fromBase64(accountKey) as Uint8Array;
      const { "x-ms-version": _version, ...headers } = signRequest(
        { method: "GET", target, headers: {} },
        accountName,
        key,
        Date.now(),
        (k, m) => createHmac("sha256", k).update(m).digest(),
      );
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      const part = `--x\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\nGET ${target} HTTP/1.1\r\n${lines.join("")}\r\n`;
      const send = (body: string | Uint8Array, type = "multipart/mixed; boundary=x") =>
        clients().raw("POST", "?comp=batch", { headers: { "content-type": type }, body });
      const read = await send(`${part}--x--`);
      assert.equal(read.status, 202);
      assert.match(read.headers.get("content-type") ?? "", /^multipart\/mixed; boundary=batchresponse_/);
      assert.match(await read.text(), /\r\nx-ms-error-code: (InvalidInput|AuthenticationFailed)\r\n/);
      for (const [answer, code] of [
        [await send("nonsense"), "InvalidInput"],
        [await send(`${part}--x--`, "text/plain"), "InvalidHeaderValue"],
        [await send(`${part}--x--`, "multipart/mixed"), "InvalidHeaderValue"],
        [await send(part.repeat(257)), "ExceedsMaxBatchRequestCount"],
      ] as const) {
        assert.equal(answer.status, 202);
        const text = await answer.text();
        assert.deepEqual(
          [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status),
          ["400"],
          text,
        );
        assert.ok(text.includes(`x-ms-error-code: ${code}\r\n`), text);
      }
      assert.equal((await send(bytes(4 * 1024 * 1024 + 1))).status, 413);
    });

    test("a request inside may say the version of the batch, and no other", async () => {
      const container = await clients().container();
      const { accountName, accountKey } = clients().target;
      const key = fromBase64(accountKey) as Uint8Array;
      const inside = async (blob: string, version: string): Promise<string> => {
        await container.getBlockBlobClient(blob).upload("x", 1);
        const target = `/${accountName}/${container.containerName}/${blob}`;
        const asked = { method: "DELETE", target, headers: { "x-ms-version": version } };
        const headers = signRequest(asked, accountName, key, Date.now(), (k, m) => createHmac("sha256", k).update(m).digest());
        const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
        const body = `--x\r\nContent-Type: application/http\r\n\r\nDELETE ${target} HTTP/1.1\r\n${lines.join("")}\r\n--x--`;
        const outer = { "content-type": "multipart/mixed; boundary=x", "x-ms-version": "2024-05-04" };
        const answer = await clients().raw("POST", "?comp=batch", { headers: outer, body });
        return /HTTP\/1.1 (\d+)/.exec(await answer.text())?.[1] ?? String(answer.status);
      };
      assert.equal(await inside("same", "2024-05-04"), "202");
      assert.equal(await inside("empty", ""), "202");
      assert.equal(await inside("other", "2023-11-03"), "400");
    });

    test("256 at once", async () => {
      const container = await clients().container();
      const names = Array.from({ length: 256 }, (_, i) => `n${i}`);
      await Promise.all(names.slice(0, 32).map((name) => container.getBlockBlobClient(name).upload("x", 1)));
      const urls = names.map((name) => container.getBlobClient(name).url);
      const answer = await container.getBlobBatchClient().deleteBlobs(urls, credential());
      assert.deepEqual([answer.subResponsesSucceededCount, answer.subResponsesFailedCount], [32, 224]);
    });

    test("a batch needs a right of its own", async () => {
      const answer = await clients().raw("POST", "?comp=batch", {
        body: "x",
        sign: false,
        headers: { "content-type": "multipart/mixed; boundary=x" },
      });
      assert.equal(answer.status, 401);
      const error = await failure(
        clients()
          .serviceWith(Buffer.from("wrong").toString("base64"))
          .getBlobBatchClient()
          .deleteBlobs([`${clients().target.endpoint}/x/y/z`], credential()),
      );
      assert.equal(error.statusCode, 403);
    });
  });
}
