/** Conditional requests: ETags and times, on reads and writes. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { blockId, type Clients, failure } from "./target.ts";

export function conditionSuite(clients: () => Clients): void {
  describe("conditions", () => {
    test("If-Match lets one of two writers win, and the other is told 412", async () => {
      const client = (await clients().container()).getBlockBlobClient("b");
      const { etag } = await client.upload("0", 1);
      const ifMatch = etag ?? "";
      const attempts = await Promise.allSettled(["1", "2", "3", "4"].map((text) => client.upload(text, 1, { conditions: { ifMatch } })));
      const won = attempts.filter((attempt) => attempt.status === "fulfilled");
      assert.equal(won.length, 1);
      for (const attempt of attempts) {
        if (attempt.status === "rejected") assert.deepEqual([attempt.reason.statusCode, attempt.reason.code], [412, "ConditionNotMet"]);
      }
    });

    test("If-None-Match: * creates once, then 409", async () => {
      const client = (await clients().container()).getBlockBlobClient("b");
      await client.upload("1", 1, { conditions: { ifNoneMatch: "*" } });
      const error = await failure(client.upload("2", 1, { conditions: { ifNoneMatch: "*" } }));
      assert.equal(error.statusCode, 409);
      assert.equal(error.code, "BlobAlreadyExists");
      assert.equal((await client.downloadToBuffer()).toString(), "1");
    });

    test("If-None-Match: * of Delete Blob says nothing: the blob goes; with the blob's ETag it stays", async () => {
      const client = (await clients().container()).getBlockBlobClient("b");
      const { etag = "" } = await client.upload("1", 1);
      assert.equal((await failure(client.delete({ conditions: { ifNoneMatch: etag } }))).statusCode, 412);
      await client.delete({ conditions: { ifNoneMatch: "*" } });
      assert.equal(await client.exists(), false);
    });

    test("If-None-Match: * is refused by reads: no blob that is there satisfies it", async () => {
      const container = await clients().container();
      await container.getBlockBlobClient("b").upload("1", 1);
      for (const [method, query, header] of [
        ["GET", "", "if-none-match"],
        ["HEAD", "", "if-none-match"],
        ["GET", "?comp=metadata", "if-none-match"],
        ["GET", "?comp=blocklist", "if-none-match"],
        ["GET", "?comp=tags", "x-ms-blob-if-none-match"],
      ] as const) {
        const answer = await clients().raw(method, `/${container.containerName}/b${query}`, { headers: { [header]: "*" } });
        assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [400, "UnsatisfiableCondition"], `${method} ${query}`);
        await answer.arrayBuffer();
      }
      const any = await clients().raw("GET", `/${container.containerName}/b`, { headers: { "if-match": "*" } });
      assert.equal(await any.text(), "1");
    });

    test("If-Match on a blob that is not there is 412", async () => {
      const client = (await clients().container()).getBlockBlobClient("b");
      assert.equal((await failure(client.upload("1", 1, { conditions: { ifMatch: '"0x8DEADBEEF"' } }))).statusCode, 412);
    });

    test("reads: 304 for what the reader has, 412 for what it does not expect", async () => {
      const client = (await clients().container()).getBlockBlobClient("b");
      const { etag } = await client.upload("1", 1);
      const current = etag ?? "";
      const same = await failure(client.download(0, undefined, { conditions: { ifNoneMatch: current } }));
      assert.equal(same.statusCode, 304);
      const other = await failure(client.getProperties({ conditions: { ifMatch: '"0x80000000000DEAD"' } }));
      assert.equal(other.statusCode, 412);
      assert.equal((await client.download(0, undefined, { conditions: { ifMatch: current } })).etag, current);
    });

    test("times: modified since and not", async () => {
      const client = (await clients().container()).getBlockBlobClient("b");
      await client.upload("1", 1);
      const { lastModified } = await client.getProperties();
      const at = lastModified as Date;
      const hour = 3_600_000;
      assert.equal((await failure(client.download(0, undefined, { conditions: { ifModifiedSince: at } }))).statusCode, 304);
      assert.equal(
        (await failure(client.setMetadata({}, { conditions: { ifUnmodifiedSince: new Date(at.getTime() - hour) } }))).statusCode,
        412,
      );
      await client.download(0, undefined, { conditions: { ifModifiedSince: new Date(at.getTime() - hour) } });
      await client.setMetadata({ ok: "1" }, { conditions: { ifUnmodifiedSince: new Date(at.getTime() + hour) } });
    });

    test("dates come in three forms; what is no date is ignored", async () => {
      const { containerName } = await clients().container();
      const path = `/${containerName}/b`;
      await clients().service.getContainerClient(containerName).getBlockBlobClient("b").upload("1", 1);
      const told = async (method: string, headers: Record<string, string>) => {
        const answer = await clients().raw(method, path, {
          headers: { "x-ms-blob-type": "BlockBlob", ...headers },
          ...(method === "PUT" ? { body: "1" } : {}),
        });
        await answer.arrayBuffer();
        return answer.status;
      };
      for (const early of ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]) {
        assert.deepEqual(
          [await told("GET", { "if-unmodified-since": early }), await told("PUT", { "if-unmodified-since": early })],
          [412, 412],
        );
        assert.deepEqual(
          [await told("GET", { "if-modified-since": early }), await told("PUT", { "if-modified-since": early })],
          [200, 201],
        );
      }
      for (const late of ["Wednesday, 01-Jan-70 00:00:00 GMT", "Wed Jan  1 00:00:00 2070"]) {
        assert.deepEqual(
          [await told("GET", { "if-modified-since": late }), await told("PUT", { "if-modified-since": late })],
          [304, 412],
          late,
        );
      }
      for (const none of ["yesterday", "2070-01-01T00:00:00Z", "Mon, 06 Nov 1994 08:49:37 GMT", "0"]) {
        const ignored = { "if-modified-since": none, "if-unmodified-since": none };
        assert.deepEqual([await told("GET", ignored), await told("PUT", ignored)], [200, 201], none);
      }
    });

    test("weak ETags: If-Match fits none, If-None-Match looks behind the W/", async () => {
      const container = await clients().container();
      const client = container.getBlockBlobClient("b");
      const { etag = "" } = await client.upload("1", 1);
      const told = async (conditions: { ifMatch?: string; ifNoneMatch?: string }) => {
        const read = client.download(0, undefined, { conditions }).then(
          (answer) => answer._response.status,
          (error) => error.statusCode,
        );
        const write = client.setMetadata({}, { conditions }).then(
          () => 200,
          (error) => error.statusCode,
        );
        return [await read, await write];
      };
      assert.deepEqual(await told({ ifMatch: `W/${etag}` }), [412, 412]);
      assert.deepEqual(await told({ ifMatch: 'W/"other"' }), [412, 412]);
      assert.deepEqual(await told({ ifNoneMatch: `W/${etag}` }), [304, 412]);
      assert.deepEqual(await told({ ifNoneMatch: 'W/"other"' }), [200, 200]);
    });

    test("metadata, headers, delete and block lists obey If-Match", async () => {
      const client = (await clients().container()).getBlockBlobClient("b");
      const { etag } = await client.upload("1", 1);
      const stale = { conditions: { ifMatch: etag ?? "" } };
      await client.setMetadata({ a: "1" }, stale);
      await client.stageBlock(blockId(1), "x", 1);
      for (const work of [
        () => client.setMetadata({ b: "2" }, stale),
        () => client.setHTTPHeaders({}, stale),
        () => client.delete(stale),
        () => client.commitBlockList([blockId(1)], stale),
      ]) {
        assert.equal((await failure(work())).statusCode, 412);
      }
      assert.deepEqual((await client.getProperties()).metadata, { a: "1" });
    });

    test("a lease id where there is no lease is 412", async () => {
      const client = (await clients().container()).getBlockBlobClient("b");
      await client.upload("1", 1);
      const leaseId = "11111111-2222-3333-4444-555555555555";
      const error = await failure(client.setMetadata({}, { conditions: { leaseId } }));
      assert.equal(error.statusCode, 412);
      assert.equal(error.code, "LeaseNotPresentWithBlobOperation");
    });
  });
}
