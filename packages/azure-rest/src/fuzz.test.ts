/** Whatever a client sends, parsers answer: with a value or with an error of the service, never by throwing, never by hanging. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseAuthorization } from "./auth/shared-key.ts";
import { claimsOfToken } from "./auth/token.ts";
import { fromBase64, fromBase64Url, toBase64, toBase64Url } from "./base64.ts";
import { parseBlockList } from "./blob/block-list-xml.ts";
import { decodeMarker, encodeMarker, parseListQuery } from "./blob/list-query.ts";
import { blobPrefixXml, type ListedBlobProperties, listBlobsXml, listedBlobXml } from "./blob/lists-xml.ts";
import { blobOperationNames } from "./blob/operation-rows.ts";
import { recognizeBlob } from "./blob/operations.ts";
import { parsePageRange } from "./blob/page-headers.ts";
import { checkNames, parseBlobResource } from "./blob/resource.ts";
import { parseSourceConditions } from "./blob/sources/copy-headers.ts";
import { checkUnsupported } from "./blob/unsupported.ts";
import { parseConditions } from "./conditions.ts";
import { civilTime, formatRfc1123, parseHttpDate, parseRfc1123 } from "./dates.ts";
import { errorTable, isErrorCode } from "./error-codes.ts";
import { type HttpHeaders, parseContentLength, parseContentProperties, parseMetadata, parseRange } from "./headers.ts";
import { errorBody, restError } from "./rest-error.ts";
import { parseTarget } from "./target.ts";
import { newestVersion, parseVersion } from "./version.ts";

const text = fc.string({ unit: "binary", maxLength: 60 });
const piece = fc.oneof(
  text,
  fc.constantFrom("%", "%2", "%FF", "%C3%A9", "/", "//", "?", "&", "=", "restype=container", "comp=list", "+", "%00"),
);
const target = fc.array(piece, { maxLength: 12 }).map((pieces) => `/acct${pieces.join("")}`);
const headerName = fc.oneof(
  text.map((name) => `x-ms-meta-${name.toLowerCase()}`),
  fc.constantFrom("range", "x-ms-range", "if-match", "if-modified-since", "content-length", "x-ms-blob-content-md5", "x-ms-lease-id"),
  text.map((name) => `x-ms-${name.toLowerCase()}`),
);
const headers = fc.dictionary(headerName, fc.oneof(text, fc.constantFrom("bytes=0-", "bytes=5-1", "*", "AAAA", "1e9")), { maxKeys: 12 });

interface Answered {
  readonly ok: boolean;
  readonly error?: { readonly code: string; readonly status: number };
}

function answers(result: Answered): void {
  if (result.ok) return;
  assert.ok(result.error && isErrorCode(result.error.code) && result.error.status >= 400);
}

test("targets, operations and lists: any text is answered", () => {
  fc.assert(
    fc.property(target, fc.constantFrom("GET", "PUT", "HEAD", "DELETE", "POST", "BREW"), (asked, method) => {
      const parsed = parseTarget(asked, "h:1", { hostSuffixes: ["blob.h"] });
      answers(parsed);
      if (!parsed.ok) return;
      const resource = parseBlobResource(parsed.value);
      answers(resource);
      if (!resource.ok) return;
      answers(checkNames(resource.value));
      const operation = recognizeBlob(method, { ...parsed.value, ...resource.value });
      answers(operation);
      answers(parseListQuery(parsed.value.query, "blobs", newestVersion));
      answers(parseListQuery(parsed.value.query, "containers", newestVersion));
    }),
    { numRuns: 500 },
  );
});

test("headers: any text is answered", () => {
  fc.assert(
    fc.property(headers, text, (given, other) => {
      const sent: HttpHeaders = given;
      answers(parseMetadata(sent, Object.entries(sent).flat()));
      for (const parse of [parsePageRange, parseConditions, parseSourceConditions, parseContentLength]) answers(parse(sent));
      answers(parseContentProperties(sent, { standardToo: true, md5Compared: true }));
      for (const operation of blobOperationNames) answers(checkUnsupported(operation, sent));
      answers(parseVersion(other));
      answers(parseAuthorization(other));
      claimsOfToken(other);
      parseRange(sent);
      parseHttpDate(other);
    }),
    { numRuns: 300 },
  );
});

test("block lists: any bytes are answered", () => {
  const tags = fc.constantFrom(
    "<BlockList>",
    "</BlockList>",
    "<Latest>",
    "</Latest>",
    "QUFB",
    "<!DOCTYPE a>",
    "&amp;",
    "<",
    "<!--",
    "<![CDATA[",
    "\u0000",
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(tags, text), { maxLength: 12 }), (parts) =>
      answers(parseBlockList(new TextEncoder().encode(parts.join("")))),
    ),
    { numRuns: 500 },
  );
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => answers(parseBlockList(bytes))));
});

test("base64, markers and dates go there and back", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      assert.deepEqual(fromBase64(toBase64(bytes)), bytes);
      assert.deepEqual(fromBase64Url(toBase64Url(bytes)), bytes);
      assert.equal(toBase64(bytes), Buffer.from(bytes).toString("base64"));
    }),
  );
  fc.assert(fc.property(fc.string({ unit: "grapheme" }), (name) => assert.equal(decodeMarker(encodeMarker(name)), name)));
  fc.assert(
    fc.property(fc.integer({ min: -62_135_596_800, max: 253_402_300_799 }), (seconds) => {
      const ms = seconds * 1000;
      assert.equal(formatRfc1123(ms), new Date(ms).toUTCString());
      assert.equal(parseRfc1123(formatRfc1123(ms)), ms);
      assert.equal(civilTime(ms).weekday, new Date(ms).getUTCDay());
    }),
  );
});

test("whatever names and metadata are, a list and an error are well-formed XML", async () => {
  const { XMLValidator } = await import("fast-xml-parser");
  fc.assert(
    fc.property(text, text, (name, value) => {
      const blob: ListedBlobProperties = {
        name,
        etag: '"0x8"',
        lastModifiedMs: 0,
        createdMs: 0,
        contentLengthBytes: 1,
        headers: {
          contentType: value,
          contentEncoding: "",
          contentLanguage: value,
          contentMd5: new Uint8Array(16),
          cacheControl: value,
          contentDisposition: "",
        },
        metadata: { k: value },
        blobType: "BlockBlob",
        uncommitted: false,
        committedBlockCount: 0,
        sealed: false,
        sequenceNumber: 0,
        snapshotStamp: 1,
        versionStamp: 0,
        isCurrentVersion: false,
        lease: { state: "available", status: "unlocked", duration: "" },
        tags: { k: value },
        tagCount: 1,
        accessTier: "Hot",
        accessTierInferred: true,
        legalHold: false,
      };
      const echo = { serviceEndpoint: value, prefix: name, include: new Set(["metadata", "tags", "legalhold"]), version: "2026-10-06" };
      const entries = [listedBlobXml(blob, echo.include), blobPrefixXml(name)];
      const xml = [...listBlobsXml(echo, "c", entries, "")].join("");
      assert.equal(XMLValidator.validate(xml), true, xml);
      assert.equal(XMLValidator.validate(errorBody(restError("InvalidInput", { Reason: value }), name, value)), true);
    }),
  );
});

test("every error code has a status of a failure and a text", () => {
  for (const [code, [status, message]] of Object.entries(errorTable)) {
    assert.ok(status >= 400 && status < 600, code);
    assert.ok(message.length > 5, code);
  }
});
