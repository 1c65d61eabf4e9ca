/**
 * Empty headers and query parameters: what an absent one says, or 400 with its name where the table of packages/azure-rest gives a reason.
 * Every name that the SDK can send is walked.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { refusedEmptyHeaders, refusedEmptyParameters } from "@stamp/azure-rest";
import { isHeader, sdkParameterNames } from "./sdk-parameters.ts";
import { blockId, type Clients } from "./target.ts";

type Headers = Readonly<Record<string, string>>;

/** HTTP itself says what these are, or the signature is made by them. */
const notWalked: ReadonlySet<string> = new Set(["content-length", "accept", "x-ms-meta-", "x-ms-version"]);
const list = `<?xml version="1.0" encoding="utf-8"?><BlockList><Latest>${blockId(1)}</Latest></BlockList>`;

export function emptyValueSuite(clients: () => Clients): void {
  const told = async (method: string, path: string, headers: Headers = {}, body?: string): Promise<string> => {
    const answer = await clients().raw(method, path, { headers: { ...headers }, ...(body === undefined ? {} : { body }) });
    const text = await answer.text();
    const code = answer.headers.get("x-ms-error-code");
    const name = /<(?:HeaderName|QueryParameterName)>([^<]*)</.exec(text)?.[1];
    return [answer.status, code, name].filter((part) => part !== null && part !== undefined).join(" ");
  };
  const headersOf = async (path: string) => (await clients().raw("HEAD", path)).headers;

  describe("empty values", () => {
    test("every header of the SDK, sent empty, is no header or is refused by its name", async () => {
      const { containerName } = await clients().container();
      const blob = `/${containerName}/b`;
      const names = [...(await sdkParameterNames())].filter((name) => isHeader(name) && !notWalked.has(name));
      assert.ok(names.length > 75, `${names.length} names`);
      for (const [method, path, headers, body, outcome] of [
        ["PUT", blob, { "x-ms-blob-type": "BlockBlob" }, "content", "201"],
        ["GET", blob, {}, undefined, "200"],
        ["PUT", `${blob}?comp=metadata`, {}, "", "200"],
        ["GET", `/${containerName}?restype=container&comp=list`, {}, undefined, "200"],
      ] as const) {
        assert.equal(await told(method, path, headers, body), outcome);
        const outcomes = await Promise.all(names.map((name) => told(method, path, { ...headers, [name]: "" }, body)));
        for (const [at, name] of names.entries()) {
          const expected = Object.hasOwn(refusedEmptyHeaders, name) ? `400 InvalidHeaderValue ${name}` : outcome;
          assert.equal(outcomes[at], expected, `${method} ${path} with ${name}`);
        }
      }
    });

    test("every query parameter of the SDK, sent empty, is none or is refused by its name", async () => {
      const { containerName } = await clients().container();
      const blob = `/${containerName}/b`;
      await told("PUT", blob, { "x-ms-blob-type": "BlockBlob" }, "content");
      const names = [...(await sdkParameterNames())].filter((name) => !isHeader(name));
      assert.ok(names.length > 12, `${names.length} names`);
      for (const [method, path] of [
        ["GET", `${blob}?`],
        ["HEAD", `${blob}?`],
        ["GET", `/${containerName}?restype=container&comp=list`],
        ["GET", "?comp=list"],
      ] as const) {
        for (const name of names) {
          if (new URLSearchParams(path.slice(path.indexOf("?"))).has(name)) continue;
          const refused = Object.hasOwn(refusedEmptyParameters, name);
          const expected = !refused ? "200" : `400 InvalidQueryParameterValue${method === "HEAD" ? "" : ` ${name}`}`;
          assert.equal(await told(method, `${path}&${name}=`), expected, `${method} ${path} with ${name}`);
        }
      }
    });

    test("restic's block list with an empty tier is committed with the account's tier", async () => {
      const { containerName } = await clients().container();
      const path = `/${containerName}/b`;
      const id = encodeURIComponent(blockId(1));
      assert.equal(await told("PUT", `${path}?comp=block&blockid=${id}`, { "x-ms-lease-id": "", "content-md5": "" }, "x"), "201");
      const empty = { "x-ms-access-tier": "", "x-ms-blob-content-md5": "", "x-ms-blob-content-type": "", "x-ms-meta-none": "" };
      assert.equal(await told("PUT", `${path}?comp=blocklist`, empty, list), "201");
      const headers = await headersOf(path);
      assert.equal(headers.get("x-ms-access-tier-inferred"), "true");
      assert.equal(headers.get("content-type"), "application/octet-stream");
      assert.equal(headers.get("x-ms-meta-none"), "");
    });

    test("what is refused leaves the blob as it was: an empty condition, source, snapshot", async () => {
      const { containerName } = await clients().container();
      const path = `/${containerName}/b`;
      const type = { "x-ms-blob-type": "BlockBlob" };
      assert.equal(await told("PUT", path, type, "kept"), "201");
      for (const name of ["if-match", "if-none-match", "x-ms-copy-source", "x-ms-blob-type"])
        assert.equal(await told("PUT", path, { ...type, [name]: "" }, "lost"), `400 InvalidHeaderValue ${name}`);
      assert.equal(await told("PUT", path, { "x-ms-copy-source": "" }, ""), "400 InvalidHeaderValue x-ms-copy-source");
      for (const name of ["snapshot", "versionid", "comp"])
        assert.equal(await told("DELETE", `${path}?${name}=`), `400 InvalidQueryParameterValue ${name}`);
      const copied = { "x-ms-copy-source": `${clients().service.url}${path.slice(1)}?snapshot=` };
      assert.match(await told("PUT", `${path}2`, copied, ""), /^400 /);
      assert.equal(await (await clients().raw("GET", path)).text(), "kept");
    });

    test("a required header that is empty is missing", async () => {
      const { containerName } = await clients().container();
      const path = `/${containerName}/b`;
      await told("PUT", path, { "x-ms-blob-type": "BlockBlob" }, "x");
      for (const [comp, name] of [
        ["lease", "x-ms-lease-action"],
        ["tier", "x-ms-access-tier"],
        ["legalhold", "x-ms-legal-hold"],
        ["expiry", "x-ms-expiry-option"],
        ["immutabilitypolicies", "x-ms-immutability-policy-until-date"],
      ] as const)
        assert.equal(await told("PUT", `${path}?comp=${comp}`, { [name]: "" }, ""), `400 MissingRequiredHeader ${name}`);
      const acquire = { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": "" };
      assert.equal(
        await told("PUT", `${path}?comp=lease`, { ...acquire, "x-ms-lease-duration": "" }, ""),
        "400 MissingRequiredHeader x-ms-lease-duration",
      );
      assert.equal(await told("PUT", `${path}?comp=lease`, acquire, ""), "201");
      // An empty lease id is none: the lease of somebody else holds.
      assert.equal(await told("PUT", `${path}?comp=metadata`, { "x-ms-lease-id": "" }, ""), "412 LeaseIdMissing");
    });
  });
}
