/**
 * The outcome tables of the REST reference, each row run over raw HTTP: condition × operation ("Specifying conditional headers for Blob
 * service operations"), lease × operation ("Lease Blob", "Lease Container": use attempts), error code per cause ("Blob service error codes"),
 * and what differs by version. Lease actions by state are in packages/objects/src/blobs/protect/leases.test.ts, where time can be moved; expired
 * leases over HTTP in expired.ts. Rows that can't be had here: docs/api/outcomes.md.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, test } from "node:test";
import {
  atOnce,
  block,
  type Headers,
  type Kind,
  leasedOnly,
  list,
  manyTags,
  type Operation,
  OutcomeRows,
  onTags,
  others,
  page,
  putBlockFromUrl,
  reads,
  tags,
  type Wanted,
  writes,
} from "./outcome-operations.ts";
import { blockId, type Clients, readableUrl } from "./target.ts";

const hour = 3_600_000;

export function outcomeSuite(clients: () => Clients): void {
  const rowsOf = new OutcomeRows(clients);
  const made: OutcomeRows["made"] = (...given) => rowsOf.made(...given);
  const told: OutcomeRows["told"] = (...given) => rowsOf.told(...given);

  describe("outcomes: condition × operation", () => {
    for (const operation of [...reads, ...writes, ...others, ...onTags]) {
      test(operation.name, async () => {
        const { containerName } = await clients().container();
        const source = await rowsOf.sourceIn(containerName);
        const unmet = operation.reads ? "304" : `412 ${operation.code ?? "ConditionNotMet"}`;
        const not = `412 ${operation.method === "HEAD" ? "ConditionNotMet" : (operation.code ?? "ConditionNotMet")}`;
        const rows: readonly (readonly [string, (blob: { etag: string; modified: Date }) => Headers, string])[] = [
          ["If-Match, the blob's", ({ etag }) => ({ "if-match": etag }), "done"],
          ["If-Match, another", () => ({ "if-match": '"0x8D0000000000000"' }), not],
          ["If-Match, any", () => ({ "if-match": "*" }), "done"],
          ["If-None-Match, the blob's", ({ etag }) => ({ "if-none-match": etag }), unmet],
          ["If-None-Match, another", () => ({ "if-none-match": '"0x8D0000000000000"' }), "done"],
          ["If-Modified-Since, earlier", ({ modified }) => ({ "if-modified-since": new Date(+modified - hour).toUTCString() }), "done"],
          ["If-Modified-Since, then", ({ modified }) => ({ "if-modified-since": modified.toUTCString() }), unmet],
          ["If-Unmodified-Since, then", ({ modified }) => ({ "if-unmodified-since": modified.toUTCString() }), "done"],
          ["If-Unmodified-Since, earlier", ({ modified }) => ({ "if-unmodified-since": new Date(+modified - hour).toUTCString() }), not],
          [
            "x-ms-if-tags, not fulfilled",
            () => ({ "x-ms-if-tags": "missing = 'x'" }),
            operation.untagged ? "400 ConditionHeadersNotSupported" : not,
          ],
        ];
        const seen = await atOnce(rows, async ([title, conditions]) => {
          const blob = await made(containerName, operation.kind);
          const named = Object.entries(conditions(blob)).map(([name, value]) => {
            return [(name.startsWith("if-") ? (operation.prefix ?? "") : "") + name, value] as const;
          });
          const answer = await told(operation, blob.path, Object.fromEntries(named), source);
          if (answer !== "done") assert.equal((await blob.client.getProperties()).etag, blob.etag, `${title} changes nothing`);
          return `${title}: ${answer.startsWith("304") ? "304" : answer}`;
        });
        assert.deepEqual(
          seen,
          rows.map(([title, , outcome]) => `${title}: ${outcome}`),
        );
      });
    }
  });

  /** As the service was seen to answer: docs/api/outcomes.md. */
  describe("outcomes: condition of the source × operation", () => {
    const putPages: Operation = {
      name: "Put Page From URL",
      method: "PUT",
      query: "comp=page",
      kind: "PageBlob",
      copies: true,
      headers: { "x-ms-page-write": "update", "x-ms-range": "bytes=0-511", "x-ms-source-range": "bytes=0-511" },
      body: "",
    };
    for (const operation of [...writes.filter(({ copies }) => copies), putBlockFromUrl, putPages]) {
      test(operation.name, async () => {
        const container = await clients().container();
        const source = container.getBlockBlobClient("source");
        const { etag = "", lastModified = new Date(0) } = await source.upload(page, page.length, { tags: { n: "1" } });
        const url = await readableUrl(source, "rt");
        const own = operation.name === "Copy Blob" ? "412 SourceConditionNotMet" : undefined;
        const changed = own ?? "412 CannotVerifyCopySource";
        const same = own ?? "304 CannotVerifyCopySource";
        const byEtag = operation.name === "Copy Blob From URL" ? "412 SourceConditionNotMet" : changed;
        const takesTags = operation.name === "Copy Blob" || operation.name === "Put Blob From URL";
        const rows: readonly (readonly [string, string, string])[] = [
          ["x-ms-source-if-match", etag, "done"],
          ["x-ms-source-if-match", '"0x8D0000000000000"', byEtag],
          ["x-ms-source-if-none-match", '"0x8D0000000000000"', "done"],
          ["x-ms-source-if-none-match", etag, same],
          ["x-ms-source-if-modified-since", new Date(+lastModified - hour).toUTCString(), "done"],
          ["x-ms-source-if-modified-since", lastModified.toUTCString(), same],
          ["x-ms-source-if-unmodified-since", lastModified.toUTCString(), "done"],
          ["x-ms-source-if-unmodified-since", new Date(+lastModified - hour).toUTCString(), changed],
          ["x-ms-source-if-tags", "n = '1'", takesTags ? "done" : "400 UnsupportedHeader"],
          ["x-ms-source-if-tags", "n = '2'", takesTags ? changed : "400 UnsupportedHeader"],
          ["x-ms-source-if-tags", "n =", takesTags ? "400 InvalidHeaderValue" : "400 UnsupportedHeader"],
        ];
        const seen = await atOnce(rows, async ([name, value]) => {
          const blob = await made(container.containerName, operation.kind);
          return `${name}: ${value}: ${await told(operation, blob.path, { [name]: value }, url)}`;
        });
        assert.deepEqual(
          seen,
          rows.map((row) => row.join(": ")),
        );
      });
    }
  });

  describe("outcomes: lease × operation", () => {
    const mine = randomUUID();
    const other = randomUUID();
    const states = {
      available: async () => {},
      leased: async (path: string) =>
        lease(path, { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "60", "x-ms-proposed-lease-id": mine }),
      breaking: async (path: string) => {
        await states.leased(path);
        await lease(path, { "x-ms-lease-action": "break", "x-ms-lease-break-period": "60" });
      },
      broken: async (path: string) => {
        await states.leased(path);
        await lease(path, { "x-ms-lease-action": "break", "x-ms-lease-break-period": "0" });
      },
    } as const;
    async function lease(path: string, headers: Headers): Promise<void> {
      const answer = await clients().raw("PUT", `${path}?comp=lease`, { headers, body: "" });
      assert.ok(answer.ok, `${answer.status}`);
      await answer.arrayBuffer();
    }
    const absent = "412 LeaseNotPresentWithBlobOperation";
    const mismatch = "412 LeaseIdMismatchWithBlobOperation";
    /** By the lease that the request names. `held`: with the id of a lease that ends. */
    const outcomes = (needsLease: boolean, held: string) =>
      ({
        available: { none: "done", mine: absent, other: absent },
        leased: { none: needsLease ? "412 LeaseIdMissing" : "done", mine: held, other: mismatch },
        breaking: { none: needsLease ? "412 LeaseIdMissing" : "done", mine: held, other: mismatch },
        broken: { none: "done", mine: "412 LeaseLost", other: absent },
      }) as const;
    const named: Readonly<Record<"none" | "mine" | "other", Headers>> = {
      none: {},
      mine: { "x-ms-lease-id": mine },
      other: { "x-ms-lease-id": other },
    };
    for (const operation of [...reads, ...writes, ...leasedOnly, ...onTags, ...others.filter(({ name }) => name === "Snapshot Blob")]) {
      test(operation.name, async () => {
        const { containerName } = await clients().container();
        const source = await rowsOf.sourceIn(containerName);
        const needsLease = !operation.reads && operation.name !== "Snapshot Blob";
        const seen = await atOnce(Object.entries(states), async ([state, bring]) => {
          const answers = await atOnce(Object.entries(named), async ([by, headers]) => {
            const blob = await made(containerName, operation.kind);
            await bring(blob.path);
            return [by, await told(operation, blob.path, headers, source)] as const;
          });
          return [state, Object.fromEntries(answers)] as const;
        });
        const held = operation.name.startsWith("Copy Blob") ? "412 InfiniteLeaseDurationRequired" : "done";
        assert.deepEqual(Object.fromEntries(seen), outcomes(needsLease, held));
      });
    }

    test("a copy reads a leased source without its lease", async () => {
      const container = await clients().container();
      const source = await made(container.containerName);
      await states.leased(source.path);
      const target = container.getBlockBlobClient("target");
      await (await target.beginCopyFromURL(source.client.url)).pollUntilDone();
      assert.equal((await target.downloadToBuffer()).toString(), "old");
      assert.equal((await target.getProperties()).leaseState, "available", "the lease is not copied");
    });
  });

  describe("outcomes: containers", () => {
    test("condition × operation: times where the reference lists them", async () => {
      const early = new Date(Date.now() - hour).toUTCString();
      const late = new Date(Date.now() + hour).toUTCString();
      const metadata = { method: "PUT", query: "restype=container&comp=metadata", body: "" };
      const acl = { method: "PUT", query: "restype=container&comp=acl", body: "" };
      const leasing = { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1" };
      for (const [name, wanted, headers, outcome] of [
        ["Set Container Metadata", metadata, { "if-modified-since": early }, "done"],
        ["Set Container Metadata", metadata, { "if-modified-since": late }, "412 ConditionNotMet"],
        ["Set Container ACL", acl, { "if-modified-since": late }, "412 ConditionNotMet"],
        ["Set Container ACL", acl, { "if-unmodified-since": early }, "412 ConditionNotMet"],
        ["Set Container ACL", acl, { "if-unmodified-since": late }, "done"],
        [
          "Lease Container",
          { method: "PUT", query: "restype=container&comp=lease", headers: leasing, body: "" },
          { "if-unmodified-since": early },
          "412 ConditionNotMet",
        ],
        ["Delete Container", { method: "DELETE", query: "restype=container" }, { "if-unmodified-since": early }, "412 ConditionNotMet"],
        ["Delete Container", { method: "DELETE", query: "restype=container" }, { "if-modified-since": early }, "done"],
      ] as const) {
        const { containerName } = await clients().container();
        const operation: Operation = { name, ...wanted };
        assert.equal(await told(operation, `/${containerName}`, headers, ""), outcome, `${name} ${JSON.stringify(headers)}`);
      }
    });
  });

  describe("outcomes: error code per cause", () => {
    const causes: readonly (readonly [string, Wanted & { readonly kind?: Kind }, string])[] = [
      ["a range behind the end", { method: "GET", headers: { "x-ms-range": "bytes=100-200" } }, "416 InvalidRange"],
      [
        "an MD5 of a range that is not announced",
        { method: "GET", headers: { "x-ms-range-get-content-md5": "true" } },
        "400 InvalidHeaderValue",
      ],
      [
        "an MD5 that is none",
        { method: "PUT", headers: { "x-ms-blob-type": "BlockBlob", "content-md5": "AA==" }, body: "x" },
        "400 InvalidMd5",
      ],
      [
        "an MD5 of other bytes",
        { method: "PUT", headers: { "x-ms-blob-type": "BlockBlob", "content-md5": Buffer.alloc(16).toString("base64") }, body: "x" },
        "400 Md5Mismatch",
      ],
      [
        "a CRC64 of other bytes",
        { method: "PUT", headers: { "x-ms-blob-type": "BlockBlob", "x-ms-content-crc64": Buffer.alloc(8).toString("base64") }, body: "x" },
        "400 Crc64Mismatch",
      ],
      [
        "a block that was never put",
        { method: "PUT", query: "comp=blocklist", body: list.replace(blockId(1), blockId(9)) },
        "400 InvalidBlockList",
      ],
      ["a block list that is no XML", { method: "PUT", query: "comp=blocklist", body: "<BlockList>" }, "400 InvalidXmlDocument"],
      ["a block id that is no base64", { method: "PUT", query: "comp=block&blockid=!", body: "x" }, "400 InvalidQueryParameterValue"],
      ["a block id of another length", { method: "PUT", query: "comp=block&blockid=QUJD", body: "x" }, "400 InvalidBlobOrBlock"],
      ["appending to a block blob", { method: "PUT", query: "comp=appendblock", body: "x" }, "409 InvalidBlobType"],
      ["a block of an append blob", { method: "PUT", query: block, body: "x", kind: "AppendBlob" }, "409 InvalidBlobType"],
      ["pages of a block blob", { method: "GET", query: "comp=pagelist" }, "409 InvalidBlobType"],
      [
        "a page range that is not aligned",
        {
          method: "PUT",
          query: "comp=page",
          kind: "PageBlob",
          headers: { "x-ms-page-write": "update", "x-ms-range": "bytes=1-512" },
          body: page,
        },
        "400 InvalidHeaderValue",
      ],
      [
        "pages behind the end",
        {
          method: "PUT",
          query: "comp=page",
          kind: "PageBlob",
          headers: { "x-ms-page-write": "update", "x-ms-range": "bytes=1024-1535" },
          body: page,
        },
        "416 InvalidPageRange",
      ],
      [
        "a sequence number that is too large",
        {
          method: "PUT",
          query: "comp=page",
          kind: "PageBlob",
          headers: { "x-ms-page-write": "update", "x-ms-range": "bytes=0-511", "x-ms-if-sequence-number-eq": "9" },
          body: page,
        },
        "412 SequenceNumberConditionNotMet",
      ],
      [
        "an append position that is not the end",
        { method: "PUT", query: "comp=appendblock", kind: "AppendBlob", headers: { "x-ms-blob-condition-appendpos": "5" }, body: "x" },
        "412 AppendPositionConditionNotMet",
      ],
      [
        "an append blob beyond its size",
        { method: "PUT", query: "comp=appendblock", kind: "AppendBlob", headers: { "x-ms-blob-condition-maxsize": "1" }, body: "xx" },
        "412 MaxBlobSizeConditionNotMet",
      ],
      [
        "a tier of page blobs",
        { method: "PUT", query: "comp=tier", headers: { "x-ms-access-tier": "P10" }, body: "" },
        "400 BlobAccessTierNotSupportedForAccountType",
      ],
      [
        "a copy that is not pending",
        { method: "PUT", query: `comp=copy&copyid=${randomUUID()}`, headers: { "x-ms-copy-action": "abort" }, body: "" },
        "409 NoPendingCopyOperation",
      ],
      [
        "a lease action without a lease",
        { method: "PUT", query: "comp=lease", headers: { "x-ms-lease-action": "break" }, body: "" },
        "409 LeaseNotPresentWithLeaseOperation",
      ],
      ["a snapshot that is not there", { method: "GET", query: "snapshot=2020-01-01T00:00:00.0000000Z" }, "404 BlobNotFound"],
      ["a snapshot that is no time", { method: "GET", query: "snapshot=yesterday" }, "400 InvalidQueryParameterValue"],
      [
        "metadata without a name",
        { method: "PUT", query: "comp=metadata", headers: { "x-ms-meta-": "x" }, body: "" },
        "400 EmptyMetadataKey",
      ],
      [
        "metadata that is too large",
        { method: "PUT", query: "comp=metadata", headers: { "x-ms-meta-a": "x".repeat(8193) }, body: "" },
        "400 MetadataTooLarge",
      ],
      ["a verb that is not known there", { method: "POST" }, "405 UnsupportedHttpVerb"],
      [
        "a condition where none is looked at",
        { method: "PUT", query: block, headers: { "if-none-match": "*" }, body: "x" },
        "400 ConditionHeadersNotSupported",
      ],
      [
        "a condition of tags where there are none",
        { method: "PUT", query: "comp=metadata", headers: { "x-ms-blob-if-match": "*" }, body: "" },
        "400 UnsupportedHeader",
      ],
      [
        "a range of the source where all of it is copied",
        { method: "PUT", headers: { "x-ms-copy-source": "http://nobody.test/x", "x-ms-source-range": "bytes=0-1" }, body: "" },
        "400 UnsupportedHeader",
      ],
      ["tags beyond ten", { method: "PUT", query: "comp=tags", body: manyTags }, "400 TagsTooLarge"],
      [
        "a tag with a character that tags don't have",
        { method: "PUT", query: "comp=tags", body: tags.replace("<Value>1", "<Value>1!") },
        "400 InvalidXmlNodeValue",
      ],
      [
        "a sealed append blob that is appended to",
        { method: "PUT", query: "comp=appendblock", kind: "AppendBlob", headers: { "x-test-seal": "1" }, body: "x" },
        "409 BlobIsSealed",
      ],
    ];
    for (const [cause, wanted, outcome] of causes) {
      test(`${cause}: ${outcome}`, async () => {
        const { containerName } = await clients().container();
        const blob = await made(containerName, wanted.kind);
        const { "x-test-seal": seal, ...headers } = { ...wanted.headers } as Record<string, string>;
        if (seal !== undefined) await (await clients().raw("PUT", `${blob.path}?comp=seal`, { body: "" })).arrayBuffer();
        assert.equal(await told({ name: cause, ...wanted, headers }, blob.path, {}, ""), outcome);
      });
    }

    test("of containers", async () => {
      const { containerName } = await clients().container();
      for (const [path, method, outcome] of [
        [`/${containerName}?restype=container`, "PUT", "409 ContainerAlreadyExists"],
        ["/never-made?restype=container", "DELETE", "404 ContainerNotFound"],
        ["/never-made/b", "DELETE", "404 ContainerNotFound"],
        ["/UPPER?restype=container", "PUT", "400 InvalidResourceName"],
        ["/a--b?restype=container", "PUT", "400 InvalidResourceName"],
        ["/ab?restype=container", "PUT", "400 OutOfRangeInput"],
        [`/${containerName}?restype=container&comp=list&maxresults=0`, "GET", "400 OutOfRangeQueryParameterValue"],
        [`/${containerName}?restype=container&comp=list&include=nothing`, "GET", "400 InvalidQueryParameterValue"],
      ] as const) {
        assert.equal(
          await told({ name: path, method, ...(method === "PUT" ? { body: "" } : {}) }, path, {}, ""),
          outcome,
          `${method} ${path}`,
        );
      }
    });
  });

  describe("outcomes: what differs by version", () => {
    const ask = async (method: string, path: string, version: string, headers: Headers = {}, body?: string) =>
      clients().raw(method, path, { headers: { "x-ms-version": version, ...headers }, ...(body === undefined ? {} : { body }) });

    test("ETags have quotes since 2011-08-18", async () => {
      const { path, etag } = await made((await clients().container()).containerName);
      assert.equal((await ask("HEAD", path, "2011-08-18")).headers.get("etag"), etag);
      assert.equal((await ask("HEAD", path, "2009-09-19")).headers.get("etag"), etag.replaceAll('"', ""));
    });

    test("Put Block answers an MD5 always before 2019-02-02, since then a CRC64 unless it was given one", async () => {
      const { path } = await made((await clients().container()).containerName);
      const old = await ask("PUT", `${path}?${block}`, "2018-11-09", {}, "x");
      assert.ok(old.headers.get("content-md5"));
      assert.equal(old.headers.get("x-ms-content-crc64"), null);
      const now = await ask("PUT", `${path}?${block}`, "2019-02-02", {}, "x");
      assert.equal(now.headers.get("content-md5"), null);
      assert.ok(now.headers.get("x-ms-content-crc64"));
    });

    test("a malformed version is 400, one of the future is served", async () => {
      const { path } = await made((await clients().container()).containerName);
      assert.equal((await ask("HEAD", path, "2019-2-2")).status, 400);
      assert.equal((await ask("HEAD", path, "2019-02-30")).status, 400);
      assert.equal((await ask("HEAD", path, "2099-01-01")).status, 200);
    });
  });

  test("outcomes: x-ms-previous-snapshot-url is what prevsnapshot is, of the same blob only", async () => {
    const container = await clients().container();
    const disk = container.getPageBlobClient("disk");
    await disk.create(4096);
    await disk.uploadPages(page, 0, 512);
    const { snapshot = "" } = await disk.createSnapshot();
    await disk.uploadPages(page, 1024, 512);
    await disk.clearPages(0, 512);
    const diff = async (headers: Headers, query = "") => {
      const path = `/${container.containerName}/disk?comp=pagelist${query}`;
      const answer = await clients().raw("GET", path, { headers: { "x-ms-version": "2021-12-02", ...headers } });
      return answer.ok ? answer.text() : `${answer.status} ${answer.headers.get("x-ms-error-code")}`;
    };
    const byQuery = await diff({}, `&prevsnapshot=${encodeURIComponent(snapshot)}`);
    assert.match(byQuery, /<PageRange><Start>1024<\/Start>.*<ClearRange>|<ClearRange>.*<PageRange><Start>1024<\/Start>/);
    assert.equal(await diff({ "x-ms-previous-snapshot-url": `${disk.url}?snapshot=${encodeURIComponent(snapshot)}` }), byQuery);
    assert.match(await diff({ "x-ms-previous-snapshot-url": "nonsense" }), /^400 /);
    assert.match(await diff({ "x-ms-previous-snapshot-url": disk.url }), /^400 /);
  });
}
