/** Versions of the service: which are known, which one a request gets that names none, and what follows from it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BlobSASPermissions } from "@azure/storage-blob";
import { newestVersion } from "@stamp/azure-rest";
import { type Clients, failure } from "./target.ts";

export function serviceVersionSuite(clients: () => Clients): void {
  describe("versions of the service", () => {
    const told = (answer: Response) => [answer.status, answer.headers.get("x-ms-error-code"), answer.headers.get("x-ms-version")];

    test("one that never existed is 400, in the header and in api-version; a newer one is served as the newest", async () => {
      const list = (version: string) => clients().raw("GET", "?comp=list", { headers: { "x-ms-version": version } });
      for (const version of ["2020-01-01", "2019-02-03", "2008-01-01", "2019-02-30", "2019-2-2", "latest"]) {
        const answer = await list(version);
        assert.deepEqual(told(answer).slice(0, 2), [400, "InvalidHeaderValue"], version);
        assert.match(await answer.text(), new RegExp(`<HeaderName>x-ms-version</HeaderName><HeaderValue>${version}</HeaderValue>`));
      }
      for (const version of ["2009-09-19", "2015-07-08", "2019-10-10", "2023-08-03", newestVersion]) {
        assert.deepEqual(told(await list(version)), [200, null, version]);
      }
      assert.deepEqual(told(await list("2099-01-01")), [200, null, newestVersion]);

      const container = await clients().container();
      const blob = container.getBlockBlobClient("b");
      await blob.upload("text", 4);
      const permissions = BlobSASPermissions.parse("r");
      const url = await blob.generateSasUrl({ permissions, expiresOn: new Date(Date.now() + 3_600_000), version: "2020-12-06" });
      assert.deepEqual(told(await fetch(url)), [200, null, "2020-12-06"]);
      assert.deepEqual(told(await fetch(`${url}&api-version=2011-08-18`)), [200, null, "2011-08-18"]);
      assert.deepEqual(told(await fetch(`${url}&api-version=2099-01-01`)), [200, null, newestVersion]);
      assert.deepEqual(told(await fetch(`${url}&api-version=2020-01-01`)).slice(0, 2), [400, "InvalidQueryParameterValue"]);
      const invented = await fetch(url.replace("2020-12-06", "2020-01-01"));
      assert.deepEqual(told(invented).slice(0, 2), [403, "AuthenticationFailed"]);
    });

    test("before 2013-08-15 a read has one condition, or an ETag with a date that does not count", async () => {
      const container = await clients().container();
      const { etag = "", lastModified = new Date(0) } = await container.getBlockBlobClient("b").upload("text", 4);
      const hour = 3_600_000;
      const [then, early] = [lastModified.toUTCString(), new Date(+lastModified - hour).toUTCString()];
      const other = '"0x8D0000000000000"';
      for (const [conditions, before, since] of [
        [{ "if-match": etag }, "200", "200"],
        [{ "if-match": etag, "if-unmodified-since": early }, "200", "412 ConditionNotMet"],
        [{ "if-none-match": etag, "if-modified-since": early }, "304 ConditionNotMet", "200"],
        [{ "if-none-match": other, "if-modified-since": then }, "200", "200"],
        [{ "if-match": etag, "if-none-match": other }, "400 MultipleConditionHeadersNotSupported", "200"],
        [{ "if-match": etag, "if-modified-since": early }, "400 MultipleConditionHeadersNotSupported", "200"],
        [{ "if-unmodified-since": then, "if-modified-since": then }, "400 MultipleConditionHeadersNotSupported", "304 ConditionNotMet"],
        [{ "if-match": `${other}, ${etag}` }, "400 InvalidHeaderValue", "200"],
        [{ "if-none-match": `${other}, ${etag}` }, "400 InvalidHeaderValue", "304 ConditionNotMet"],
      ] as const) {
        const ask = async (method: string, version: string) => {
          const headers = { ...conditions, "x-ms-version": version };
          const answer = await clients().raw(method, `/${container.containerName}/b`, { headers });
          await answer.arrayBuffer();
          return `${answer.status} ${answer.headers.get("x-ms-error-code") ?? ""}`.trim();
        };
        for (const method of ["GET", "HEAD"]) {
          const told = [await ask(method, "2012-02-12"), await ask(method, "2013-08-15")];
          assert.deepEqual(told, [before, since], `${method} ${JSON.stringify(conditions)}`);
        }
      }
    });

    test("a read by everybody without a version is one of 2009-09-19, or of the account's default", async () => {
      const { service } = clients();
      const { defaultServiceVersion } = await service.getProperties();
      const container = await clients().container({ access: "blob" });
      const blob = container.getBlockBlobClient("b");
      const { etag = "" } = await blob.upload("0123456789", 10);
      const read = async (headers: Record<string, string> = {}) => {
        const answer = await fetch(blob.url, { headers });
        const range = answer.headers.get("accept-ranges");
        return [answer.headers.get("x-ms-version"), answer.headers.get("etag"), range, answer.status, await answer.text()];
      };
      const bare = etag.replaceAll('"', "");
      if (defaultServiceVersion === undefined) {
        assert.deepEqual(await read({ range: "bytes=8-" }), ["2009-09-19", bare, null, 200, "0123456789"], "no range without an end");
        assert.deepEqual(await read({ range: "bytes=8-9" }), ["2009-09-19", bare, null, 206, "89"]);
        assert.deepEqual(await read({ range: "bytes=8-9", "if-range": bare }), ["2009-09-19", bare, null, 206, "89"]);
        assert.equal((await read({ "if-none-match": bare }))[3], 304);
      }
      const named = { "x-ms-version": "2011-08-18" };
      assert.deepEqual(await read({ range: "bytes=8-", ...named }), ["2011-08-18", etag, "bytes", 206, "89"]);
      await service.setProperties({ defaultServiceVersion: "2014-02-14" });
      assert.deepEqual(await read({ range: "bytes=8-" }), ["2014-02-14", etag, "bytes", 206, "89"]);
      const invented = await failure(service.setProperties({ defaultServiceVersion: "2020-01-01" }));
      assert.deepEqual([invented.statusCode, invented.code], [400, "InvalidXmlNodeValue"]);
    });
  });
}
